//! Integer arithmetic, logic, shifts and comparisons, by the corresponding chapters of the PTX ISA.

use super::{Run, Type};

/// Integer type of a value in a slot.
trait Integer: Copy + Ord + 'static {
    /// Width in bits.
    const BITS: u32;
    const ZERO: Self;
    fn get(slot: u64) -> Self;
    fn put(self) -> u64;
    fn wide(self) -> i128;
    fn narrow(value: i128) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => { $(
        impl Integer for $type {
            const BITS: u32 = <$type>::BITS;
            const ZERO: Self = 0;
            fn get(slot: u64) -> Self { slot as $type }
            fn put(self) -> u64 { self as u64 }
            fn wide(self) -> i128 { self as i128 }
            fn narrow(value: i128) -> Self { value as $type }
        }
    )* };
}
integers!(u8, u16, u32, u64, i8, i16, i32, i64);

/// Selects the instance of a generic function by the width and signedness of a type.
macro_rules! by_type {
    ($ty:expr, $function:ident) => {
        match ($ty.bits, $ty.is_signed()) {
            (16, false) => Some($function::<u16> as Run),
            (16, true) => Some($function::<i16> as Run),
            (32, false) => Some($function::<u32> as Run),
            (32, true) => Some($function::<i32> as Run),
            (64, false) => Some($function::<u64> as Run),
            (64, true) => Some($function::<i64> as Run),
            _ => None,
        }
    };
}

/// Returns the function of an instruction, from its name and its modifiers without the type.
pub(super) fn find(name: &str, modifiers: &[&str], ty: Type) -> Option<Run> {
    if !ty.is_integer() {
        return None;
    }
    match (name, modifiers) {
        ("add", []) => Some(|a, b, _| a.wrapping_add(b)),
        ("sub", []) => Some(|a, b, _| a.wrapping_sub(b)),
        ("add", ["sat"]) => by_type!(ty, add_saturating),
        ("sub", ["sat"]) => by_type!(ty, sub_saturating),
        ("mul", ["lo"]) => Some(|a, b, _| a.wrapping_mul(b)),
        ("mad", ["lo"]) => Some(|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        ("mul", ["hi"]) => by_type!(ty, mul_high),
        ("mad", ["hi"]) => by_type!(ty, mad_high),
        ("mul", ["wide"]) if ty.bits < 64 => by_type!(ty, mul_wide),
        ("mad", ["wide"]) if ty.bits < 64 => by_type!(ty, mad_wide),
        ("div", []) => by_type!(ty, divide),
        ("rem", []) => by_type!(ty, remainder),
        ("min", []) => by_type!(ty, min),
        ("max", []) => by_type!(ty, max),
        ("neg", []) => Some(|a, _, _| a.wrapping_neg()),
        ("abs", []) => by_type!(ty, abs),
        ("shr", []) => by_type!(ty, shift_right),
        ("shl", []) => by_type!(ty, shift_left),
        ("bfe", []) => by_type!(ty, extract),
        ("bfi", []) => None,
        ("popc", []) => by_type!(ty, ones),
        ("clz", []) => by_type!(ty, leading_zeros),
        ("brev", []) => by_type!(ty, reverse),
        ("and", []) => Some(|a, b, _| a & b),
        ("or", []) => Some(|a, b, _| a | b),
        ("xor", []) => Some(|a, b, _| a ^ b),
        ("not", []) => Some(|a, _, _| !a),
        ("cnot", []) => by_type!(ty, is_zero),
        ("prmt", []) => Some(permute),
        ("shf", ["l", "wrap"]) => Some(|a, b, c| funnel(a, b) << (c & 31) >> 32),
        ("shf", ["r", "wrap"]) => Some(|a, b, c| funnel(a, b) >> (c & 31)),
        ("shf", ["l", "clamp"]) => Some(|a, b, c| (u128::from(funnel(a, b)) << (c as u32).min(32) >> 32) as u64),
        ("shf", ["r", "clamp"]) => Some(|a, b, c| funnel(a, b) >> (c as u32).min(32)),
        _ => None,
    }
}

/// Returns the comparison function, whose result is 1 for true.
pub(super) fn comparison(name: &str, ty: Type) -> Option<Run> {
    match name {
        "eq" => by_type!(ty, equal),
        "ne" => by_type!(ty, not_equal),
        "lt" | "lo" => by_type!(ty, less),
        "le" | "ls" => by_type!(ty, less_or_equal),
        "gt" | "hi" => by_type!(ty, greater),
        "ge" | "hs" => by_type!(ty, greater_or_equal),
        _ => None,
    }
}

/// Returns the function of a logic instruction on predicates.
pub(super) fn predicate(name: &str) -> Option<Run> {
    match name {
        "and" => Some(|a, b, _| a & b & 1),
        "or" => Some(|a, b, _| (a | b) & 1),
        "xor" => Some(|a, b, _| (a ^ b) & 1),
        "not" => Some(|a, _, _| !a & 1),
        "mov" => Some(|a, _, _| a & 1),
        _ => None,
    }
}

fn add_saturating<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    clamped::<T>(T::get(a).wide() + T::get(b).wide())
}

