//! Tests of the dot family: comparison with sums by index, for every element type, and edge cases.

use xla_hlo::ops::{Dot, DotAlgorithm, DotDims, OpRules, Precision, ShapeContext};
use xla_hlo::{ArrayShape, ElementType, IndexIter, Literal, Result, Scalar, Shape, linear_index};

use crate::testing::{array, assert_refused, numbers, run};

fn dims(lhs_batch: &[usize], rhs_batch: &[usize], lhs_contracting: &[usize], rhs_contracting: &[usize]) -> DotDims {
    DotDims {
        lhs_batch: lhs_batch.to_vec(),
        rhs_batch: rhs_batch.to_vec(),
        lhs_contracting: lhs_contracting.to_vec(),
        rhs_contracting: rhs_contracting.to_vec(),
    }
}

fn dot(dims: DotDims) -> Dot {
    Dot { dims, precision: Vec::new(), algorithm: None }
}

fn matmul() -> Dot {
    dot(dims(&[], &[], &[1], &[0]))
}

fn evaluate(op: &Dot, lhs: &Literal, rhs: &Literal, ty: ElementType) -> Result<Literal> {
    let module = xla_hlo::Module::new("test");
    let shapes = [lhs.shape(), rhs.shape()];
    let shape = op.infer_shape(&ShapeContext::new(&module, &shapes, None))?;
    let written = shape.expect_array()?.clone().with_element_type(ty);
    run(|_| op.clone(), Some(written.into()), &[lhs.clone(), rhs.clone()])
}

/// Computes one result by its definition, with operand indices assembled from the roles of their dimensions.
fn written_out(dims: &DotDims, lhs: &Literal, rhs: &Literal, index: &[usize]) -> f64 {
    let (l, r) = (lhs.array_shape().dims(), rhs.array_shape().dims());
    let free_l: Vec<usize> =
        (0..l.len()).filter(|d| !dims.lhs_batch.contains(d) && !dims.lhs_contracting.contains(d)).collect();
    let free_r: Vec<usize> =
        (0..r.len()).filter(|d| !dims.rhs_batch.contains(d) && !dims.rhs_contracting.contains(d)).collect();
    let (batch, free) = index.split_at(dims.lhs_batch.len());
    let (rows, columns) = free.split_at(free_l.len());
    let contracted: Vec<usize> = dims.lhs_contracting.iter().map(|&d| l[d]).collect();
    let mut sum = 0.0;
    let mut steps = IndexIter::new(&contracted);
    while let Some(step) = steps.next_index() {
        let put = |rank: usize, roles: [(&[usize], &[usize]); 3]| {
            let mut index = vec![0; rank];
            for (dims, values) in roles {
                dims.iter().zip(values).for_each(|(&d, &v)| index[d] = v);
            }
            index
        };
        let at_l = put(l.len(), [(&dims.lhs_batch, batch), (&free_l, rows), (&dims.lhs_contracting, step)]);
        let at_r = put(r.len(), [(&dims.rhs_batch, batch), (&free_r, columns), (&dims.rhs_contracting, step)]);
        sum += numbers(lhs)[linear_index(l, &at_l)] * numbers(rhs)[linear_index(r, &at_r)];
    }
    sum
}

