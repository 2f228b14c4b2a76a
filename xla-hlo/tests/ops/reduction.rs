//! Tests of the reduction family: order, rounding, several arrays, and edge cases.

use ElementType::{BF16, F16, F32, F64, Pred, S8, S32, U8};
use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::{BinaryOp, CompareDirection, Reduce};
use xla_hlo::{CompId, ElementKind, ElementType, Literal, Result, Scalar};

use crate::testing::{append_digit, array, assert_refused, combiner, function, numbers, run, scalar};

/// Reduces one array with a plain binary operation.
fn reduce_with(op: BinaryOp, dimensions: &[usize], x: &Literal, init: &Literal) -> Result<Literal> {
    let ty = x.array_shape().element_type();
    run(
        |m| Reduce { dimensions: dimensions.to_vec(), computation: combiner(m, op, ty) },
        None,
        &[x.clone(), init.clone()],
    )
}

fn counting(ty: ElementType, dims: &[usize]) -> Literal {
    let count: usize = dims.iter().product();
    array(ty, dims, &(0..count).map(|i| i as f64).collect::<Vec<_>>())
}

#[test]
fn sums_over_every_choice_of_dimensions() {
    let x = counting(S32, &[2, 3, 4]);
    let cases: &[(&[usize], &[usize], &[f64])] = &[
        (&[], &[2, 3, 4], &[0.0, 1.0, 2.0]),
        (&[2], &[2, 3], &[6.0, 22.0, 38.0, 54.0, 70.0, 86.0]),
        (&[0], &[3, 4], &[12.0, 14.0, 16.0, 18.0]),
        (&[1], &[2, 4], &[12.0, 15.0, 18.0, 21.0, 48.0]),
        (&[0, 1], &[4], &[60.0, 66.0, 72.0, 78.0]),
        (&[2, 0], &[3], &[60.0, 92.0, 124.0]),
        (&[2, 1, 0], &[], &[276.0]),
    ];
    for (dimensions, dims, begin) in cases {
        let result = reduce_with(BinaryOp::Add, dimensions, &x, &scalar(S32, 0.0)).unwrap();
        assert_eq!(result.array_shape().dims(), *dims, "{dimensions:?}");
        assert_eq!(numbers(&result)[..begin.len()], **begin, "{dimensions:?}");
        let shifted = reduce_with(BinaryOp::Add, dimensions, &x, &scalar(S32, 1000.0)).unwrap();
        assert_eq!(numbers(&shifted)[0], begin[0] + 1000.0, "{dimensions:?}: the initial value counts once");
    }
}

#[test]
fn other_combiners_reduce_in_row_major_order() {
    let x = counting(S32, &[2, 2, 2]);
    for (dimensions, expected) in
        [(vec![2], vec![1.0, 23.0, 45.0, 67.0]), (vec![0, 2], vec![145.0, 2367.0]), (vec![2, 1, 0], vec![1234567.0])]
    {
        let op = |m: &mut ModuleBuilder| Reduce { dimensions: dimensions.clone(), computation: append_digit(m, S32) };
        let result = run(op, None, &[x.clone(), scalar(S32, 0.0)]).unwrap();
        assert_eq!(numbers(&result), expected, "{dimensions:?}");
    }
}

#[test]
fn nothing_to_reduce_gives_the_initial_value() {
    let init = scalar(F32, 7.0);
    for op in [BinaryOp::Add, BinaryOp::Subtract] {
        let empty = reduce_with(op, &[1], &array(F32, &[2, 0], &[]), &init).unwrap();
        assert_eq!(numbers(&empty), [7.0, 7.0], "{op:?} of nothing");
        let none = reduce_with(op, &[1], &array(F32, &[0, 3], &[]), &init).unwrap();
        assert_eq!(none.array_shape().dims(), [0], "{op:?} without results");
    }
    let of_scalar = reduce_with(BinaryOp::Add, &[], &scalar(F32, 2.0), &init).unwrap();
    assert_eq!(numbers(&of_scalar), [9.0]);
}

#[test]
fn every_element_type_reduces() {
    for &ty in ElementType::ALL {
        let x = array(ty, &[3], &[1.0, 1.0, 1.0]);
        let op = match ty.kind() {
            ElementKind::Pred => BinaryOp::And,
            ElementKind::Signed | ElementKind::Unsigned | ElementKind::Complex => BinaryOp::Add,
            ElementKind::Float => BinaryOp::Maximum,
        };
        let result = reduce_with(op, &[0], &x, &scalar(ty, 1.0)).unwrap_or_else(|e| panic!("{ty}: {e}"));
        let expected = Scalar::from_i64(ty, if op == BinaryOp::Add { 4 } else { 1 }).rounded(ty);
        assert_eq!(result.get(0), expected, "{op:?} of {ty}");
    }
}

#[test]
fn each_step_rounds_and_wraps_to_the_combiner_type() {
    let sum = |ty, values: &[f64]| {
        numbers(&reduce_with(BinaryOp::Add, &[0], &array(ty, &[values.len()], values), &scalar(ty, 0.0)).unwrap())[0]
    };
    assert_eq!(sum(S8, &[100.0, 100.0, 100.0]), 44.0);
    assert_eq!(sum(U8, &[200.0, 100.0]), 44.0);
    assert_eq!(sum(BF16, &[256.0, 1.0, 1.0]), 256.0, "bf16 cannot hold 257");
    assert_eq!(sum(F16, &[65504.0, 65504.0]), f64::INFINITY);
    assert_eq!(sum(Pred, &[0.0, 1.0, 0.0]), 1.0);
}