fn sub_saturating<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    clamped::<T>(T::get(a).wide() - T::get(b).wide())
}

/// Clamps a value to the range of the signed type.
fn clamped<T: Integer>(value: i128) -> u64 {
    let most = (1i128 << (T::BITS - 1)) - 1;
    T::narrow(value.clamp(-most - 1, most)).put()
}

fn mul_high<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    // A product of two `u64` needs all 128 bits; the bits of the wrapped product are correct.
    let product = T::get(a).wide().wrapping_mul(T::get(b).wide());
    (product >> T::BITS) as u64
}

fn mad_high<T: Integer>(a: u64, b: u64, c: u64) -> u64 {
    mul_high::<T>(a, b, 0).wrapping_add(c)
}

fn mul_wide<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    (T::get(a).wide() * T::get(b).wide()) as u64
}

fn mad_wide<T: Integer>(a: u64, b: u64, c: u64) -> u64 {
    mul_wide::<T>(a, b, 0).wrapping_add(c)
}

/// Divides. Division by zero "yields an unspecified, machine-specific value", which is all ones on NVIDIA's devices.
fn divide<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    if T::get(b) == T::ZERO { u64::MAX } else { (T::get(a).wide() / T::get(b).wide()) as u64 }
}

fn remainder<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    if T::get(b) == T::ZERO { a } else { (T::get(a).wide() % T::get(b).wide()) as u64 }
}

fn min<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    T::get(a).min(T::get(b)).put()
}

fn max<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    T::get(a).max(T::get(b)).put()
}

fn abs<T: Integer>(a: u64, _: u64, _: u64) -> u64 {
    T::get(a).wide().unsigned_abs() as u64
}

/// Shifts right. The amount is an unsigned 32-bit number, clamped to the width.
fn shift_right<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    (T::get(a).wide() >> (b as u32).min(T::BITS)) as u64
}

fn shift_left<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    (u128::from(a) << (b as u32).min(T::BITS)) as u64
}

/// `bfe`: extracts `c` bits from bit `b` on, both modulo 256. Bits beyond the width are copies of the sign.
fn extract<T: Integer>(a: u64, b: u64, c: u64) -> u64 {
    let (start, length) = (b as u8 as u32, c as u8 as u32);
    let (value, is_signed) = (T::get(a).wide(), T::narrow(-1).wide() < 0);
    if length == 0 {
        return 0;
    }
    let last = start.saturating_add(length - 1).min(T::BITS - 1);
    let bit = |at: u32| value >> at & 1;
    let sign = is_signed && bit(last) == 1;
    let mut result = if sign { -1i128 } else { 0 };
    for at in 0..length.min(T::BITS) {
        let value = if start + at < T::BITS { bit(start + at) } else { i128::from(sign) };
        result = result & !(1 << at) | value << at;
    }
    result as u64
}

/// `bfi`: inserts bits of `a` into `b`. The low half of `c` is the start, the high half the length.
pub(super) fn insert<const BITS: u32>(a: u64, b: u64, c: u64) -> u64 {
    let (start, length) = (c as u8 as u32, (c >> 32) as u8 as u32);
    if start >= BITS || length == 0 {
        return b;
    }
    let mask = if length >= 64 { u64::MAX } else { (1 << length) - 1 } << start;
    b & !mask | a << start & mask
}

fn ones<T: Integer>(a: u64, _: u64, _: u64) -> u64 {
    u64::from((T::get(a).put() << (64 - T::BITS)).count_ones())
}

fn leading_zeros<T: Integer>(a: u64, _: u64, _: u64) -> u64 {
    u64::from((a << (64 - T::BITS)).leading_zeros().min(T::BITS))
}

fn reverse<T: Integer>(a: u64, _: u64, _: u64) -> u64 {
    a.reverse_bits() >> (64 - T::BITS)
}

fn is_zero<T: Integer>(a: u64, _: u64, _: u64) -> u64 {
    u64::from(T::get(a) == T::ZERO)
}

/// `prmt`: selects four of the eight bytes of two words. Each selector has four bits: the byte's index, and whether to
/// replicate its sign bit instead.
fn permute(a: u64, b: u64, c: u64) -> u64 {
    let bytes = (a & 0xffff_ffff | b << 32).to_le_bytes();
    let chosen = [0, 4, 8, 12].map(|shift| {
        let byte = bytes[(c >> shift & 7) as usize];
        if c >> shift & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
    });
    u64::from(u32::from_le_bytes(chosen))
}

fn funnel(low: u64, high: u64) -> u64 {
    low & 0xffff_ffff | high << 32
}

fn equal<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    u64::from(T::get(a) == T::get(b))
}

fn not_equal<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    u64::from(T::get(a) != T::get(b))
}

fn less<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    u64::from(T::get(a) < T::get(b))
}

fn less_or_equal<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    u64::from(T::get(a) <= T::get(b))
}

fn greater<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    u64::from(T::get(a) > T::get(b))
}

fn greater_or_equal<T: Integer>(a: u64, b: u64, _: u64) -> u64 {
    u64::from(T::get(a) >= T::get(b))
}
