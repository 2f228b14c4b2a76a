//! Tests of functions of real floats: accuracy against correctly rounded tables, and special values.

use xla_hlo::ops::{Binary, BinaryOp, Clamp, Compare, CompareDirection, CompareType, Opcode, Select, Unary, UnaryOp};
use xla_hlo::{ElementType, Literal, Scalar, Shape};

use crate::support::{f64_of, f64s, floats, reals, rows, run, steps_between, vector, wholes};

const TABLE: &str = include_str!("../data/real_functions.txt");
const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn unary(op: UnaryOp, ty: ElementType, x: &[f64]) -> Vec<f64> {
    reals(&run(Unary::from(op), &[floats(ty, x)], None).unwrap())
}

fn binary(op: BinaryOp, ty: ElementType, x: &[f64], y: &[f64]) -> Vec<f64> {
    reals(&run(Binary { op }, &[floats(ty, x), floats(ty, y)], None).unwrap())
}

/// Asserts that zeros (with their signs), infinities and NaNs agree exactly, and other values up to one step.
fn assert_same(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let is_special = *e == 0.0 || !e.is_finite();
        let steps = steps_between(*f, *e);
        assert!(steps == 0 || (steps == 1 && !is_special), "{what}: element {i} is {f}, not {e}; all: {found:?}");
    }
}

/// Returns an operation's rows of the table: columns of arguments, and the results.
fn columns(name: &str, arguments: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mut columns = vec![Vec::new(); arguments];
    let mut results = Vec::new();
    for row in rows(TABLE).filter(|row| row[0] == name) {
        for (column, digits) in columns.iter_mut().zip(&row[1..]) {
            column.push(f64_of(digits));
        }
        results.push(f64_of(row[arguments + 1]));
    }
    (columns, results)
}

fn assert_within_one_step(name: &str, found: &[f64], expected: &[f64], arguments: &[Vec<f64>]) {
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let at: Vec<f64> = arguments.iter().map(|column| column[i]).collect();
        assert!(steps_between(*f, *e) <= 1, "{name} of {at:?} is {f:e}, not {e:e}");
    }
}

#[test]
fn f64_functions_are_within_one_step_of_the_exact_value() {
    let mut functions = 0;
    for &op in UnaryOp::ALL {
        let name = op.opcode().name();
        let (arguments, expected) = columns(name, 1);
        if expected.is_empty() {
            continue;
        }
        functions += 1;
        assert_within_one_step(name, &unary(op, ElementType::F64, &arguments[0]), &expected, &arguments);
    }
    assert_eq!(functions, 21);
    for op in [BinaryOp::Power, BinaryOp::Atan2] {
        let name = op.opcode().name();
        let (arguments, expected) = columns(name, 2);
        assert!(!expected.is_empty());
        let found = binary(op, ElementType::F64, &arguments[0], &arguments[1]);
        assert_within_one_step(name, &found, &expected, &arguments);
    }
}

/// Functions of narrower types return the exact value in `f64` for the rounded points, rounded to the type.
#[test]
fn narrow_functions_are_correctly_rounded() {
    for ty in [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F8E4M3FN] {
        for &op in UnaryOp::ALL {
            let (arguments, expected) = columns(op.opcode().name(), 1);
            if expected.is_empty() {
                continue;
            }
            let x = reals(&floats(ty, &arguments[0]));
            let wide = unary(op, ElementType::F64, &x);
            assert_same(&unary(op, ty, &x), &reals(&floats(ty, &wide)), &format!("{} in {ty}", op.opcode()));
        }
    }
}

