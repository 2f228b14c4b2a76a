//! Floating-point arithmetic by the PTX ISA: subnormals are kept, and arithmetic returns the canonical NaN.
//!
//! Approximate instructions return the correctly rounded result, which is within every documented bound.

use super::round::{NAN_16, NAN_32, nearest, odd_sum, read};
use super::{Run, Type, TypeKind};

/// Returns the scalar function of an instruction, from its name and its modifiers without the type.
pub(super) fn find(name: &str, modifiers: &[&str], ty: Type) -> Option<Run> {
    match (ty.kind, ty.bits) {
        (TypeKind::Float, 32) => single(name, modifiers),
        (TypeKind::Float, 64) => double(name, modifiers),
        (TypeKind::Float, 16) => half::<false>(name, modifiers),
        (TypeKind::Brain, 16) => half::<true>(name, modifiers),
        _ => None,
    }
}

fn f(slot: u64) -> f32 {
    f32::from_bits(slot as u32)
}

fn put(value: f32) -> u64 {
    if value.is_nan() { NAN_32 } else { u64::from(value.to_bits()) }
}

fn d(slot: u64) -> f64 {
    f64::from_bits(slot)
}

fn single(name: &str, modifiers: &[&str]) -> Option<Run> {
    let run: Run = match (name, modifiers) {
        ("add", [] | ["rn"]) => |a, b, _| put(f(a) + f(b)),
        ("sub", [] | ["rn"]) => |a, b, _| put(f(a) - f(b)),
        ("mul", [] | ["rn"]) => |a, b, _| put(f(a) * f(b)),
        ("fma" | "mad", ["rn"]) => |a, b, c| put(f(a).mul_add(f(b), f(c))),
        ("div", ["rn"] | ["approx"] | ["full"]) => |a, b, _| put(f(a) / f(b)),
        ("rcp", ["rn"] | ["approx"]) => |a, _, _| put(1.0 / f(a)),
        ("sqrt", ["rn"] | ["approx"]) => |a, _, _| put(f(a).sqrt()),
        ("rsqrt", ["approx"]) => |a, _, _| put((1.0 / f64::from(f(a)).sqrt()) as f32),
        ("ex2", ["approx"]) => |a, _, _| put(f64::from(f(a)).exp2() as f32),
        ("lg2", ["approx"]) => |a, _, _| put(f64::from(f(a)).log2() as f32),
        ("sin", ["approx"]) => |a, _, _| put(f64::from(f(a)).sin() as f32),
        ("cos", ["approx"]) => |a, _, _| put(f64::from(f(a)).cos() as f32),
        ("tanh", ["approx"]) => |a, _, _| put(f64::from(f(a)).tanh() as f32),
        ("rcp" | "rsqrt" | "ex2" | "lg2", ["approx", "ftz"]) => return flushed(name),
        ("neg", []) => |a, _, _| a ^ 1 << 31,
        ("abs", []) => |a, _, _| a & 0x7fff_ffff,
        // PTX takes the sign from `a` and the magnitude from `b`.
        ("copysign", []) => |a, b, _| a & 1 << 31 | b & 0x7fff_ffff,
        ("min", []) => |a, b, _| put(least(f(a).into(), f(b).into()) as f32),
        ("max", []) => |a, b, _| put(greatest(f(a).into(), f(b).into()) as f32),
        ("min", ["NaN"]) => |a, b, _| put(or_nan(f(a).into(), f(b).into(), least) as f32),
        ("max", ["NaN"]) => |a, b, _| put(or_nan(f(a).into(), f(b).into(), greatest) as f32),
        _ => return None,
    };
    Some(run)
}

/// Returns an approximate function that flushes subnormal operands and results to zero (`.ftz`).
fn flushed(name: &str) -> Option<Run> {
    fn flush(value: f32) -> f32 {
        if value.is_subnormal() { 0f32.copysign(value) } else { value }
    }
    fn within(a: u64, run: impl Fn(f64) -> f64) -> u64 {
        put(flush(run(flush(f(a)).into()) as f32))
    }
    match name {
        "rcp" => Some(|a, _, _| within(a, f64::recip)),
        "rsqrt" => Some(|a, _, _| within(a, |a| a.sqrt().recip())),
        "ex2" => Some(|a, _, _| within(a, f64::exp2)),
        "lg2" => Some(|a, _, _| within(a, f64::log2)),
        _ => None,
    }
}

fn double(name: &str, modifiers: &[&str]) -> Option<Run> {
    let run: Run = match (name, modifiers) {
        ("add", [] | ["rn"]) => |a, b, _| (d(a) + d(b)).to_bits(),
        ("sub", [] | ["rn"]) => |a, b, _| (d(a) - d(b)).to_bits(),
        ("mul", [] | ["rn"]) => |a, b, _| (d(a) * d(b)).to_bits(),
        ("fma" | "mad", ["rn"]) => |a, b, c| d(a).mul_add(d(b), d(c)).to_bits(),
        ("div", ["rn"]) => |a, b, _| (d(a) / d(b)).to_bits(),
        ("rcp", ["rn"]) => |a, _, _| (1.0 / d(a)).to_bits(),
        ("sqrt", ["rn"]) => |a, _, _| d(a).sqrt().to_bits(),
        ("neg", []) => |a, _, _| a ^ 1 << 63,
        ("abs", []) => |a, _, _| a & !(1 << 63),
        ("copysign", []) => |a, b, _| a & 1 << 63 | b & !(1 << 63),
        ("min", []) => |a, b, _| least(d(a), d(b)).to_bits(),
        ("max", []) => |a, b, _| greatest(d(a), d(b)).to_bits(),
        _ => return None,
    };
    Some(run)
}

