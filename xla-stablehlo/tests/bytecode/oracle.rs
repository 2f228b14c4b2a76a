//! Tests that JAX programs are lowered to the graphs that XLA produces.

use std::fs;
use std::path::Path;

use xla_hlo::text::parse_module;
use xla_stablehlo::parse_bytecode;

#[path = "../oracle/compare.rs"]
mod compare;

use compare::{Difference, compare};

#[test]
fn programs_become_what_xla_makes_of_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/sample");
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "mlirbc") {
            continue;
        }
        let ours = parse_bytecode(&fs::read(&path).expect("a readable file"));
        let ours = ours.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let theirs = fs::read_to_string(path.with_extension("hlo")).expect("the HLO beside it");
        let theirs = parse_module(&theirs).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(compare(&ours, &theirs), Difference::default(), "{}", path.display());
        count += 1;
    }
    assert!(count > 50, "{count} programs");
}

/// Returns the kinds of difference between two modules in text.
fn kinds(first: &str, second: &str) -> Vec<&'static str> {
    let module = |text: &str| parse_module(text).expect("a module");
    compare(&module(first), &module(second)).kinds()
}

const MODULE: &str = r#"
HloModule m
FileNames
1 "a.py"
FunctionNames
1 "f"
FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}
2 {file_name_id=1 function_name_id=1 line=4 end_line=4 column=1 end_column=9}
StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY main { x = f32[4] parameter(0)
  zero = f32[] constant(0)
  n = f32[4] negate(x), metadata={op_name="neg" stack_frame_id=2}
  d = f32[4] subtract(n, x)
  ROOT r = f32[] reduce(d, zero), dimensions={0}, to_apply=sum }
"#;

#[test]
fn names_and_numbers_of_frames_are_no_difference() {
    let renamed = MODULE.replace("zero", "nought").replace("sum", "region_0").replace("n = f32", "neg.1 = f32");
    let renamed = renamed.replace("(n, x)", "(neg.1, x)");
    assert_eq!(kinds(MODULE, &renamed), [""; 0]);
}

#[test]
fn what_differs_is_named() {
    for (from, to, kind) in [
        ("subtract(n, x)", "subtract(x, n)", "graph"),
        ("subtract(n, x)", "add(n, x)", "instructions"),
        ("constant(0)", "constant(1)", "instructions"),
        ("add(a, b)", "add(a, a)", "graph"),
        ("add(a, b)", "multiply(a, b)", "instructions"),
        ("op_name=\"neg\"", "op_name=\"negate\"", "metadata"),
        ("stack_frame_id=2", "stack_frame_id=1", "metadata"),
        ("line=4 ", "line=5 ", "metadata"),
        ("HloModule m", "HloModule m, buffer_donor={ (0, {}) }", "header"),
    ] {
        assert!(MODULE.contains(from), "{from}");
        assert_eq!(kinds(MODULE, &MODULE.replace(from, to)), [kind], "{from} -> {to}");
    }
}