#[test]
fn long_sums_stay_accurate() {
    let n = 50_000;
    let tenth = f64::from(0.1f32);
    let x = array(F32, &[n], &vec![tenth; n]);
    let sum = numbers(&reduce_with(BinaryOp::Add, &[0], &x, &scalar(F32, 0.0)).unwrap())[0];
    let exact = tenth * n as f64;
    assert!((sum - exact).abs() <= exact * 1e-6, "{sum} against {exact}: adding one by one loses 1e-4");
}

#[test]
fn several_arrays_reduce_together() {
    // Returns the greatest value and its index, which is the lowest index among equal values.
    let argmax = |m: &mut ModuleBuilder| {
        let computation = function(m, &[F32, S32, F32, S32], |b, p| {
            let stays = b.compare(CompareDirection::Ge, p[0], p[2])?;
            let value = b.select(stays, p[0], p[2])?;
            let at = b.select(stays, p[1], p[3])?;
            b.tuple([value, at])
        });
        Reduce { dimensions: vec![1], computation }
    };
    let values = array(F32, &[2, 4], &[1.0, 5.0, 5.0, 2.0, -1.0, -2.0, -0.5, -3.0]);
    let places = array(S32, &[2, 4], &[0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0]);
    let inits = [scalar(F32, f64::NEG_INFINITY), scalar(S32, -1.0)];
    let operands = [&[values, places][..], &inits].concat();
    let result = run(argmax, None, &operands).unwrap();
    assert_eq!(numbers(&result.elements()[0]), [5.0, -0.5]);
    assert_eq!(numbers(&result.elements()[1]), [1.0, 2.0]);
    let empty = [array(F32, &[1, 0], &[]), array(S32, &[1, 0], &[])];
    let result = run(argmax, None, &[&empty[..], &inits].concat()).unwrap();
    assert_eq!(numbers(&result.elements()[1]), [-1.0], "nothing to reduce");
}

#[test]
fn the_accumulator_may_have_another_precision() {
    let wide = run(
        |m| Reduce { dimensions: vec![0], computation: combiner(m, BinaryOp::Add, F32) },
        None,
        &[array(BF16, &[3], &[256.0, 1.0, 1.0]), scalar(BF16, 0.0)],
    );
    let wide = wide.unwrap();
    assert_eq!(wide.array_shape().element_type(), F32);
    assert_eq!(numbers(&wide), [258.0]);
    let integers = run(
        |m| Reduce { dimensions: vec![0], computation: combiner(m, BinaryOp::Add, S32) },
        None,
        &[array(S8, &[2], &[100.0, 100.0]), scalar(S32, 1.0)],
    );
    assert_eq!(numbers(&integers.unwrap()), [201.0]);
    let narrow = run(
        |m| Reduce { dimensions: vec![0], computation: combiner(m, BinaryOp::Add, BF16) },
        None,
        &[array(F32, &[2], &[257.0, 1.0]), scalar(F64, 0.0)],
    );
    assert_eq!(numbers(&narrow.unwrap()), [256.0], "elements are rounded before they are combined");
}

#[test]
fn broken_rules_are_named() {
    let (x, zero) = (array(F32, &[2, 3], &[0.0; 6]), scalar(F32, 0.0));
    let add = |m: &mut ModuleBuilder| combiner(m, BinaryOp::Add, F32);
    type Combine = Box<dyn Fn(&mut ModuleBuilder) -> CompId>;
    let cases: Vec<(Vec<usize>, Combine, Vec<Literal>, &str)> = vec![
        (vec![2], Box::new(add), vec![x.clone(), zero.clone()], "names dimension 2"),
        (vec![1, 1], Box::new(add), vec![x.clone(), zero.clone()], "names dimension 1 twice"),
        (vec![0], Box::new(add), vec![x.clone(), zero.clone(), zero.clone()], "N arrays and N initial values"),
        (vec![0], Box::new(add), vec![], "N arrays and N initial values"),
        (vec![0], Box::new(add), vec![x.clone(), x.clone()], "initial value 0 must be a scalar"),
        (
            vec![0],
            Box::new(add),
            vec![x.clone(), array(F32, &[3, 2], &[0.0; 6]), zero.clone(), zero.clone()],
            "same dimensions",
        ),
        (vec![0], Box::new(add), vec![x.clone(), scalar(S32, 0.0)], "initial values of array 0 are s32"),
        (vec![0], Box::new(add), vec![array(S32, &[1], &[0.0]), zero.clone()], "elements of array 0 are s32"),
        (
            vec![0],
            Box::new(|m| function(m, &[F32], |b, p| b.negate(p[0]))),
            vec![x.clone(), zero.clone()],
            "1 accumulators and 1 elements",
        ),
        (
            vec![0],
            Box::new(|m| function(m, &[F32, F32], |b, p| b.compare(CompareDirection::Lt, p[0], p[1]))),
            vec![x.clone(), zero.clone()],
            "returns pred as result 0",
        ),
        (
            vec![0],
            Box::new(|m| function(m, &[F32, F32], |b, p| b.tuple([p[0], p[1]]))),
            vec![x.clone(), zero.clone()],
            "1 accumulators and 1 elements",
        ),
    ];
    for (dimensions, computation, operands, message) in cases {
        let op = |m: &mut ModuleBuilder| Reduce { dimensions: dimensions.clone(), computation: computation(m) };
        assert_refused(&format!("{dimensions:?}"), run(op, None, &operands), message);
    }
}
