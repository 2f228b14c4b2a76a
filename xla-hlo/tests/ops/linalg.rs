//! Tests of the linear algebra family: residuals of results in their equations, and violated rules.

use ElementType::{BF16, C64, C128, F16, F32, F64, S32};
use xla_hlo::ops::{Cholesky, TransposeKind, TriangularSolve};
use xla_hlo::{ArrayShape, ElementType, Literal, Result, Scalar};

use crate::testing::{Complex, array, assert_refused, complex_numbers, matrix_product, numbers, run};

fn cholesky(lower: bool, a: &Literal) -> Result<Literal> {
    run(|_| Cholesky { lower }, None, std::slice::from_ref(a))
}

fn value(i: usize) -> Complex {
    let at = |k: usize| ((i * 7919 + k) % 101) as f64 / 50.0 - 1.0;
    (at(13), at(59))
}

fn matrix(ty: ElementType, dims: &[usize], f: impl Fn(usize) -> Complex) -> Literal {
    let element = |i| match (f(i), ty.is_complex()) {
        ((re, im), true) => Scalar::Complex(re, im),
        ((re, _), false) => Scalar::Float(re),
    };
    Literal::from_fn(&ArrayShape::new(ty, dims), element).unwrap()
}

fn conjugate(x: Complex) -> Complex {
    (x.0, -x.1)
}

fn assert_close(what: &str, found: &[Complex], expected: &[Complex], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let distance = (a.0 - b.0).abs().max((a.1 - b.1).abs());
        assert!(distance <= tolerance, "{what}: element {i} is {a:?}, not {b:?}");
    }
}

#[test]
fn factors_multiply_to_the_matrix() {
    for (ty, tolerance) in [(F64, 1e-13), (C128, 1e-13), (F32, 1e-5), (C64, 1e-5), (F16, 2e-2), (BF16, 1e-1)] {
        for n in [1, 2, 5, 9] {
            let real = |x: Complex| if ty.is_complex() { x } else { (x.0, 0.0) };
            let g = |i: usize, j: usize| real(value(i * n + j));
            let mut a = matrix_product((n, n, n), g, |i, j| conjugate(g(j, i)));
            (0..n).for_each(|i| a[i * n + i].0 += 1.0);
            for lower in [true, false] {
                // The other triangle, and imaginary parts on the diagonal, must have no effect.
                let spoilt = matrix(ty, &[n, n], |at| match (at / n).cmp(&(at % n)) {
                    std::cmp::Ordering::Equal => (a[at].0, 7.0),
                    order if (order == std::cmp::Ordering::Greater) == lower => a[at],
                    _ => (f64::NAN, 3.0),
                });
                let factor = complex_numbers(&cholesky(lower, &spoilt).unwrap());
                let f = |i: usize, j: usize| factor[i * n + j];
                let found = match lower {
                    true => matrix_product((n, n, n), f, |i, j| conjugate(f(j, i))),
                    false => matrix_product((n, n, n), |i, j| conjugate(f(j, i)), f),
                };
                let what = format!("{ty} {n} lower={lower}");
                assert_close(&what, &found, &a, tolerance * n as f64);
                let outside = |at: usize| if lower { at / n < at % n } else { at / n > at % n };
                assert!((0..n * n).all(|at| !outside(at) || factor[at] == (0.0, 0.0)), "{what}: the other triangle");
            }
        }
    }
}

#[test]
fn what_is_not_positive_definite_is_nan_by_itself() {
    let good = [4.0, 0.0, 2.0, 5.0];
    for bad in [[1.0, 0.0, 2.0, 1.0], [0.0; 4], [f64::NAN, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 1.0], [-1.0, 0.0, 0.0, 1.0]]
    {
        let factors = numbers(&cholesky(true, &array(F32, &[2, 2, 2], &[bad, good].concat())).unwrap());
        assert!(factors[..4].iter().all(|x| x.is_nan()), "{bad:?} gave {factors:?}");
        assert_eq!(factors[4..], [2.0, 0.0, 1.0, 2.0]);
    }
    for dims in [&[0, 0][..], &[3, 0, 0], &[0, 2, 2]] {
        assert_eq!(cholesky(false, &array(F64, dims, &[])).unwrap().array_shape().dims(), dims);
    }
}

/// Returns every form of the operation.
fn forms() -> impl Iterator<Item = TriangularSolve> {
    let kinds = [TransposeKind::NoTranspose, TransposeKind::Transpose, TransposeKind::Adjoint];
    (0..24).map(move |i| TriangularSolve {
        left_side: i & 1 != 0,
        lower: i & 2 != 0,
        unit_diagonal: i & 4 != 0,
        transpose_a: kinds[i / 8],
    })
}