#[test]
fn every_arrangement_of_dimensions() {
    // Roles, dimensions of the left operand, of the right operand, and of the result.
    type Case = (DotDims, Vec<usize>, Vec<usize>, Vec<usize>);
    let cases: Vec<Case> = vec![
        (dims(&[], &[], &[1], &[0]), vec![2, 3], vec![3, 4], vec![2, 4]),
        (dims(&[], &[], &[0], &[1]), vec![3, 2], vec![4, 3], vec![2, 4]),
        (dims(&[], &[], &[0], &[0]), vec![3], vec![3], vec![]),
        (dims(&[], &[], &[], &[]), vec![2], vec![3], vec![2, 3]),
        (dims(&[], &[], &[], &[]), vec![], vec![], vec![]),
        (dims(&[0], &[0], &[2], &[1]), vec![2, 3, 4], vec![2, 4, 5], vec![2, 3, 5]),
        (dims(&[1], &[2], &[0], &[1]), vec![4, 2, 3], vec![5, 4, 2], vec![2, 3, 5]),
        (dims(&[2, 0], &[0, 1], &[1], &[2]), vec![2, 4, 3], vec![3, 2, 4], vec![3, 2]),
        (dims(&[], &[], &[0, 2], &[2, 1]), vec![2, 3, 4], vec![5, 4, 2], vec![3, 5]),
        (dims(&[], &[], &[2, 0], &[1, 2]), vec![2, 3, 4], vec![5, 4, 2], vec![3, 5]),
        (dims(&[0], &[0], &[], &[]), vec![3, 2], vec![3], vec![3, 2]),
        (dims(&[], &[], &[1], &[0]), vec![2, 0], vec![0, 3], vec![2, 3]),
        (dims(&[], &[], &[1], &[0]), vec![0, 2], vec![2, 3], vec![0, 3]),
    ];
    for (roles, l, r, expected) in cases {
        let fill = |dims: &[usize], seed: i64| {
            let count = dims.iter().product::<usize>() as i64;
            array(ElementType::S32, dims, &(0..count).map(|i| ((i * 7 + seed) % 11 - 5) as f64).collect::<Vec<_>>())
        };
        let (lhs, rhs) = (fill(&l, 1), fill(&r, 3));
        let result = evaluate(&dot(roles.clone()), &lhs, &rhs, ElementType::S32).unwrap();
        assert_eq!(result.array_shape().dims(), expected, "{roles:?}");
        let mut indices = IndexIter::new(&expected);
        for found in numbers(&result) {
            let index = indices.next_index().unwrap();
            assert_eq!(found, written_out(&roles, &lhs, &rhs, index), "{roles:?} at {index:?}");
        }
    }
}

#[test]
fn every_element_type_rounds_or_wraps_once() {
    for &ty in ElementType::ALL {
        let lhs = array(ty, &[2, 2], &[1.0, 2.0, 2.0, 1.0]);
        let rhs = array(ty, &[2, 2], &[1.0, 2.0, 2.0, 2.0]);
        let result = evaluate(&matmul(), &lhs, &rhs, ty).unwrap();
        for (i, exact) in [5, 6, 4, 6].into_iter().enumerate() {
            assert_eq!(result.get(i), Scalar::from_i64(ty, exact).rounded(ty), "{ty} at {i}");
        }
    }
}

#[test]
fn mixed_element_types() {
    use ElementType::{BF16, C64, F8E4M3FN, F16, F32, F64, Pred, S4, S8, S32, S64, U8, U32};
    for (l, r, result) in [
        (S8, S8, S32),
        (S4, S4, S8),
        (U8, S8, S32),
        (S64, U32, S64),
        (BF16, BF16, F32),
        (F32, BF16, F32),
        (F16, F32, F64),
        (F8E4M3FN, F8E4M3FN, F32),
        (F64, F64, F32),
        (S32, S32, F32),
        (Pred, Pred, S32),
        (F32, C64, C64),
    ] {
        let (a, b) = (array(l, &[1, 2], &[1.0, 1.0]), array(r, &[2, 1], &[1.0, 1.0]));
        let product = evaluate(&matmul(), &a, &b, result).unwrap_or_else(|e| panic!("{l} x {r} -> {result}: {e}"));
        assert_eq!(product.array_shape().element_type(), result);
        assert_eq!(numbers(&product), [2.0], "{l} x {r} -> {result}");
    }
    let signs = evaluate(&matmul(), &array(U8, &[1, 1], &[200.0]), &array(S8, &[1, 1], &[-100.0]), S32).unwrap();
    assert_eq!(numbers(&signs), [-20000.0], "each operand is extended by its own signedness");
    let module = xla_hlo::Module::new("test");
    let (lhs, rhs) = (Shape::array(BF16, [2]), Shape::array(F32, [2]));
    let inferred = dot(dims(&[], &[], &[0], &[0])).infer_shape(&ShapeContext::new(&module, &[&lhs, &rhs], None));
    assert_eq!(inferred.unwrap(), Shape::scalar(F32), "unwritten, the wider type");
}

