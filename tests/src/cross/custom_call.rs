//! Case with a custom call, whose function is part of the start code, and with a constant in a file.

use std::path::Path;

use xla::{ArrayShape, ElementType, Error, Literal, Result, npz};
use xla_service::ExternalCall;

use crate::corpus::{Case, Info};

/// Symbol of the function.
pub(super) const SYMBOL: &str = "cross_add";

/// Number that the function reads through the application's own pointer.
const OWN_NUMBER: i32 = 7;

/// Name of the case's suite, which is not part of the corpus.
pub const SUITE: &str = "custom-call";

/// Program, without the numbers of its constant.
const MODULE: &str = include_str!("programs/custom_call.hlo");

/// Returns the numbers of the constant.
fn numbers() -> impl Iterator<Item = i32> {
    (0..300).map(|number| number % 7 - 2)
}

/// Returns the declaration of the case's custom call, as a function of the application.
pub(super) fn external() -> ExternalCall {
    ExternalCall { target: "cross.add".to_string(), symbol: Some(SYMBOL.to_string()) }
}

/// Returns the case; its expected results are written to the folder.
pub fn case(folder: &Path) -> Result<Case> {
    let numbers_in_text = numbers().map(|number| number.to_string()).collect::<Vec<String>>().join(", ");
    let sum = numbers().sum::<i32>() as f32;
    let results: Vec<u8> = (0..13).flat_map(|x| ((x + x + OWN_NUMBER) as f32 * sum).to_ne_bytes()).collect();
    let path = folder.join("results.npz");
    npz::write(&path, &[Literal::from_bytes(&ArrayShape::new(ElementType::F32, [13]), results)?])?;
    let expected = std::fs::read(&path).map_err(|e| Error::failed_precondition(format!("cannot read results: {e}")))?;
    Ok(Case {
        suite: SUITE.to_string(),
        name: SUITE.to_string(),
        module: MODULE.replace("NUMBERS", &numbers_in_text),
        inputs: Vec::new(),
        expected,
        info: Info {
            dtypes: Vec::new(),
            opcodes: Vec::new(),
            params: Vec::new(),
            outputs: Vec::new(),
            rtol: 1e-5,
            atol: 1e-5,
            signed_zero: false,
            form: String::new(),
            num_replicas: 1,
            num_partitions: 1,
        },
    })
}

/// Returns the function in LLVM IR, for a pointer-sized integer type `word`. It adds two arrays, whose number of
/// elements is the length of the call's text, and the number that its own pointer points to.
pub(super) fn function(word: &str) -> String {
    format!(
        "@own = internal global i32 {OWN_NUMBER}
define i32 @{SYMBOL}(ptr %operands, ptr %results, ptr %config, {word} %size, ptr %own) {{
entry:
  %x = load ptr, ptr %operands
  %second = getelementptr ptr, ptr %operands, i32 1
  %y = load ptr, ptr %second
  %r = load ptr, ptr %results
  %number = load i32, ptr %own
  %more = sitofp i32 %number to float
  %letter = load i8, ptr %config
  %known = icmp eq i8 %letter, {}
  br i1 %known, label %loop, label %unknown
unknown:
  ret i32 1
loop:
  %i = phi {word} [ 0, %entry ], [ %next, %loop ]
  %px = getelementptr float, ptr %x, {word} %i
  %py = getelementptr float, ptr %y, {word} %i
  %pr = getelementptr float, ptr %r, {word} %i
  %vx = load float, ptr %px
  %vy = load float, ptr %py
  %sum = fadd float %vx, %vy
  %all = fadd float %sum, %more
  store float %all, ptr %pr
  %next = add {word} %i, 1
  %end = icmp eq {word} %next, %size
  br i1 %end, label %done, label %loop
done:
  ret i32 0
}}
",
        b'5'
    )
}
