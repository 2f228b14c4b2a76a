//! Tests of integer operations at every width against definitions in 128-bit arithmetic.

use xla_hlo::ops::{Binary, BinaryOp, Compare, CompareDirection, Unary, UnaryOp};
use xla_hlo::{ElementType, Literal, Scalar};

use crate::support::{integers, run, vector, wholes};

fn integer_types() -> impl Iterator<Item = ElementType> {
    ElementType::ALL.iter().copied().filter(|ty| ty.is_integer())
}

/// Returns the number that the low bits of `v` represent in a type.
fn wrap(ty: ElementType, v: i128) -> i128 {
    Scalar::from_bits(ty, v as u64).as_i128().unwrap()
}

fn least(ty: ElementType) -> i128 {
    if ty.is_signed() { -(1 << (ty.bit_width() - 1)) } else { 0 }
}

fn greatest(ty: ElementType) -> i128 {
    (1 << (ty.bit_width() - usize::from(ty.is_signed()))) - 1
}

/// Returns every value of types of up to 5 bits, corner cases of wider ones.
fn values(ty: ElementType) -> Vec<i128> {
    if ty.bit_width() <= 5 {
        return (least(ty)..=greatest(ty)).collect();
    }
    let bits = ty.bit_width() as i128;
    let mut values: Vec<i128> = (0..4).flat_map(|i| [least(ty) + i, greatest(ty) - i]).collect();
    values.extend([
        -5,
        -3,
        -2,
        -1,
        0,
        1,
        2,
        3,
        5,
        7,
        10,
        63,
        bits - 1,
        bits,
        bits + 1,
        64,
        100,
        0x5a,
        1 << (bits / 2),
        0x55,
    ]);
    values.retain(|v| (least(ty)..=greatest(ty)).contains(v));
    values
}

fn pairs(ty: ElementType) -> (Vec<i128>, Vec<i128>) {
    let values = values(ty);
    values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b))).unzip()
}

/// Returns the result of an operation as XLA defines it, before wrapping.
fn expected(op: BinaryOp, ty: ElementType, a: i128, b: i128) -> Option<i128> {
    let bits = ty.bit_width() as i128;
    let unsigned = |v: i128| v & ((1 << bits) - 1);
    let amount = unsigned(b);
    Some(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a.wrapping_mul(b),
        BinaryOp::Divide if b == 0 => -1,
        BinaryOp::Divide => a / b,
        BinaryOp::Remainder if b == 0 => a,
        BinaryOp::Remainder => a % b,
        BinaryOp::Maximum => a.max(b),
        BinaryOp::Minimum => a.min(b),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        // The only product that exceeds i128 is 2^128 - 2^65 + 1.
        BinaryOp::Mulhi if !ty.is_signed() => ((a as u128 * b as u128) >> bits) as i128,
        BinaryOp::Mulhi => (a * b) >> bits,
        BinaryOp::Power if b < 0 => i128::from(a == 1),
        BinaryOp::Power => {
            // For larger exponents this loop would be too slow.
            if b > 4096 {
                return None;
            }
            (0..b).fold(1i128, |power, _| wrap(ty, power.wrapping_mul(a)))
        }
        BinaryOp::ShiftLeft if amount >= bits => 0,
        BinaryOp::ShiftLeft => ((a as u64) << amount) as i128,
        BinaryOp::ShiftRightLogical if amount >= bits => 0,
        BinaryOp::ShiftRightLogical => unsigned(a) >> amount,
        BinaryOp::ShiftRightArithmetic => {
            let signed = if unsigned(a) >> (bits - 1) == 1 { unsigned(a) - (1 << bits) } else { unsigned(a) };
            signed >> amount.min(bits - 1)
        }
        BinaryOp::Atan2 | BinaryOp::Complex => return None,
    })
}

#[test]
fn binary_operations_of_every_width() {
    for ty in integer_types() {
        let (a, b) = pairs(ty);
        for &op in BinaryOp::ALL.iter().filter(|op| !matches!(op, BinaryOp::Atan2 | BinaryOp::Complex)) {
            let result = run(Binary { op }, &[integers(ty, &a), integers(ty, &b)], None).unwrap();
            let mut checked = 0;
            for ((&a, &b), found) in a.iter().zip(&b).zip(wholes(&result)) {
                if let Some(expected) = expected(op, ty, a, b) {
                    assert_eq!(found, wrap(ty, expected), "{} of {a} and {b} in {ty}", op.opcode());
                    checked += 1;
                }
            }
            assert!(checked > 0, "{} in {ty}", op.opcode());
        }
    }
}