#[test]
fn sums_are_converted_to_other_kinds_of_numbers() {
    use ElementType::{BF16, C64, C128, F32, F64, Pred, S8, S32, S64, U8, U32};
    let product = |l, r, result, x: [f64; 2], y: [f64; 2]| {
        let (a, b) = (array(l, &[1, 2], &x), array(r, &[2, 1], &y));
        let product = evaluate(&matmul(), &a, &b, result).unwrap_or_else(|e| panic!("{l} x {r} -> {result}: {e}"));
        match product.get(0) {
            Scalar::Pred(p) => f64::from(u8::from(p)),
            _ => numbers(&product)[0],
        }
    };
    // Expected values are XLA's results.
    for (l, r, result, expected) in [
        (BF16, BF16, S32, 4.0),
        (F32, F64, U8, 4.0),
        (F32, S32, S64, 3.0),
        (S32, F32, U32, 2.0),
        (F64, BF16, Pred, 1.0),
        (C64, F32, S32, 4.0),
        (F64, C64, F32, 4.5),
        (C128, C64, BF16, 4.5),
        (S32, S32, S8, 2.0),
    ] {
        assert_eq!(product(l, r, result, [1.5, 0.5], [2.5, 1.5]), expected, "{l} x {r} -> {result}");
    }
    assert_eq!(product(F32, F32, S8, [2.5, 0.0], [-1e30, 0.0]), -128.0, "sums of floats saturate");
    assert_eq!(product(F32, F32, U8, [2.5, 0.0], [-1.0, 0.0]), 0.0);
    assert_eq!(product(F32, F32, S32, [f64::NAN, 0.0], [1.0, 0.0]), 0.0);
    assert_eq!(product(S32, S32, S8, [100.0, 100.0], [2.0, 1.0]), 44.0, "sums of integers wrap");
    assert_eq!(product(S32, Pred, Pred, [1.0, -1.0], [1.0, 1.0]), 0.0, "the sum of integers is 0");
    assert_eq!(product(F64, F64, F32, [1e300, 0.0], [1e-300, 0.0]), 1.0, "operands are not rounded");
}

#[test]
fn accumulation_is_wider_than_the_result() {
    let vector = |ty, values: &[f64]| array(ty, &[values.len()], values);
    let inner = dot(dims(&[], &[], &[0], &[0]));
    let ones = vec![1.0; 4096];
    let (a, b) = (vector(ElementType::F16, &ones), vector(ElementType::F16, &ones));
    let sum = evaluate(&inner, &a, &b, ElementType::F16).unwrap();
    assert_eq!(numbers(&sum), [4096.0], "in f16 itself the sum would stop at 2048");
    let large = vector(ElementType::F32, &[16777216.0, 1.0, 1.0, -16777216.0]);
    let sum = evaluate(&inner, &large, &vector(ElementType::F32, &[1.0; 4]), ElementType::F32).unwrap();
    assert_eq!(numbers(&sum), [2.0]);
    let s64 = |v: i64| Literal::from_fn(&ArrayShape::new(ElementType::S64, [2]), |_| Scalar::Signed(v)).unwrap();
    let wrapped = evaluate(&inner, &s64(i64::MAX), &s64(2), ElementType::S64).unwrap();
    assert_eq!(wrapped.get(0), Scalar::Signed(-4));
    let u64 = |v: u64| Literal::from_fn(&ArrayShape::new(ElementType::U64, [1]), |_| Scalar::Unsigned(v)).unwrap();
    let wrapped = evaluate(&inner, &u64(u64::MAX), &u64(u64::MAX), ElementType::U64).unwrap();
    assert_eq!(wrapped.get(0), Scalar::Unsigned(1));
    let s8 =
        evaluate(&inner, &vector(ElementType::S8, &[100.0; 3]), &vector(ElementType::S8, &[2.0; 3]), ElementType::S8);
    assert_eq!(numbers(&s8.unwrap()), [88.0], "600 modulo 256");
}