#[test]
fn special_values_of_unary_functions() {
    use UnaryOp::*;
    let x = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN];
    let check = |op: UnaryOp, expected: [f64; 7]| {
        for ty in [ElementType::F64, ElementType::F32, ElementType::F16, ElementType::BF16] {
            let expected = reals(&floats(ty, &expected));
            assert_same(&unary(op, ty, &x), &expected, &format!("{} in {ty}", op.opcode()));
        }
    };
    use std::f64::consts::{FRAC_PI_2, PI};
    let one = 1f64;
    check(Abs, [0.0, 0.0, 1.0, 1.0, INF, INF, NAN]);
    check(Negate, [-0.0, 0.0, -1.0, 1.0, -INF, INF, NAN]);
    check(Sign, [0.0, -0.0, 1.0, -1.0, 1.0, -1.0, NAN]);
    check(Sqrt, [0.0, -0.0, 1.0, NAN, INF, NAN, NAN]);
    check(Rsqrt, [INF, -INF, 1.0, NAN, 0.0, NAN, NAN]);
    check(Cbrt, [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]);
    check(Exponential, [1.0, 1.0, one.exp(), (-one).exp(), INF, 0.0, NAN]);
    check(ExponentialMinusOne, [0.0, -0.0, one.exp_m1(), (-one).exp_m1(), INF, -1.0, NAN]);
    check(Log, [-INF, -INF, 0.0, NAN, INF, NAN, NAN]);
    check(LogPlusOne, [0.0, -0.0, one.ln_1p(), -INF, INF, NAN, NAN]);
    check(Logistic, [0.5, 0.5, 0.731_058_578_630_004_9, 0.268_941_421_369_995_1, 1.0, 0.0, NAN]);
    check(Tanh, [0.0, -0.0, one.tanh(), -one.tanh(), 1.0, -1.0, NAN]);
    check(Sinh, [0.0, -0.0, one.sinh(), -one.sinh(), INF, -INF, NAN]);
    check(Cosh, [1.0, 1.0, one.cosh(), one.cosh(), INF, INF, NAN]);
    check(Sine, [0.0, -0.0, one.sin(), -one.sin(), NAN, NAN, NAN]);
    check(Cosine, [1.0, 1.0, one.cos(), one.cos(), NAN, NAN, NAN]);
    check(Tan, [0.0, -0.0, one.tan(), -one.tan(), NAN, NAN, NAN]);
    check(Asin, [0.0, -0.0, FRAC_PI_2, -FRAC_PI_2, NAN, NAN, NAN]);
    check(Acos, [FRAC_PI_2, FRAC_PI_2, 0.0, PI, NAN, NAN, NAN]);
    check(Atan, [0.0, -0.0, one.atan(), -one.atan(), FRAC_PI_2, -FRAC_PI_2, NAN]);
    check(Asinh, [0.0, -0.0, 0.881_373_587_019_543, -0.881_373_587_019_543, INF, -INF, NAN]);
    check(Acosh, [NAN, NAN, 0.0, NAN, INF, NAN, NAN]);
    check(Atanh, [0.0, -0.0, INF, -INF, NAN, NAN, NAN]);
    check(Erf, [0.0, -0.0, 0.842_700_792_949_714_9, -0.842_700_792_949_714_9, 1.0, -1.0, NAN]);
    check(Real, [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]);
    check(Imag, [0.0; 7]);
    let finite = run(Unary::from(IsFinite), &[f64s(&x)], None).unwrap();
    assert_eq!(wholes(&finite), [1, 1, 1, 1, 0, 0, 0]);
}

#[test]
fn rounding_directions() {
    use UnaryOp::*;
    let x = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.3, -0.3, 1e300, -0.0, INF, NAN];
    let check = |op, expected: [f64; 12]| assert_same(&unary(op, ElementType::F64, &x), &expected, op.opcode().name());
    check(RoundNearestAfz, [1.0, 2.0, 3.0, -1.0, -2.0, -3.0, 0.0, -0.0, 1e300, -0.0, INF, NAN]);
    check(RoundNearestEven, [0.0, 2.0, 2.0, -0.0, -2.0, -2.0, 0.0, -0.0, 1e300, -0.0, INF, NAN]);
    check(Floor, [0.0, 1.0, 2.0, -1.0, -2.0, -3.0, 0.0, -1.0, 1e300, -0.0, INF, NAN]);
    check(Ceil, [1.0, 2.0, 3.0, -0.0, -1.0, -2.0, 1.0, -0.0, 1e300, -0.0, INF, NAN]);
    assert_same(&unary(RoundNearestAfz, ElementType::F64, &[0.499_999_999_999_999_94]), &[0.0], "just below one half");
}

