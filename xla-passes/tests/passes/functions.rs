//! Tests of the accuracy of expansions of functions that a target lacks: against the evaluator, in units in the last
//! place.

use std::fmt::Write;

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::eval::Evaluator;
use xla_hlo::ops::{Unary, UnaryOp};
use xla_hlo::{ArrayShape, ElementType, Literal, Module, Opcode, Scalar, Shape};
use xla_passes::{ExpandFunctions, Pass, PassContext, TargetProfile};

/// Returns arguments near all boundaries: powers of two of each size and their neighbours, halves, integers, and
/// special values.
fn arguments(ty: ElementType) -> Vec<f64> {
    let exponents = if ty == ElementType::F64 { -1074..=1023 } else { -149..=127 };
    let mut all = vec![f64::NAN, f64::INFINITY, 0.0];
    for exponent in exponents {
        let power = f64::exp2(f64::from(exponent));
        all.extend([1.0, 1.0 + 1e-6, 1.3, 1.7, 2.0 - 1e-6].map(|factor| factor * power));
    }
    all.extend((0..4000).map(|i| f64::from(i) / 32.0));
    all.extend((0..400).map(|i| 1.0 + f64::from(i) / 1e5));
    all.extend((0..400).map(|i| 1.0 - f64::from(i) / 1e5));
    let negated: Vec<f64> = all.iter().map(|x| -x).collect();
    all.into_iter().chain(negated).map(|x| rounded(x, ty)).collect()
}

fn rounded(x: f64, ty: ElementType) -> f64 {
    match Scalar::Float(x).rounded(ty) {
        Scalar::Float(x) => x,
        other => panic!("{other:?} is not a float"),
    }
}

fn module(op: UnaryOp, shape: &ArrayShape) -> Module {
    let mut module = ModuleBuilder::new("function");
    let mut b = module.computation("main");
    let x = b.parameter(Shape::from(shape.clone())).expect("a parameter");
    let y = b.instruction(Unary::from(op), None, [x]).expect("a function");
    let main = b.finish(y);
    module.finish(main).expect("a module").into_inner()
}

fn values(module: &Module, input: &Literal) -> Vec<f64> {
    let result = Evaluator::new(module).call(module.entry_id(), vec![input.clone()]).expect("it evaluates");
    let value = |i: usize| match result.get(i) {
        Scalar::Float(x) => x,
        other => f64::from(u8::from(other.as_bool())),
    };
    (0..result.array_shape().element_count()).map(value).collect()
}

/// Returns the integer part of the base-2 logarithm of a normal number; for smaller numbers a value below all of them.
fn logarithm(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

/// Returns the distance of two results in units in the last place of the correct one; NaN and infinities only equal
/// themselves.
fn distance(right: f64, found: f64, ty: ElementType) -> f64 {
    if right.to_bits() == found.to_bits() || (right.is_nan() && found.is_nan()) {
        return 0.0;
    }
    if right == 0.0 && found == 0.0 {
        return f64::INFINITY;
    }
    let (mantissa, least) = if ty == ElementType::F64 { (52, -1074) } else { (23, -149) };
    // An infinity counts as the next power of two.
    let top = if ty == ElementType::F64 { f64::MAX } else { f64::from(f32::MAX) };
    let finite = |x: f64| if x.is_infinite() { top.copysign(x) } else { x };
    let (right, found) = (finite(right), finite(found));
    let exponent = if right == 0.0 { least } else { (logarithm(right) - mantissa).max(least) };
    (right - found).abs() / f64::exp2(f64::from(exponent))
}

#[test]
fn formulas_are_as_exact_as_their_docs_say() {
    let mut profile = TargetProfile::generic();
    profile.lacks = TargetProfile::expandable();
    let cx = PassContext::new(&profile);
    let mut table = String::new();
    let mut worst_of_all = 0.0f64;
    for &op in UnaryOp::ALL.iter().filter(|op| profile.lacks.contains(&op.opcode())) {
        for ty in [ElementType::F32, ElementType::F64] {
            let arguments = arguments(ty);
            let shape = ArrayShape::new(ty, [arguments.len()]);
            let input = Literal::from_fn(&shape, |i| Scalar::Float(arguments[i])).expect("arguments");
            let before = module(op, &shape);
            let mut after = before.clone();
            assert!(ExpandFunctions.run(&mut after, &cx).expect("the pass runs").is_changed());
            xla_hlo::verify::check(&after).expect("a valid module");
            let (right, found) = (values(&before, &input), values(&after, &input));
            let distances = right.iter().zip(&found).map(|(&r, &f)| distance(r, f, ty));
            let (at, worst) = distances.enumerate().fold((0, 0.0), |a, b| if b.1 > a.1 { b } else { a });
            writeln!(
                table,
                "{} {ty}: {worst:.1} at {:e}: {:e}, not {:e}",
                op.opcode(),
                arguments[at],
                found[at],
                right[at]
            )
            .expect("text");
            worst_of_all = worst_of_all.max(worst);
        }
    }
    assert!(worst_of_all <= 4.0, "{table}");
}

/// Checks each function alone: the pass expands those that a target may lack and leaves the others, whatever the target
/// lacks.
#[test]
fn every_expandable_function_has_a_formula_and_no_other_has() {
    let shape = ArrayShape::new(ElementType::F32, [2]);
    let mut expanded = 0;
    for &op in UnaryOp::ALL {
        let opcode = op.opcode();
        let is_expandable = TargetProfile::expandable().contains(&opcode);
        let mut profile = TargetProfile::generic();
        // The pass does nothing for a target that lacks no expandable function.
        profile.lacks.extend([opcode, Opcode::Tanh]);
        let mut module = module(if is_expandable { op } else { UnaryOp::Abs }, &shape);
        let (entry, root) = (module.entry_id(), module.entry().root());
        module.computation_mut(entry).set_op(root, Unary::from(op).into());
        let changed = ExpandFunctions.run(&mut module, &PassContext::new(&profile)).expect("the pass runs");
        assert_eq!(changed.is_changed(), is_expandable, "{opcode}");
        expanded += usize::from(is_expandable);
    }
    assert!(expanded > 0 && expanded < UnaryOp::ALL.len());
}
