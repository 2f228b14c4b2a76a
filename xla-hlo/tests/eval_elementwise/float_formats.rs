//! Tests of narrow floats against `ml_dtypes`: widening of patterns, narrowing of values.

use xla_hlo::ops::Convert;
use xla_hlo::{ElementKind, ElementType, Scalar, Shape};

use crate::support::{floats, integers, reals, rows, run, scalars, vector};

const TABLE: &str = include_str!("../data/float_formats.txt");

fn f32_of(digits: &str) -> f64 {
    if digits == "nan" { f64::NAN } else { f64::from(f32::from_bits(u32::from_str_radix(digits, 16).unwrap())) }
}

fn narrow_types() -> impl Iterator<Item = ElementType> {
    let is_narrow = |ty: &ElementType| ty.kind() == ElementKind::Float && ty.bit_width() <= 16;
    ElementType::ALL.iter().copied().filter(is_narrow)
}

#[test]
fn patterns_widen_to_the_values_of_ml_dtypes() {
    let mut types = 0;
    for row in rows(TABLE).filter(|row| row[0] == "widen") {
        let (ty, step) = (ElementType::from_name(row[1]).unwrap(), row[2].parse::<usize>().unwrap());
        types += 1;
        for (i, digits) in row[3..].iter().enumerate() {
            let Scalar::Float(value) = Scalar::from_bits(ty, (i * step) as u64) else { panic!("{ty} is a float") };
            let expected = f32_of(digits);
            let same = value.to_bits() == expected.to_bits() || (value.is_nan() && expected.is_nan());
            assert!(same, "{ty} pattern {:x} is {value}, not {expected}", i * step);
        }
    }
    assert_eq!(types, narrow_types().count());
}

#[test]
fn values_narrow_to_the_patterns_of_ml_dtypes() {
    let inputs: Vec<f64> = rows(TABLE).find(|row| row[0] == "inputs").unwrap()[1..].iter().map(|d| f32_of(d)).collect();
    let mut types = 0;
    for row in rows(TABLE).filter(|row| row[0] == "narrow") {
        let ty = ElementType::from_name(row[1]).unwrap();
        types += 1;
        let result =
            run(Convert, &[floats(ElementType::F32, &inputs)], Some(Shape::array(ty, [inputs.len()]))).unwrap();
        for ((digits, x), value) in row[2..].iter().zip(&inputs).zip(scalars(&result)) {
            let expected = u64::from_str_radix(digits, 16).unwrap();
            assert_eq!(value.to_bits(ty), expected, "{x} as {ty}");
        }
    }
    assert_eq!(types, narrow_types().count());
}

#[test]
fn every_pattern_comes_back_from_its_value() {
    for ty in ElementType::ALL.iter().copied().filter(|ty| ty.is_float()) {
        let patterns = 1u64 << ty.bit_width().min(20);
        let spread = 64 - patterns.trailing_zeros();
        for i in 0..patterns {
            // Wide types are sampled over the whole range of patterns, including quiet and signalling NaNs.
            let pattern = if ty.bit_width() <= 20 {
                i
            } else {
                i.wrapping_mul(0x9E37_79B9_7F4A_7C15 | 1 << spread) >> (64 - ty.bit_width())
            };
            assert_eq!(Scalar::from_bits(ty, pattern).to_bits(ty), pattern, "{ty}");
        }
    }
}

/// Ties round to the even pattern, and values next to them to the nearer one.
#[test]
fn narrowing_is_to_nearest_even() {
    for ty in narrow_types().filter(|&ty| ty != ElementType::F8E8M0FNU) {
        let half = 1u64 << (ty.bit_width() - 1);
        for pattern in 0..half - 1 {
            let value = |p| if let Scalar::Float(v) = Scalar::from_bits(ty, p) { v } else { f64::NAN };
            let (low, high) = (value(pattern), value(pattern + 1));
            if !(low.is_finite() && high.is_finite()) {
                break;
            }
            let middle = (low + high) / 2.0;
            let narrow = |x: f64| Scalar::Float(x).to_bits(ty);
            assert_eq!(narrow(middle), pattern + pattern % 2, "{ty}: half-way between {low} and {high}");
            assert_eq!(narrow(middle.next_down()), pattern, "{ty}: just below {middle}");
            assert_eq!(narrow(middle.next_up()), pattern + 1, "{ty}: just above {middle}");
        }
    }
}

#[test]
fn arithmetic_rounds_once() {
    use xla_hlo::ops::{Binary, BinaryOp};
    for ty in narrow_types() {
        let patterns: Vec<Scalar> = (0..256u64).map(|i| Scalar::from_bits(ty, i * 257)).collect();
        let shifted: Vec<Scalar> = (0..256u64).map(|i| Scalar::from_bits(ty, (i * 257).rotate_left(5) + 3)).collect();
        let (a, b) = (vector(ty, &patterns), vector(ty, &shifted));
        let product = run(Binary { op: BinaryOp::Multiply }, &[a, b], None).unwrap();
        for ((x, y), z) in patterns.iter().zip(&shifted).zip(scalars(&product)) {
            let (Scalar::Float(x), Scalar::Float(y)) = (x, y) else { panic!("{ty} is a float") };
            assert_eq!(z.to_bits(ty), Scalar::Float(x * y).to_bits(ty), "{x} * {y} in {ty}");
        }
    }
}

/// 64-bit integers are rounded once to any float: the lowest bit decides if the others are a tie.
#[test]
fn integers_round_once() {
    let half_way = |ty: ElementType, bits: u32| {
        // 2^62 plus half a unit in the last place of a significand of `bits` bits: minus one, exactly, and plus one.
        let (top, half) = (1i128 << 62, 1i128 << (62 - bits));
        let values = [top + half - 1, top + half, top + half + 1, top + 3 * half - 1, top + 3 * half];
        let result = run(Convert, &[integers(ElementType::S64, &values)], Some(Shape::array(ty, [5]))).unwrap();
        let unit = (2.0 * half as f64, top as f64);
        let expected = [unit.1, unit.1, unit.1 + unit.0, unit.1 + unit.0, unit.1 + 2.0 * unit.0];
        assert_eq!(reals(&result), expected, "{ty}");
        let negated: Vec<i128> = values.iter().map(|v| -v).collect();
        let result = run(Convert, &[integers(ElementType::S64, &negated)], Some(Shape::array(ty, [5]))).unwrap();
        assert_eq!(reals(&result), expected.map(|x| -x), "{ty}");
    };
    half_way(ElementType::F64, 53);
    half_way(ElementType::F32, 24);
    half_way(ElementType::BF16, 8);
    let great = integers(ElementType::U64, &[u64::MAX as i128, (1 << 63) + 1]);
    let result = run(Convert, std::slice::from_ref(&great), Some(Shape::array(ElementType::F32, [2]))).unwrap();
    assert_eq!(reals(&result), [2f64.powi(64), 2f64.powi(63)]);
    let result = run(Convert, &[great], Some(Shape::array(ElementType::F16, [2]))).unwrap();
    assert_eq!(reals(&result), [f64::INFINITY, f64::INFINITY]);
    let small = integers(ElementType::S32, &[65519, 65520, 2049, 2051, -2049]);
    let result = run(Convert, &[small], Some(Shape::array(ElementType::F16, [5]))).unwrap();
    assert_eq!(reals(&result), [65504.0, f64::INFINITY, 2048.0, 2052.0, -2048.0]);
}