/// Returns the type of 16-bit floats: bf16 if `brain`, otherwise IEEE half precision.
const fn half_type(brain: bool) -> Type {
    Type { kind: if brain { TypeKind::Brain } else { TypeKind::Float }, bits: 16, count: 1 }
}

fn get<const BRAIN: bool>(slot: u64) -> f64 {
    read(half_type(BRAIN), slot)
}

fn give<const BRAIN: bool>(value: f64) -> u64 {
    nearest(half_type(BRAIN), value)
}

fn half<const B: bool>(name: &str, modifiers: &[&str]) -> Option<Run> {
    let run: Run = match (name, modifiers) {
        ("add", [] | ["rn"]) => |a, b, _| give::<B>(odd_sum(get::<B>(a), get::<B>(b))),
        ("sub", [] | ["rn"]) => |a, b, _| give::<B>(odd_sum(get::<B>(a), -get::<B>(b))),
        ("mul", [] | ["rn"]) => |a, b, _| give::<B>(get::<B>(a) * get::<B>(b)),
        ("fma", ["rn"]) => |a, b, c| give::<B>(odd_sum(get::<B>(a) * get::<B>(b), get::<B>(c))),
        ("fma", ["rn", "relu"]) => {
            |a, b, c| give::<B>(or_nan(odd_sum(get::<B>(a) * get::<B>(b), get::<B>(c)), 0.0, greatest))
        }
        ("neg", []) => |a, _, _| a ^ 1 << 15,
        ("abs", []) => |a, _, _| a & 0x7fff,
        ("min", []) => |a, b, _| give::<B>(least(get::<B>(a), get::<B>(b))),
        ("max", []) => |a, b, _| give::<B>(greatest(get::<B>(a), get::<B>(b))),
        ("min", ["NaN"]) => |a, b, _| give::<B>(or_nan(get::<B>(a), get::<B>(b), least)),
        ("max", ["NaN"]) => |a, b, _| give::<B>(or_nan(get::<B>(a), get::<B>(b), greatest)),
        ("ex2", ["approx"]) => |a, _, _| give::<B>(get::<B>(a).exp2()),
        ("tanh", ["approx"]) => |a, _, _| give::<B>(get::<B>(a).tanh()),
        _ => return None,
    };
    debug_assert_eq!(NAN_16, 0x7fff, "NaNs come out of `nearest`");
    Some(run)
}

/// Returns the smaller operand, where -0 is smaller than +0; if one operand is a NaN, the other one.
fn least(a: f64, b: f64) -> f64 {
    if a.is_nan() || b < a || (a == b && b.is_sign_negative()) { b } else { a }
}

fn greatest(a: f64, b: f64) -> f64 {
    if a.is_nan() || b > a || (a == b && b.is_sign_positive()) { b } else { a }
}

fn or_nan(a: f64, b: f64, choose: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { choose(a, b) }
}

/// Returns the comparison function for a type; its result is 1 for true.
pub(super) fn comparison(name: &str, ty: Type) -> Option<Run> {
    match (ty.kind, ty.bits) {
        (TypeKind::Float, 32) => compare::<0>(name),
        (TypeKind::Float, 64) => compare::<1>(name),
        (TypeKind::Float, 16) => compare::<2>(name),
        (TypeKind::Brain, 16) => compare::<3>(name),
        _ => None,
    }
}

/// Returns the value in a slot; `T` numbers the types as [`comparison`] does.
fn number<const T: u8>(slot: u64) -> f64 {
    match T {
        0 => f64::from(f(slot)),
        1 => d(slot),
        2 => get::<false>(slot),
        _ => get::<true>(slot),
    }
}

fn compare<const T: u8>(name: &str) -> Option<Run> {
    let run: Run = match name {
        "eq" => |a, b, _| u64::from(number::<T>(a) == number::<T>(b)),
        // False for a NaN, as are all comparisons without the suffix `u`.
        "ne" => |a, b, _| u64::from(number::<T>(a) < number::<T>(b) || number::<T>(a) > number::<T>(b)),
        "lt" => |a, b, _| u64::from(number::<T>(a) < number::<T>(b)),
        "le" => |a, b, _| u64::from(number::<T>(a) <= number::<T>(b)),
        "gt" => |a, b, _| u64::from(number::<T>(a) > number::<T>(b)),
        "ge" => |a, b, _| u64::from(number::<T>(a) >= number::<T>(b)),
        "equ" => |a, b, _| u64::from(!(number::<T>(a) < number::<T>(b) || number::<T>(a) > number::<T>(b))),
        "neu" => |a, b, _| u64::from(number::<T>(a) != number::<T>(b)),
        "ltu" => |a, b, _| u64::from(number::<T>(a).partial_cmp(&number::<T>(b)).is_none_or(|o| o.is_lt())),
        "leu" => |a, b, _| u64::from(number::<T>(a).partial_cmp(&number::<T>(b)).is_none_or(|o| o.is_le())),
        "gtu" => |a, b, _| u64::from(number::<T>(a).partial_cmp(&number::<T>(b)).is_none_or(|o| o.is_gt())),
        "geu" => |a, b, _| u64::from(number::<T>(a).partial_cmp(&number::<T>(b)).is_none_or(|o| o.is_ge())),
        "num" => |a, b, _| u64::from(!number::<T>(a).is_nan() && !number::<T>(b).is_nan()),
        "nan" => |a, b, _| u64::from(number::<T>(a).is_nan() || number::<T>(b).is_nan()),
        _ => return None,
    };
    Some(run)
}
