//! Tests of the transform family: comparison of every kind and many lengths with the definition, and violated rules.

use std::f64::consts::TAU;

use ElementType::{C64, C128, F16, F32, F64, S32};
use xla_hlo::ops::{Fft, FftType};
use xla_hlo::{ArrayShape, ElementType, Literal, Result, Scalar};

use crate::testing::{array, assert_refused, numbers, run};

fn fft(fft_type: FftType, length: &[usize], x: &Literal) -> Result<Literal> {
    run(|_| Fft { fft_type, fft_length: length.to_vec() }, None, std::slice::from_ref(x))
}

fn complex(ty: ElementType, dims: &[usize], f: impl Fn(usize) -> (f64, f64)) -> Literal {
    let element = |i| {
        let (re, im) = f(i);
        Scalar::Complex(re, im)
    };
    Literal::from_fn(&ArrayShape::new(ty, dims), element).unwrap()
}

fn pairs(literal: &Literal) -> Vec<(f64, f64)> {
    (0..literal.array_shape().element_count())
        .map(|i| match literal.get(i) {
            Scalar::Complex(re, im) => (re, im),
            other => panic!("{other:?} is not complex"),
        })
        .collect()
}

/// Returns numbers without a pattern that could hide errors of a transform.
fn value(i: usize) -> (f64, f64) {
    let at = |k: usize| ((i * 7919 + k) % 101) as f64 / 50.0 - 1.0;
    (at(13), at(59))
}

/// Computes the transform over all dimensions by its definition.
fn defined(x: &[(f64, f64)], dims: &[usize], sign: f64) -> Vec<(f64, f64)> {
    let index = |i| xla_hlo::multi_index(dims, i);
    (0..x.len())
        .map(|k| {
            x.iter().enumerate().fold((0.0, 0.0), |sum, (j, x)| {
                let turns: f64 =
                    index(j).iter().zip(index(k)).zip(dims).map(|((&j, k), &n)| (j * k % n) as f64 / n as f64).sum();
                let (sin, cos) = (sign * TAU * turns).sin_cos();
                (sum.0 + x.0 * cos - x.1 * sin, sum.1 + x.0 * sin + x.1 * cos)
            })
        })
        .collect()
}

fn assert_close(what: &str, found: &[(f64, f64)], expected: &[(f64, f64)], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let distance = (a.0 - b.0).abs().max((a.1 - b.1).abs());
        assert!(distance <= tolerance, "{what}: element {i} is {a:?}, not {b:?}");
    }
}

const SIZES: &[&[usize]] =
    &[&[1], &[2], &[3], &[4], &[12], &[17], &[60], &[5, 4], &[4, 5], &[1, 3], &[3, 4, 5], &[2, 3, 6]];

#[test]
fn complex_transforms_are_the_definition() {
    for dims in SIZES {
        let count: usize = dims.iter().product();
        let x: Vec<_> = (0..count).map(value).collect();
        for (ty, tolerance) in [(C64, 1e-5), (C128, 1e-13)] {
            let literal = complex(ty, dims, value);
            let forward = fft(FftType::Fft, dims, &literal).unwrap();
            assert_close(
                &format!("{ty} {dims:?}"),
                &pairs(&forward),
                &defined(&x, dims, -1.0),
                tolerance * count as f64,
            );
            let back = fft(FftType::Ifft, dims, &forward).unwrap();
            assert_close(&format!("back {ty} {dims:?}"), &pairs(&back), &x, tolerance);
        }
    }
}

#[test]
fn real_transforms_keep_the_half_that_says_all() {
    for dims in SIZES {
        let count: usize = dims.iter().product();
        let reals: Vec<f64> = (0..count).map(|i| value(i).0).collect();
        let whole: Vec<_> = reals.iter().map(|&x| (x, 0.0)).collect();
        let n = *dims.last().unwrap();
        let half: Vec<_> =
            defined(&whole, dims, -1.0).chunks_exact(n).flat_map(|line| line[..Fft::half_size(n)].to_vec()).collect();
        for (ty, tolerance) in [(F32, 1e-5), (F64, 1e-13)] {
            let forward = fft(FftType::Rfft, dims, &array(ty, dims, &reals)).unwrap();
            assert_close(&format!("{ty} {dims:?}"), &pairs(&forward), &half, tolerance * count as f64);
            let back: Vec<_> =
                numbers(&fft(FftType::Irfft, dims, &forward).unwrap()).iter().map(|&x| (x, 0.0)).collect();
            assert_close(&format!("back {ty} {dims:?}"), &back, &whole, tolerance);
        }
    }
}

