//! Tests of the equality of computations and constants, by which common subexpressions are merged.

use xla_hlo::Computation;
use xla_hlo::text::parse_module;
use xla_passes::internals::{computations_equal, structure_hash};
use xla_passes::{CommonSubexpressions, Pass, PassContext, TargetProfile};

#[test]
fn computations_of_equal_operations_on_other_constants_are_not_compared() {
    let text = include_str!("programs/computations_of_equal_operations_on_other_constants_are_not_compared.hlo");
    let module = parse_module(text).unwrap();
    let functions: Vec<&Computation> = ["a", "b", "c", "d", "e"]
        .map(|name| module.iter().find(|(_, computation)| computation.name() == name).unwrap().1)
        .to_vec();
    for (x, &left) in functions.iter().enumerate() {
        for &right in &functions[x + 1..] {
            let same_hash = structure_hash(left) == structure_hash(right);
            assert_eq!(same_hash, computations_equal(left, right), "{} and {}", left.name(), right.name());
        }
    }
}

/// Whether the computation `b` is equal to `a`.
fn is_like_a(b: &str) -> bool {
    let text = format!(
        "HloModule m
        a {{ p = f32[2] parameter(0)  n = f32[2] negate(p)  ROOT r = f32[4] concatenate(p, n), dimensions={{0}} }}
        b {{ {b} }}
        ENTRY f {{ ROOT x = f32[] parameter(0) }}"
    );
    let module = parse_module(&text).unwrap();
    let find = |name: &str| module.iter().find(|(_, computation)| computation.name() == name).unwrap().1;
    computations_equal(find("a"), find("b"))
}

#[test]
fn computations_are_equal_but_for_names() {
    assert!(is_like_a(
        "q = f32[2] parameter(0)  m = f32[2] negate(q)  ROOT s = f32[4] concatenate(q, m), dimensions={0}"
    ));
    for other in [
        // Cases differ in operands, results, shapes or operations, or have further operands, instructions or
        // orders.
        "p = f32[2] parameter(0)  n = f32[2] negate(p)  ROOT r = f32[4] concatenate(n, p), dimensions={0}",
        "p = f32[2] parameter(0)  ROOT n = f32[2] negate(p)  r = f32[4] concatenate(p, n), dimensions={0}",
        "p = f64[2] parameter(0)  n = f64[2] negate(p)  ROOT r = f64[4] concatenate(p, n), dimensions={0}",
        "p = f32[2] parameter(0)  n = f32[2] abs(p)  ROOT r = f32[4] concatenate(p, n), dimensions={0}",
        "p = f32[2] parameter(0)  n = f32[2] negate(p)  ROOT r = f32[6] concatenate(p, n, n), dimensions={0}",
        "p = f32[2] parameter(0)  n = f32[2] negate(p)  ROOT r = f32[4] concatenate(p, n), dimensions={0}  m = f32[2] abs(p)",
        "p = f32[2] parameter(0)  n = f32[2] negate(p), control-predecessors={p}  ROOT r = f32[4] concatenate(p, n), dimensions={0}",
    ] {
        assert!(!is_like_a(other), "{other}");
    }
}

#[test]
fn large_constants_differ_in_any_place() {
    const LENGTH: usize = 200;
    for changed in [None, Some(0), Some(LENGTH / 2), Some(LENGTH - 1)] {
        let list = |changed| {
            let number = |i| if Some(i) == changed { 1000 } else { i };
            (0..LENGTH).map(|i| number(i).to_string()).collect::<Vec<_>>().join(",")
        };
        let (a, b) = (list(None), list(changed));
        let text = format!(
            "ENTRY f {{ a = s32[{LENGTH}] constant({{{a}}})  b = s32[{LENGTH}] constant({{{b}}})  \
             ROOT t = (s32[{LENGTH}], s32[{LENGTH}]) tuple(a, b) }}"
        );
        let mut module = parse_module(&text).unwrap();
        let profile = TargetProfile::generic();
        CommonSubexpressions.run(&mut module, &PassContext::new(&profile)).unwrap();
        assert_eq!(module.entry().len(), if changed.is_some() { 3 } else { 2 }, "{changed:?}");
    }
}