/// No intermediate result overflows unless the result is near overflow, and tiny arguments are not lost.
#[test]
fn extreme_arguments() {
    let logistic = unary(UnaryOp::Logistic, ElementType::F64, &[-800.0, -744.0, -1e300, 800.0, 1e-300]);
    assert_same(&logistic, &[0.0, 1e-323, 0.0, 1.0, 0.5], "logistic");
    assert_same(
        &unary(UnaryOp::Logistic, ElementType::F32, &[-1e30, 1e30, -88.0]),
        &[0.0, 1.0, f64::from(6.054_601e-39f32)],
        "logistic in f32",
    );
    let tiny = [1e-300, -1e-310, 5e-324];
    for op in [
        UnaryOp::Sinh,
        UnaryOp::Tanh,
        UnaryOp::Asinh,
        UnaryOp::Atanh,
        UnaryOp::Sine,
        UnaryOp::ExponentialMinusOne,
        UnaryOp::LogPlusOne,
    ] {
        assert_same(&unary(op, ElementType::F64, &tiny), &tiny, op.opcode().name());
    }
    assert_same(
        &unary(UnaryOp::Sinh, ElementType::F64, &[710.475, 711.0, -711.0, 1e300]),
        &[1.796_147_650_548_522_2e308, INF, -INF, INF],
        "sinh",
    );
    assert_same(
        &unary(UnaryOp::Rsqrt, ElementType::F64, &[5e-324, 1e-320, f64::MAX]),
        &[4.498_913_794_543_196e161, 1.000_005_566_455_136_3e160, 7.458_340_731_200_207e-155],
        "rsqrt",
    );
    assert_same(
        &unary(UnaryOp::Asinh, ElementType::F64, &[1e300, -f64::MAX]),
        &[691.468_675_078_773_7, -710.475_860_073_943_9],
        "asinh",
    );
}

#[test]
fn special_values_of_binary_functions() {
    use BinaryOp::*;
    let check = |op: BinaryOp, cases: &[[f64; 3]]| {
        let column = |i: usize| cases.iter().map(|case| case[i]).collect::<Vec<_>>();
        for ty in [ElementType::F64, ElementType::F32] {
            let expected = reals(&floats(ty, &column(2)));
            assert_same(&binary(op, ty, &column(0), &column(1)), &expected, &format!("{} in {ty}", op.opcode()));
        }
    };
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
    check(
        Maximum,
        &[[1.0, NAN, NAN], [NAN, 1.0, NAN], [0.0, -0.0, 0.0], [-0.0, 0.0, 0.0], [-INF, -1.0, -1.0], [2.0, 3.0, 3.0]],
    );
    check(
        Minimum,
        &[[1.0, NAN, NAN], [NAN, 1.0, NAN], [0.0, -0.0, -0.0], [-0.0, 0.0, -0.0], [INF, 1.0, 1.0], [2.0, 3.0, 2.0]],
    );
    check(
        Power,
        &[
            [1.0, NAN, 1.0],
            [NAN, 0.0, 1.0],
            [0.0, 0.0, 1.0],
            [-2.0, 3.0, -8.0],
            [-2.0, 0.5, NAN],
            [0.0, -1.0, INF],
            [-0.0, -1.0, -INF],
            [-1.0, INF, 1.0],
            [2.0, -INF, 0.0],
        ],
    );
    check(
        Remainder,
        &[[-7.0, 2.0, -1.0], [7.0, -2.0, 1.0], [5.5, 0.0, NAN], [INF, 1.0, NAN], [-4.0, 2.0, -0.0], [3.0, INF, 3.0]],
    );
    check(
        Atan2,
        &[
            [0.0, -1.0, PI],
            [-0.0, -1.0, -PI],
            [0.0, 0.0, 0.0],
            [-0.0, -0.0, -PI],
            [1.0, 0.0, FRAC_PI_2],
            [INF, INF, FRAC_PI_4],
            [1.0, -INF, PI],
            [NAN, 1.0, NAN],
        ],
    );
    check(Divide, &[[1.0, 0.0, INF], [-1.0, 0.0, -INF], [0.0, 0.0, NAN], [1.0, -INF, -0.0]]);
    check(Add, &[[INF, -INF, NAN], [-0.0, -0.0, -0.0], [-0.0, 0.0, 0.0]]);
    check(Subtract, &[[INF, INF, NAN], [-0.0, 0.0, -0.0], [1.0, 1.0, 0.0]]);
    check(Multiply, &[[INF, 0.0, NAN], [-0.0, 3.0, -0.0], [-INF, -1.0, INF]]);
}

