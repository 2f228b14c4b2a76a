//! Tests of functions of complex numbers: special values, branch cuts and accuracy against tables; arithmetic.

use xla_hlo::ops::{Binary, BinaryOp, Compare, CompareDirection, Unary, UnaryOp};
use xla_hlo::{ElementType, Literal, Scalar};

use crate::support::{f64_of, rows, run, scalars, vector, wholes};

const TABLE: &str = include_str!("../data/complex_functions.txt");
const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

type Parts = (f64, f64);

fn literal(ty: ElementType, values: &[Parts]) -> Literal {
    vector(ty, &values.iter().map(|&(re, im)| Scalar::Complex(re, im)).collect::<Vec<_>>())
}

fn parts(literal: &Literal) -> Vec<Parts> {
    let pair = |x| if let Scalar::Complex(re, im) = x { (re, im) } else { panic!("{x:?} is not complex") };
    scalars(literal).into_iter().map(pair).collect()
}

fn parts_of(digits: &str) -> Parts {
    let (re, im) = digits.split_once(',').unwrap();
    (f64_of(re), f64_of(im))
}

fn unary(op: UnaryOp, values: &[Parts]) -> Vec<Parts> {
    parts(&run(Unary::from(op), &[literal(ElementType::C128, values)], None).unwrap())
}

fn binary(op: BinaryOp, a: Parts, b: Parts) -> Parts {
    let operands = [literal(ElementType::C128, &[a]), literal(ElementType::C128, &[b])];
    parts(&run(Binary { op }, &operands, None).unwrap())[0]
}

fn named(name: &str) -> UnaryOp {
    *UnaryOp::ALL.iter().find(|op| op.opcode().name() == name).unwrap()
}

/// Whether two numbers agree up to rounding: NaNs, infinities and zeros with their signs, other numbers to ten digits.
fn alike(found: f64, expected: f64) -> bool {
    if expected.is_nan() || found.is_nan() {
        return found.is_nan() && expected.is_nan();
    }
    if !expected.is_finite() || expected == 0.0 {
        return found == expected && found.is_sign_positive() == expected.is_sign_positive();
    }
    (found - expected).abs() <= 1e-10 * expected.abs()
}

/// Whether C does not specify the sign of a zero or an infinite part: an argument is NaN, or the part that is an angle
/// is infinite.
fn is_sign_open(op: UnaryOp, z: Parts) -> bool {
    let turns = if matches!(op, UnaryOp::Sine | UnaryOp::Cosine | UnaryOp::Tan) { z.0 } else { z.1 };
    z.0.is_nan() || z.1.is_nan() || turns.is_infinite()
}

