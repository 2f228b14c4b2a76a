//! Tests of conversions between element types, bit casts and reduced precision.

use xla_hlo::ops::{BitcastConvert, Convert, ReducePrecision};
use xla_hlo::{ElementKind, ElementType, Literal, Scalar, Shape};

use crate::support::{floats, integers, reals, rows, run, scalars, vector, wholes};

const TABLE: &str = include_str!("../data/reduce_precision.txt");

fn convert(x: Literal, to: ElementType) -> Literal {
    let dims = x.array_shape().dims().to_vec();
    run(Convert, &[x], Some(Shape::array(to, dims))).unwrap()
}

#[test]
fn floats_become_integers_by_truncation_and_saturation() {
    let x = [0.0, -0.9, 1.9, -1.9, 300.0, -300.0, 1e30, -1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for from in [ElementType::F64, ElementType::F32, ElementType::BF16] {
        let literal = floats(from, &x);
        let values = reals(&literal);
        for to in ElementType::ALL.iter().copied().filter(|ty| ty.is_integer()) {
            let (least, greatest) = match to.kind() {
                ElementKind::Signed => (-(1i128 << (to.bit_width() - 1)), (1i128 << (to.bit_width() - 1)) - 1),
                _ => (0, (1i128 << to.bit_width()) - 1),
            };
            // Rust's conversion truncates and saturates as well, here to i128.
            let expected: Vec<i128> = values.iter().map(|&v| (v as i128).clamp(least, greatest)).collect();
            assert_eq!(wholes(&convert(literal.clone(), to)), expected, "{from} to {to}");
        }
    }
    let half = convert(floats(ElementType::F16, &[65504.0, -0.5, f64::NAN]), ElementType::S16);
    assert_eq!(wholes(&half), [32767, 0, 0]);
}

#[test]
fn everything_but_zero_is_true() {
    let truth = |x| wholes(&convert(x, ElementType::Pred));
    assert_eq!(truth(floats(ElementType::F32, &[0.0, -0.0, 0.1, f64::NAN, 1e-45])), [0, 0, 1, 1, 1]);
    assert_eq!(truth(integers(ElementType::S4, &[0, 1, -8])), [0, 1, 1]);
    assert_eq!(truth(integers(ElementType::U64, &[0, 1 << 63])), [0, 1]);
    let pred = vector(ElementType::Pred, &[Scalar::Pred(true), Scalar::Pred(false)]);
    assert_eq!(reals(&convert(pred.clone(), ElementType::F8E4M3)), [1.0, 0.0]);
    assert_eq!(wholes(&convert(pred.clone(), ElementType::S1)), [-1, 0]);
    assert_eq!(scalars(&convert(pred, ElementType::C64))[0], Scalar::Complex(1.0, 0.0));
}

#[test]
fn integers_truncate_or_extend_by_the_sign_of_their_own_type() {
    let to = |from, values: &[i128], to| wholes(&convert(integers(from, values), to));
    assert_eq!(to(ElementType::S8, &[-1, 127], ElementType::U32), [0xffff_ffff, 127]);
    assert_eq!(to(ElementType::U8, &[255], ElementType::S32), [255]);
    assert_eq!(to(ElementType::S32, &[0x1234_5678, -1], ElementType::S8), [0x78, -1]);
    assert_eq!(to(ElementType::S8, &[0x17, -3], ElementType::S4), [7, -3]);
    assert_eq!(to(ElementType::S4, &[-8, 7], ElementType::U64), [i128::from(u64::MAX - 7), 7]);
    assert_eq!(to(ElementType::U64, &[i128::from(u64::MAX)], ElementType::S64), [-1]);
}

#[test]
fn complex_numbers_convert_to_complex_numbers() {
    let z = vector(ElementType::C128, &[Scalar::Complex(0.1, -1e300)]);
    assert_eq!(scalars(&convert(z, ElementType::C64)), [Scalar::Complex(f64::from(0.1f32), f64::NEG_INFINITY)]);
    let x = convert(integers(ElementType::S64, &[(1 << 60) + (1 << 36) + 1]), ElementType::C64);
    assert_eq!(scalars(&x), [Scalar::Complex(((1i64 << 60) + (1i64 << 37)) as f64, 0.0)]);
}

fn bitcast(x: &Literal, shape: Shape) -> Literal {
    run(BitcastConvert, std::slice::from_ref(x), Some(shape)).unwrap()
}

#[test]
fn bit_casts_keep_patterns() {
    let x = floats(ElementType::F32, &[1.0, -0.0, f64::NAN]);
    let bits = bitcast(&x, Shape::array(ElementType::U32, [3]));
    assert_eq!(wholes(&bits), [0x3f80_0000, 0x8000_0000, 0x7fc0_0000]);
    assert_eq!(bitcast(&bits, Shape::array(ElementType::F32, [3])).bytes(), x.bytes());
    // A signalling NaN with a payload is unchanged.
    let nan = integers(ElementType::U32, &[0xff80_0123]);
    let float = bitcast(&nan, Shape::array(ElementType::F32, [1]));
    assert_eq!(bitcast(&float, Shape::array(ElementType::U32, [1])), nan);
    let nibbles = bitcast(&integers(ElementType::S4, &[-1, 7]), Shape::array(ElementType::U4, [2]));
    assert_eq!(wholes(&nibbles), [15, 7]);
}

#[test]
fn bit_casts_split_and_join_little_end_first() {
    let words = integers(ElementType::U32, &[0x0403_0201, 0x0807_0605]);
    let bytes = bitcast(&words, Shape::array(ElementType::U8, [2, 4]));
    assert_eq!(wholes(&bytes), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(bitcast(&bytes, Shape::array(ElementType::U32, [2])), words);
    let nibbles = bitcast(&integers(ElementType::S8, &[0x21, -1]), Shape::array(ElementType::S4, [2, 2]));
    assert_eq!(wholes(&nibbles), [1, 2, -1, -1]);
    assert_eq!(wholes(&bitcast(&nibbles, Shape::array(ElementType::U8, [2]))), [0x21, 0xff]);
    let doubles = bitcast(&floats(ElementType::F64, &[1.0]), Shape::array(ElementType::U1, [1, 64]));
    assert_eq!(wholes(&doubles).iter().sum::<i128>(), 10);
    assert_eq!(reals(&bitcast(&doubles, Shape::array(ElementType::F64, [1]))), [1.0]);
    let scalar = bitcast(&integers(ElementType::U8, &[0x80, 0x3f]), Shape::scalar(ElementType::BF16));
    assert_eq!(reals(&scalar), [1.0]);
}

/// XLA does not flush subnormals here: its results agree for every pattern, except for the payload of NaN.
#[test]
fn reduced_precision_is_that_of_xla() {
    let mut inputs = None;
    let mut checked = 0;
    for row in rows(TABLE) {
        let patterns = |digits: &[&str]| digits.iter().map(|d| u64::from_str_radix(d, 16).unwrap()).collect::<Vec<_>>();
        if row[0] == "inputs" {
            let ty = ElementType::from_name(row[1]).unwrap();
            let values: Vec<Scalar> = patterns(&row[2..]).into_iter().map(|p| Scalar::from_bits(ty, p)).collect();
            inputs = Some((ty, values));
            continue;
        }
        let (ty, values) = inputs.as_ref().unwrap();
        let op = ReducePrecision { exponent_bits: row[0].parse().unwrap(), mantissa_bits: row[1].parse().unwrap() };
        let result = run(op.clone(), &[vector(*ty, values)], None).unwrap();
        for ((x, found), expected) in values.iter().zip(scalars(&result)).zip(patterns(&row[3..])) {
            assert_eq!(found.to_bits(*ty), expected, "{op:?} of {x:?} in {ty}, found {found:?}");
            checked += 1;
        }
    }
    assert!(checked > 2000, "{checked} values");
}

#[test]
fn reduced_precision_of_eight_bit_floats() {
    let reduce = |ty, e, m, values: &[f64]| {
        reals(&run(ReducePrecision { exponent_bits: e, mantissa_bits: m }, &[floats(ty, values)], None).unwrap())
    };
    assert_eq!(reduce(ElementType::F8E4M3FN, 4, 1, &[1.25, 1.75, -3.5, 416.0]), [1.0, 2.0, -4.0, 384.0]);
    assert!(reduce(ElementType::F8E4M3FN, 3, 3, &[17.0])[0].is_nan(), "there is no infinity to overflow to");
    assert_eq!(reduce(ElementType::F8E5M2, 3, 2, &[17.0, 0.01]), [f64::INFINITY, 0.0]);
    assert_eq!(reduce(ElementType::F8E8M0FNU, 5, 0, &[4.0])[0], 4.0);
    assert!(reduce(ElementType::F8E8M0FNU, 5, 0, &[65536.0])[0].is_nan());
}
