//! Tests of the permission to round the operands of products to TF32.

use xla_hlo::Op;
use xla_hlo::ops::DotAlgorithm;
use xla_hlo::text::parse_module;
use xla_passes::{AllowTf32, Pass, PassContext, TargetProfile};

/// Whether the operation on those types is marked, with or without permission by the profile.
fn is_marked(types: [&str; 3], operation: &str, tf32: bool) -> bool {
    let [x, y, r] = types;
    let text = format!(
        "ENTRY main {{\n x = {x}[1,4,4] parameter(0)\n y = {y}[1,4,4] parameter(1)\n ROOT r = {r}[1,4,4] {operation}\n}}"
    );
    let mut module = parse_module(&text).unwrap();
    let profile = TargetProfile { tf32, ..TargetProfile::generic() };
    AllowTf32.run(&mut module, &PassContext::new(&profile)).unwrap();
    assert!(!AllowTf32.run(&mut module, &PassContext::new(&profile)).unwrap().is_changed());
    let entry = module.entry();
    let algorithm = match entry[entry.root()].op() {
        Op::Dot(op) => op.algorithm,
        Op::Convolution(op) => op.algorithm,
        other => panic!("{other:?}"),
    };
    algorithm == Some(DotAlgorithm::Tf32Tf32F32)
}

const DOT: &str =
    "dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}";
const CONVOLUTION: &str = "convolution(x, y), window={size=1}, dim_labels=b0f_0io->b0f";

#[test]
fn what_asks_for_nothing_better_may_round() {
    let f32 = ["f32"; 3];
    for operation in [DOT, CONVOLUTION] {
        assert!(is_marked(f32, operation, true));
        assert!(!is_marked(f32, operation, false));
        assert!(is_marked(f32, &format!("{operation}, operand_precision={{default,default}}"), true));
        for precision in ["high,default", "default,highest", "highest,highest"] {
            assert!(!is_marked(f32, &format!("{operation}, operand_precision={{{precision}}}"), true));
        }
        assert!(!is_marked(f32, &format!("{operation}, algorithm=dot_f32_f32_f32"), true));
        assert!(!is_marked(f32, &format!("{operation}, algorithm=dot_tf32_tf32_f32_x3"), true));
    }
}

#[test]
fn other_types_stay_as_they_are() {
    for types in [["bf16"; 3], ["f64"; 3], ["c64"; 3], ["f32", "f32", "f64"], ["bf16", "f32", "f32"]] {
        assert!(!is_marked(types, DOT, true), "{types:?}");
    }
}