#[test]
fn special_values_are_those_of_c() {
    let grid: Vec<Parts> = rows(TABLE).find(|row| row[0] == "grid").unwrap()[1..].iter().map(|d| parts_of(d)).collect();
    let mut wrong = Vec::new();
    let mut functions = 0;
    for row in rows(TABLE).filter(|row| row[0] == "special") {
        let op = named(row[1]);
        functions += 1;
        for ((&z, digits), found) in grid.iter().zip(&row[2..]).zip(unary(op, &grid)) {
            let expected = parts_of(digits);
            for (f, e) in [(found.0, expected.0), (found.1, expected.1)] {
                let same = alike(f, e) || (is_sign_open(op, z) && alike(f.abs(), e.abs()));
                if !same {
                    wrong.push(format!("{} of {z:?} is {found:?}, not {expected:?}", row[1]));
                }
            }
        }
    }
    assert_eq!(functions, 15);
    wrong.dedup();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The relative error is at most a few roundings.
#[test]
fn values_are_accurate() {
    let mut checked = 0;
    for row in rows(TABLE).filter(|row| row[0] == "point") {
        let (z, expected) = (parts_of(row[2]), parts_of(row[3]));
        let found = unary(named(row[1]), &[z])[0];
        let error = (found.0 - expected.0).hypot(found.1 - expected.1) / expected.0.hypot(expected.1);
        assert!(error < 16.0 * f64::EPSILON, "{} of {z:?} is {found:?}, not {expected:?}: error {error:e}", row[1]);
        checked += 1;
    }
    assert!(checked > 600, "{checked} points");
}

#[test]
fn arithmetic() {
    assert_eq!(binary(BinaryOp::Add, (1.0, 2.0), (3.0, -5.0)), (4.0, -3.0));
    assert_eq!(binary(BinaryOp::Subtract, (1.0, 2.0), (3.0, -5.0)), (-2.0, 7.0));
    assert_eq!(binary(BinaryOp::Multiply, (1.0, 2.0), (3.0, -5.0)), (13.0, 1.0));
    assert_eq!(binary(BinaryOp::Divide, (13.0, 1.0), (3.0, -5.0)), (1.0, 2.0));
    // Neither the squares of the divisor nor the products overflow or underflow.
    assert_eq!(binary(BinaryOp::Divide, (1e300, 1e300), (1e300, -1e300)), (0.0, 1.0));
    assert_eq!(binary(BinaryOp::Divide, (1e-300, 1e-300), (1e-300, -1e-300)), (0.0, 1.0));
    assert_eq!(binary(BinaryOp::Divide, (1e200, 1e-200), (1.0, 0.0)), (1e200, 1e-200));
    assert_eq!(binary(BinaryOp::Divide, (1.0, 2.0), (0.0, 0.0)), (INF, INF));
    assert_eq!(binary(BinaryOp::Divide, (INF, NAN), (1.0, 0.0)).0, INF);
    assert_eq!(binary(BinaryOp::Divide, (1.0, 1.0), (INF, INF)), (0.0, 0.0));
    assert_eq!(binary(BinaryOp::Maximum, (1.0, 5.0), (1.0, 7.0)), (1.0, 7.0));
    assert_eq!(binary(BinaryOp::Minimum, (1.0, 5.0), (2.0, 0.0)), (1.0, 5.0));
    assert!(binary(BinaryOp::Maximum, (1.0, 5.0), (NAN, 0.0)).0.is_nan());
}

#[test]
fn powers() {
    let power = |a, b| binary(BinaryOp::Power, a, b);
    assert_eq!(power((NAN, 1.0), (0.0, 0.0)), (1.0, 0.0));
    assert_eq!(power((1.0, 0.0), (NAN, 2.0)), (1.0, 0.0));
    assert_eq!(power((0.0, 0.0), (2.0, 0.0)), (0.0, 0.0));
    assert!(power((0.0, 0.0), (-1.0, 0.0)).0.is_nan());
    assert_eq!(power((INF, 0.0), (2.0, 0.0)), (INF, 0.0));
    assert_eq!(power((INF, 0.0), (-2.0, 0.0)), (0.0, 0.0));
    let square = power((1.0, 2.0), (2.0, 0.0));
    assert!((square.0 + 3.0).abs() < 1e-14 && (square.1 - 4.0).abs() < 1e-14, "{square:?}");
    let turned = power((0.0, 1.0), (0.0, 1.0));
    assert!((turned.0 - (-std::f64::consts::FRAC_PI_2).exp()).abs() < 1e-15 && turned.1 == 0.0, "{turned:?}");
}

#[test]
fn angles() {
    let angle = binary(BinaryOp::Atan2, (1.0, 0.0), (-1.0, 0.0));
    assert!((angle.0 - 3.0 * std::f64::consts::FRAC_PI_4).abs() < 1e-15 && angle.1.abs() < 1e-15, "{angle:?}");
    // The tangent of the result is the quotient.
    let (y, x) = ((0.3, 0.4), (1.2, -0.5));
    let quotient = binary(BinaryOp::Divide, y, x);
    let tan = unary(UnaryOp::Tan, &[binary(BinaryOp::Atan2, y, x)])[0];
    assert!((tan.0 - quotient.0).hypot(tan.1 - quotient.1) < 1e-15, "{tan:?} {quotient:?}");
}

#[test]
fn parts_and_sizes() {
    let z = literal(ElementType::C64, &[(3.0, -4.0), (INF, NAN), (1e-30, 1e-30), (2e38, 2e38)]);
    let real = |op| scalars(&run(Unary::from(op), std::slice::from_ref(&z), None).unwrap());
    assert_eq!(real(UnaryOp::Real)[0], Scalar::Float(3.0));
    assert_eq!(real(UnaryOp::Imag)[0], Scalar::Float(-4.0));
    let sizes = real(UnaryOp::Abs);
    assert_eq!(sizes[0], Scalar::Float(5.0));
    assert_eq!(sizes[1], Scalar::Float(INF));
    assert_eq!(sizes[2], Scalar::Float(f64::from(1.414_213_6e-30f32)));
    assert_eq!(sizes[3], Scalar::Float(f64::from(2.828_427e38f32)));
    let parts_again = [real(UnaryOp::Real), real(UnaryOp::Imag)].map(|part| vector(ElementType::F32, &part));
    let joined = run(Binary { op: BinaryOp::Complex }, &parts_again, None).unwrap();
    assert_eq!(joined.bytes(), z.bytes());
    let signs = unary(UnaryOp::Sign, &[(3.0, -4.0), (0.0, -0.0), (1e308, 1e308), (0.0, -2.0)]);
    assert_eq!(signs[0], (0.6, -0.8));
    assert!(signs[1] == (0.0, 0.0) && signs[1].1.is_sign_negative());
    assert!((signs[2].0 - 0.5f64.sqrt()).abs() < 1e-15);
    assert_eq!(signs[3], (0.0, -1.0));
}

#[test]
fn equality() {
    let (a, b) = ([(1.0, 2.0), (1.0, 2.0), (NAN, 1.0)], [(1.0, 2.0), (1.0, 3.0), (NAN, 1.0)]);
    let operands = [literal(ElementType::C64, &a), literal(ElementType::C64, &b)];
    assert_eq!(wholes(&run(Compare::new(CompareDirection::Eq), &operands, None).unwrap()), [1, 0, 0]);
    assert_eq!(wholes(&run(Compare::new(CompareDirection::Ne), &operands, None).unwrap()), [0, 1, 1]);
}

/// A `c64` function returns the rounded result of the `c128` function.
#[test]
fn narrow_functions_are_the_wide_ones_rounded() {
    let points: Vec<Parts> =
        rows(TABLE).filter(|row| row[0] == "point").step_by(7).map(|row| parts_of(row[2])).collect();
    let narrow = literal(ElementType::C64, &points);
    for &op in UnaryOp::ALL {
        let Ok(found) = run(Unary::from(op), std::slice::from_ref(&narrow), None) else { continue };
        let wide = run(Unary::from(op), &[vector(ElementType::C128, &scalars(&narrow))], None).unwrap();
        let rounded: Vec<Scalar> =
            scalars(&wide).into_iter().map(|x| x.rounded(found.array_shape().element_type())).collect();
        assert_eq!(scalars(&found), rounded, "{}", op.opcode());
    }
}

/// C has no such function. NumPy and XLA return NaN, although `e^z` of some arguments is zero or infinite.
#[test]
fn expm1_of_an_endless_imaginary_part_is_nan() {
    let endless = [(-INF, INF), (-INF, NAN), (INF, -INF), (INF, NAN), (0.0, INF), (1.0, NAN)];
    let found = unary(UnaryOp::ExponentialMinusOne, &endless);
    assert!(found.iter().all(|(re, im)| re.is_nan() && im.is_nan()), "{found:?}");
    let finite = unary(UnaryOp::ExponentialMinusOne, &[(-INF, 1.0), (INF, 0.0), (NAN, 0.0)]);
    assert_eq!(finite[..2], [(-1.0, 0.0), (INF, 0.0)]);
    assert!(finite[2].0.is_nan() && finite[2].1 == 0.0);
}