#[test]
fn clamp_and_select() {
    let clamp =
        |min: f64, x: f64, max: f64| reals(&run(Clamp, &[f64s(&[min]), f64s(&[x]), f64s(&[max])], None).unwrap())[0];
    assert_eq!(clamp(0.0, 5.0, 1.0), 1.0);
    assert_eq!(clamp(0.0, -5.0, 1.0), 0.0);
    assert_eq!(clamp(2.0, 1.0, 1.0), 1.0);
    assert!([clamp(NAN, 1.0, 2.0), clamp(0.0, NAN, 2.0), clamp(0.0, 1.0, NAN)].iter().all(|x| x.is_nan()));
    let scalar = |x| Literal::scalar(ElementType::F64, Scalar::Float(x));
    let bounded = run(Clamp, &[scalar(-1.0), f64s(&[-3.0, 0.5, 3.0]), scalar(1.0)], None).unwrap();
    assert_eq!(reals(&bounded), [-1.0, 0.5, 1.0]);

    let choice = vector(ElementType::Pred, &[Scalar::Pred(true), Scalar::Pred(false)]);
    let (a, b) = (f64s(&[1.0, 2.0]), f64s(&[3.0, 4.0]));
    assert_eq!(reals(&run(Select, &[choice, a.clone(), b.clone()], None).unwrap()), [1.0, 4.0]);
    let no = Literal::scalar(ElementType::Pred, Scalar::Pred(false));
    assert_eq!(reals(&run(Select, &[no, a, b], None).unwrap()), [3.0, 4.0]);
}

#[test]
fn comparisons_are_unordered_for_nan() {
    let (a, b) = (f64s(&[1.0, 0.0, NAN, NAN, 2.0]), f64s(&[2.0, -0.0, 1.0, NAN, 1.0]));
    let check = |direction, expected: [i128; 5]| {
        assert_eq!(
            wholes(&run(Compare::new(direction), &[a.clone(), b.clone()], None).unwrap()),
            expected,
            "{direction:?}"
        );
    };
    check(CompareDirection::Eq, [0, 1, 0, 0, 0]);
    check(CompareDirection::Ne, [1, 0, 1, 1, 1]);
    check(CompareDirection::Lt, [1, 0, 0, 0, 0]);
    check(CompareDirection::Le, [1, 1, 0, 0, 0]);
    check(CompareDirection::Gt, [0, 0, 0, 0, 1]);
    check(CompareDirection::Ge, [0, 1, 0, 0, 1]);
}

/// Total order compares patterns by their position, including NaNs of every sign and payload.
#[test]
fn total_order_is_that_of_the_patterns() {
    for ty in ElementType::ALL.iter().copied().filter(|ty| ty.is_float() && *ty != ElementType::F8E8M0FNU) {
        let bits = ty.bit_width();
        let sign = 1u64 << (bits - 1);
        let step = (sign / 32).max(1) as usize;
        let ends = [0, 1, sign - 2, sign - 1].into_iter();
        let mut magnitudes: Vec<u64> = (0..sign).step_by(step).chain(ends).filter(|&m| m < sign).collect();
        magnitudes.sort_unstable();
        magnitudes.dedup();
        let negatives = magnitudes.iter().rev().map(|m| m | sign);
        let ordered: Vec<Scalar> =
            negatives.chain(magnitudes.iter().copied()).map(|p| Scalar::from_bits(ty, p)).collect();
        let (next, all) = (vector(ty, &ordered[1..]), vector(ty, &ordered[..ordered.len() - 1]));
        let total = |direction| Compare { direction, order: Some(CompareType::TotalOrder) };
        let less = run(total(CompareDirection::Lt), &[all.clone(), next.clone()], None).unwrap();
        assert!(wholes(&less).iter().all(|&p| p == 1), "{ty}");
        let equal = run(total(CompareDirection::Eq), &[all.clone(), next], None).unwrap();
        assert!(wholes(&equal).iter().all(|&p| p == 0), "{ty}");
        let same = run(total(CompareDirection::Ge), &[all.clone(), all], None).unwrap();
        assert!(wholes(&same).iter().all(|&p| p == 1), "{ty}");
    }
}

#[test]
fn every_unary_operation_is_defined_for_some_type() {
    for &op in UnaryOp::ALL {
        let defined = ElementType::ALL.iter().filter(|&&ty| {
            let one = Literal::splat(&xla_hlo::ArrayShape::new(ty, [2]), Scalar::from_i64(ty, 1)).unwrap();
            run(Unary::from(op), &[one], None).is_ok()
        });
        assert!(defined.count() >= 5, "{}", op.opcode());
    }
    let empty = run(Unary::from(UnaryOp::Sine), &[f64s(&[])], None).unwrap();
    assert_eq!(empty.shape(), &Shape::array(ElementType::F64, [0]));
    assert_eq!(UnaryOp::Sine.opcode(), Opcode::Sine);
}