#[test]
fn solutions_solve_the_equations() {
    let (n, m, batch) = (5, 3, 2);
    for (ty, tolerance) in [(F64, 1e-10), (C128, 1e-10), (F32, 1e-3), (C64, 1e-3), (F16, 1e-1)] {
        for op in forms() {
            let real = |x: Complex| if ty.is_complex() { x } else { (x.0, 0.0) };
            let a_of = |b: usize, i: usize, j: usize| match i.cmp(&j) {
                std::cmp::Ordering::Equal if op.unit_diagonal => (f64::NAN, f64::NAN),
                std::cmp::Ordering::Equal => real((3.0 + i as f64, 1.0)),
                order if (order == std::cmp::Ordering::Greater) == op.lower => real(value(100 * b + i * n + j)),
                _ => (f64::NAN, f64::NAN),
            };
            let a = matrix(ty, &[batch, n, n], |at| a_of(at / (n * n), at / n % n, at % n));
            let dims = if op.left_side { [batch, n, m] } else { [batch, m, n] };
            let b = matrix(ty, &dims, value);
            let x = complex_numbers(&run(|_| op.clone(), None, &[a.clone(), b.clone()]).unwrap());
            let (a, b) = (complex_numbers(&a), complex_numbers(&b));
            for k in 0..batch {
                let (a, x, b) = (&a[k * n * n..], &x[k * n * m..], &b[k * n * m..(k + 1) * n * m]);
                let triangle = |i: usize, j: usize| match i.cmp(&j) {
                    std::cmp::Ordering::Equal if op.unit_diagonal => (1.0, 0.0),
                    std::cmp::Ordering::Equal => a[i * n + j],
                    order if (order == std::cmp::Ordering::Greater) == op.lower => a[i * n + j],
                    _ => (0.0, 0.0),
                };
                let op_a = |i: usize, j: usize| match op.transpose_a {
                    TransposeKind::NoTranspose => triangle(i, j),
                    TransposeKind::Transpose => triangle(j, i),
                    TransposeKind::Adjoint => conjugate(triangle(j, i)),
                };
                let found = match op.left_side {
                    true => matrix_product((n, n, m), op_a, |i, j| x[i * m + j]),
                    false => matrix_product((m, n, n), |i, j| x[i * n + j], op_a),
                };
                assert_close(&format!("{ty} {op:?}"), &found, b, tolerance);
            }
        }
    }
}

#[test]
fn zeros_on_the_diagonal_divide() {
    let op =
        TriangularSolve { left_side: true, lower: true, unit_diagonal: false, transpose_a: TransposeKind::NoTranspose };
    let a = array(F32, &[2, 2], &[2.0, 9.0, 1.0, 0.0]);
    let x = run(|_| op.clone(), None, &[a.clone(), array(F32, &[2, 3], &[2.0, 2.0, 2.0, 2.0, 1.0, 0.0])]).unwrap();
    let x = numbers(&x);
    assert_eq!((x[3], x[5]), (f64::INFINITY, f64::NEG_INFINITY));
    assert!(x[4].is_nan());
    for dims in [[2, 0], [0, 0]] {
        let a = array(F32, &[dims[0], dims[0]], &vec![1.0; dims[0] * dims[0]]);
        assert!(run(|_| op.clone(), None, &[a, array(F32, &dims, &[])]).unwrap().bytes().is_empty());
    }
}

#[test]
fn broken_rules_are_named() {
    let f32s = |dims: &[usize]| array(F32, dims, &vec![1.0; dims.iter().product()]);
    assert_refused("not square", cholesky(true, &f32s(&[2, 3])), "must be those of a square matrix, it is f32[2,3]");
    assert_refused("no matrix", cholesky(true, &f32s(&[2])), "must be those of a square matrix");
    assert_refused("integers", cholesky(true, &array(S32, &[1, 1], &[1.0])), "must have float or complex elements");
    let solve = |left_side, a: &Literal, b: &Literal| {
        let op =
            TriangularSolve { left_side, lower: true, unit_diagonal: false, transpose_a: TransposeKind::Transpose };
        run(|_| op, None, &[a.clone(), b.clone()])
    };
    assert_refused("not square", solve(true, &f32s(&[2, 3]), &f32s(&[2, 2])), "operand 0 must be those of a square");
    assert_refused("rows", solve(true, &f32s(&[2, 2]), &f32s(&[3, 2])), "size 2 in dimension 0 of operand 1");
    assert_refused("columns", solve(false, &f32s(&[2, 2]), &f32s(&[2, 3])), "size 2 in dimension 1 of operand 1");
    assert_refused("rank", solve(true, &f32s(&[1, 2, 2]), &f32s(&[2, 2])), "must have the same rank");
    assert_refused("batch", solve(true, &f32s(&[3, 2, 2]), &f32s(&[2, 2, 2])), "before the last two must be equal");
    assert_refused(
        "types",
        solve(true, &f32s(&[2, 2]), &array(F64, &[2, 2], &[1.0; 4])),
        "element types must be equal",
    );
}