#[test]
fn great_exponents_wrap() {
    let power = |ty, base, exponent| {
        wholes(&run(Binary { op: BinaryOp::Power }, &[integers(ty, &[base]), integers(ty, &[exponent])], None).unwrap())
            [0]
    };
    // 3 has order 2^62 modulo 2^64, so its power is 1.
    assert_eq!(power(ElementType::U64, 3, 1 << 62), 1);
    assert_eq!(power(ElementType::U64, 3, (1 << 62) + 2), 9);
    assert_eq!(power(ElementType::U64, 2, u64::MAX as i128), 0);
    assert_eq!(power(ElementType::S32, -1, i128::from(i32::MAX)), -1);
}

#[test]
fn unary_operations_of_every_width() {
    for ty in integer_types() {
        let values = values(ty);
        let bits = ty.bit_width();
        let pattern = |v: i128| (v as u64) & (u64::MAX >> (64 - bits));
        let check = |op: UnaryOp, f: &dyn Fn(i128) -> i128| {
            let result = run(Unary::from(op), &[integers(ty, &values)], None).unwrap();
            for (&v, found) in values.iter().zip(wholes(&result)) {
                assert_eq!(found, wrap(ty, f(v)), "{} of {v} in {ty}", op.opcode());
            }
        };
        check(UnaryOp::Negate, &|v| -v);
        check(UnaryOp::Not, &|v| -1 - v);
        check(UnaryOp::Popcnt, &|v| (0..bits).filter(|i| pattern(v) >> i & 1 == 1).count() as i128);
        check(UnaryOp::CountLeadingZeros, &|v| {
            (0..bits).rev().take_while(|i| pattern(v) >> i & 1 == 0).count() as i128
        });
        if ty.is_signed() {
            check(UnaryOp::Abs, &|v| v.abs());
            check(UnaryOp::Sign, &|v| v.signum());
        }
    }
}

#[test]
fn comparisons_of_every_width() {
    for ty in integer_types() {
        let (a, b) = pairs(ty);
        let check = |direction, f: &dyn Fn(&i128, &i128) -> bool| {
            let result = run(Compare::new(direction), &[integers(ty, &a), integers(ty, &b)], None).unwrap();
            for ((a, b), found) in a.iter().zip(&b).zip(wholes(&result)) {
                assert_eq!(found == 1, f(a, b), "{a} {direction:?} {b} in {ty}");
            }
        };
        check(CompareDirection::Eq, &|a, b| a == b);
        check(CompareDirection::Ne, &|a, b| a != b);
        check(CompareDirection::Ge, &|a, b| a >= b);
        check(CompareDirection::Gt, &|a, b| a > b);
        check(CompareDirection::Le, &|a, b| a <= b);
        check(CompareDirection::Lt, &|a, b| a < b);
    }
}

#[test]
fn truth_values_add_as_or_and_multiply_as_and() {
    let truth = |values: &[bool]| -> Literal {
        vector(ElementType::Pred, &values.iter().map(|&p| Scalar::Pred(p)).collect::<Vec<_>>())
    };
    let (a, b) = (truth(&[false, false, true, true]), truth(&[false, true, false, true]));
    let table = |op| wholes(&run(Binary { op }, &[a.clone(), b.clone()], None).unwrap());
    for op in [BinaryOp::Add, BinaryOp::Or, BinaryOp::Maximum] {
        assert_eq!(table(op), [0, 1, 1, 1], "{}", op.opcode());
    }
    for op in [BinaryOp::Multiply, BinaryOp::And, BinaryOp::Minimum] {
        assert_eq!(table(op), [0, 0, 0, 1], "{}", op.opcode());
    }
    assert_eq!(table(BinaryOp::Xor), [0, 1, 1, 0]);
    assert_eq!(wholes(&run(Unary::from(UnaryOp::Not), std::slice::from_ref(&a), None).unwrap()), [1, 1, 0, 0]);
    let less = run(Compare::new(CompareDirection::Lt), &[a, b], None).unwrap();
    assert_eq!(wholes(&less), [0, 1, 0, 0]);
}