#[test]
fn complex_and_special_values() {
    let inner = dot(dims(&[], &[], &[0], &[0]));
    for ty in [ElementType::C64, ElementType::C128] {
        let complex = |values: [(f64, f64); 2]| {
            Literal::from_fn(&ArrayShape::new(ty, [2]), |i| Scalar::Complex(values[i].0, values[i].1)).unwrap()
        };
        let (a, b) = (complex([(1.0, 2.0), (0.0, 1.0)]), complex([(3.0, 4.0), (0.0, 1.0)]));
        let product = evaluate(&inner, &a, &b, ty).unwrap();
        assert_eq!(product.get(0), Scalar::Complex(-6.0, 10.0), "{ty}");
    }
    let f32s = |values: &[f64]| array(ElementType::F32, &[2], values);
    let times = |a: &[f64], b: &[f64]| numbers(&evaluate(&inner, &f32s(a), &f32s(b), ElementType::F32).unwrap())[0];
    assert!(times(&[f64::INFINITY, 1.0], &[0.0, 1.0]).is_nan());
    assert!(times(&[f64::NAN, 1.0], &[0.0, 1.0]).is_nan());
    assert_eq!(times(&[f64::INFINITY, 1.0], &[2.0, 1.0]), f64::INFINITY);
    assert_eq!(times(&[3e38, 3e38], &[1.0, 1.0]), f64::INFINITY, "overflow when rounded");
}

#[test]
fn precision_and_algorithm_do_not_change_the_exact_result() {
    let (a, b) = (array(ElementType::F32, &[1, 1], &[1.0 + 1e-6]), array(ElementType::F32, &[1, 1], &[3.0]));
    let exact = evaluate(&matmul(), &a, &b, ElementType::F32).unwrap();
    for &algorithm in DotAlgorithm::ALL {
        let op = Dot { precision: vec![Precision::High; 2], algorithm: Some(algorithm), ..matmul() };
        assert_eq!(evaluate(&op, &a, &b, ElementType::F32).unwrap(), exact, "{}", algorithm.name());
    }
}

#[test]
fn broken_rules_are_named() {
    let f32 = |dims: &[usize]| (ElementType::F32, dims.to_vec());
    let m = f32(&[2, 2]);
    let cases = [
        (dims(&[], &[], &[1], &[]), &m, &m, "contracting dimensions pair up"),
        (dims(&[0], &[], &[1], &[0]), &m, &m, "batch dimensions pair up"),
        (dims(&[], &[], &[2], &[0]), &m, &m, "do not both exist"),
        (dims(&[], &[], &[1], &[0]), &m, &f32(&[3, 2]), "has size 2 and dimension 0 of the right operand"),
        (dims(&[1], &[0], &[1], &[1]), &m, &m, "left operand: batch and contracting dimensions [1, 1]"),
        (dims(&[0], &[1], &[1], &[1]), &m, &m, "right operand: batch and contracting dimensions [1, 1]"),
        (dims(&[], &[], &[], &[]), &f32(&[1 << 40]), &f32(&[1 << 40]), "more elements than can be addressed"),
    ];
    let module = xla_hlo::Module::new("test");
    for (roles, l, r, message) in cases {
        let (lhs, rhs) = (Shape::array(l.0, l.1.clone()), Shape::array(r.0, r.1.clone()));
        let result = dot(roles.clone()).infer_shape(&ShapeContext::new(&module, &[&lhs, &rhs], None));
        let error = result.expect_err(message);
        assert!(error.message().contains(message), "{roles:?}: {}", error.message());
    }
    let op = Dot { precision: vec![Precision::High], ..matmul() };
    let operand = array(ElementType::F32, &[1, 1], &[1.0]);
    assert_refused("precision", run(|_| op, None, &[operand.clone(), operand]), "one entry for each of the 2 operands");
}