#[test]
fn other_dimensions_number_the_transforms() {
    let x = complex(C128, &[3, 2, 5], value);
    let found = pairs(&fft(FftType::Fft, &[5], &x).unwrap());
    let all = pairs(&x);
    for (line, found) in all.chunks_exact(5).zip(found.chunks_exact(5)) {
        assert_close("line", found, &defined(line, &[5], -1.0), 1e-13);
    }
}

#[test]
fn parts_that_a_real_result_leaves_no_choice_for_have_no_effect() {
    // numpy.fft.irfft([1j, 1+2j, 2+3j], 4) and the 2 by 4 transform of [[1j, 1+2j, 2+3j], [3+4j, 4+5j, 5+6j]].
    let x = complex(C128, &[3], |i| (i as f64, i as f64 + 1.0));
    assert_eq!(numbers(&fft(FftType::Irfft, &[4], &x).unwrap()), [1.0, -1.5, 0.0, 0.5]);
    let x = complex(C128, &[2, 3], |i| (i as f64, i as f64 + 1.0));
    let expected = [2.5, -2.25, 0.0, 1.25, -1.5, 0.75, 0.0, -0.75];
    assert_eq!(numbers(&fft(FftType::Irfft, &[2, 4], &x).unwrap()), expected);
}

#[test]
fn empty_arrays_and_single_elements() {
    let empty = |ty, dims: &[usize]| Literal::zeros(&ArrayShape::new(ty, dims)).unwrap();
    let shape = |literal: Result<Literal>| literal.unwrap().shape().to_string();
    assert_eq!(shape(fft(FftType::Fft, &[0], &empty(C64, &[3, 0]))), "c64[3,0]");
    assert_eq!(shape(fft(FftType::Ifft, &[4], &empty(C64, &[0, 4]))), "c64[0,4]");
    assert_eq!(shape(fft(FftType::Rfft, &[0], &empty(F32, &[2, 0]))), "c64[2,0]");
    assert_eq!(shape(fft(FftType::Rfft, &[0, 4], &empty(F32, &[0, 4]))), "c64[0,3]");
    for size in [0, 1] {
        assert_eq!(shape(fft(FftType::Irfft, &[2, 0], &empty(C128, &[2, size]))), "f64[2,0]");
    }
    let infinite = complex(C64, &[1], |_| (f64::INFINITY, 1.0));
    assert_eq!(pairs(&fft(FftType::Ifft, &[1], &infinite).unwrap()), [(f64::INFINITY, 1.0)]);
}

#[test]
fn broken_rules_are_named() {
    let (x, real) = (complex(C64, &[2, 3], value), array(F32, &[2, 3], &[0.0; 6]));
    for (fft_type, length, operand, message) in [
        (FftType::Fft, &[][..], &x, "must have 1 to 3 dimensions"),
        (FftType::Fft, &[1, 1, 1, 1], &x, "must have 1 to 3 dimensions"),
        (FftType::Fft, &[1, 2, 3], &x, "has 3 dimensions, more than the operand"),
        (FftType::Fft, &[4], &x, "requires size 4 in dimension 1, which has size 3"),
        (FftType::Rfft, &[3, 3], &real, "requires size 3 in dimension 0, which has size 2"),
        (FftType::Irfft, &[3], &x, "requires size 2 in dimension 1, which has size 3"),
        (FftType::Fft, &[3], &real, "must be of c64 or c128, its elements are f32"),
        (FftType::Rfft, &[3], &x, "must be of f32 or f64, its elements are c64"),
        (FftType::Rfft, &[1], &array(F16, &[1], &[0.0]), "must be of f32 or f64, its elements are f16"),
        (FftType::Irfft, &[1], &array(S32, &[1], &[0.0]), "must be of c64 or c128, its elements are s32"),
    ] {
        assert_refused(&format!("{fft_type:?} {length:?}"), fft(fft_type, length, operand), message);
    }
}
