//! Loops of single operations over slices, which the compiler vectorizes.

use half::f16;
use xla_hlo::ElementType;
use xla_hlo::ops::BinaryOp;

/// Combines each accumulator in the first slice with the element of the second one.
pub(super) type Step = fn(&mut [u8], &[u8]);

/// Loop of an operation on integers; `$wrap` reduces a number modulo the width of the type.
macro_rules! integer {
    ($operation:expr, $number:ty, $wrap:expr) => {{
        macro_rules! step {
            ($f:expr) => {
                Some(|accumulators: &mut [u8], elements: &[u8]| {
                    let wrap: fn($number) -> $number = $wrap;
                    let f: fn($number, $number) -> $number = $f;
                    each(accumulators, elements, |a, b| {
                        wrap(f(wrap(<$number>::from_le_bytes(a)), wrap(<$number>::from_le_bytes(b)))).to_le_bytes()
                    });
                })
            };
        }
        match $operation {
            BinaryOp::Add => step!(|a, b| a.wrapping_add(b)),
            BinaryOp::Multiply => step!(|a, b| a.wrapping_mul(b)),
            BinaryOp::Maximum => step!(|a, b| a.max(b)),
            BinaryOp::Minimum => step!(|a, b| a.min(b)),
            BinaryOp::And => step!(|a, b| a & b),
            BinaryOp::Or => step!(|a, b| a | b),
            BinaryOp::Xor => step!(|a, b| a ^ b),
            _ => None,
        }
    }};
}

/// Loop of an operation on floats. Maximum and minimum return the first NaN, and order -0 before +0.
macro_rules! float {
    ($operation:expr, $number:ty) => {{
        macro_rules! step {
            ($f:expr) => {
                Some(|accumulators: &mut [u8], elements: &[u8]| {
                    let f: fn($number, $number) -> $number = $f;
                    each(accumulators, elements, |a, b| {
                        f(<$number>::from_le_bytes(a), <$number>::from_le_bytes(b)).to_le_bytes()
                    });
                })
            };
        }
        match $operation {
            BinaryOp::Add => step!(|a, b| a + b),
            BinaryOp::Multiply => step!(|a, b| a * b),
            BinaryOp::Maximum => {
                step!(|a, b| if a.is_nan() || a > b || (a == b && a.is_sign_positive()) { a } else { b })
            }
            BinaryOp::Minimum => {
                step!(|a, b| if a.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b })
            }
            _ => None,
        }
    }};
}

/// Returns the loop of an operation whose operands and result have type `ty`. `None` for types and operations that have
/// no native arithmetic.
pub(super) fn native(operation: BinaryOp, ty: ElementType) -> Option<Step> {
    use ElementType as T;
    match ty {
        T::Pred => pred(operation),
        T::S1 => integer!(operation, i8, |x: i8| x << 7 >> 7),
        T::S2 => integer!(operation, i8, |x: i8| x << 6 >> 6),
        T::S4 => integer!(operation, i8, |x: i8| x << 4 >> 4),
        T::U1 => integer!(operation, u8, |x: u8| x & 1),
        T::U2 => integer!(operation, u8, |x: u8| x & 3),
        T::U4 => integer!(operation, u8, |x: u8| x & 15),
        T::S8 => integer!(operation, i8, |x| x),
        T::S16 => integer!(operation, i16, |x| x),
        T::S32 => integer!(operation, i32, |x| x),
        T::S64 => integer!(operation, i64, |x| x),
        T::U8 => integer!(operation, u8, |x| x),
        T::U16 => integer!(operation, u16, |x| x),
        T::U32 => integer!(operation, u32, |x| x),
        T::U64 => integer!(operation, u64, |x| x),
        T::F32 => float!(operation, f32),
        T::F64 => float!(operation, f64),
        T::F16 => half(operation, [add_f16, multiply_f16], 0x7c00),
        T::BF16 => half(operation, [add_bf16, multiply_bf16], 0x7f80),
        // Sums of complex numbers are sums of their parts.
        T::C64 if operation == BinaryOp::Add => native(operation, T::F32),
        T::C128 if operation == BinaryOp::Add => native(operation, T::F64),
        _ => None,
    }
}

/// Applies `f` to each pair of elements of `W` bytes, and stores the results over the first ones.
fn each<const W: usize>(accumulators: &mut [u8], elements: &[u8], f: impl Fn([u8; W], [u8; W]) -> [u8; W]) {
    let (accumulators, _) = accumulators.as_chunks_mut::<W>();
    let (elements, _) = elements.as_chunks::<W>();
    accumulators.iter_mut().zip(elements).for_each(|(a, &b)| *a = f(*a, b));
}

fn pred(operation: BinaryOp) -> Option<Step> {
    macro_rules! step {
        ($f:expr) => {
            Some(|accumulators: &mut [u8], elements: &[u8]| {
                let f: fn(bool, bool) -> bool = $f;
                each(accumulators, elements, |[a], [b]| [u8::from(f(a != 0, b != 0))]);
            })
        };
    }
    match operation {
        BinaryOp::Add | BinaryOp::Maximum | BinaryOp::Or => step!(|a, b| a | b),
        BinaryOp::Multiply | BinaryOp::Minimum | BinaryOp::And => step!(|a, b| a & b),
        BinaryOp::Xor => step!(|a, b| a ^ b),
        _ => None,
    }
}

/// Returns the loop of an operation on a 16-bit float type with these sums and products and this pattern of infinity.
fn half(operation: BinaryOp, [add, multiply]: [Step; 2], infinity: u16) -> Option<Step> {
    match (operation, infinity) {
        (BinaryOp::Add, _) => Some(add),
        (BinaryOp::Multiply, _) => Some(multiply),
        (BinaryOp::Maximum, 0x7c00) => Some(|a, b| order::<0x7c00>(a, b, |a, b| a >= b)),
        (BinaryOp::Minimum, 0x7c00) => Some(|a, b| order::<0x7c00>(a, b, |a, b| a <= b)),
        (BinaryOp::Maximum, _) => Some(|a, b| order::<0x7f80>(a, b, |a, b| a >= b)),
        (BinaryOp::Minimum, _) => Some(|a, b| order::<0x7f80>(a, b, |a, b| a <= b)),
        _ => None,
    }
}

/// Keeps the accumulator if it is the first NaN or if `is_kept` accepts the order of the two patterns. NaNs are greater
/// in magnitude than the pattern `INFINITY`.
fn order<const INFINITY: u16>(accumulators: &mut [u8], elements: &[u8], is_kept: fn(i16, i16) -> bool) {
    let is_nan = |x: u16| x & 0x7fff > INFINITY;
    // Patterns of negative numbers descend.
    let key = |x: u16| (x as i16) ^ (((x as i16) >> 15) & 0x7fff);
    each(accumulators, elements, |a, b| {
        let (x, y) = (u16::from_le_bytes(a), u16::from_le_bytes(b));
        if is_nan(x) || (!is_nan(y) && is_kept(key(x), key(y))) { a } else { b }
    });
}

/// Arithmetic in `f32` and one rounding: equal to correctly rounded arithmetic, since `f32` has more than twice the
/// bits of the mantissa.
fn add_f16(accumulators: &mut [u8], elements: &[u8]) {
    let wide = |x: [u8; 2]| f16::from_le_bytes(x).to_f32();
    each(accumulators, elements, |a, b| f16::from_f32(wide(a) + wide(b)).to_le_bytes());
}

fn multiply_f16(accumulators: &mut [u8], elements: &[u8]) {
    let wide = |x: [u8; 2]| f16::from_le_bytes(x).to_f32();
    each(accumulators, elements, |a, b| f16::from_f32(wide(a) * wide(b)).to_le_bytes());
}

fn add_bf16(accumulators: &mut [u8], elements: &[u8]) {
    each(accumulators, elements, |a, b| narrow_bf16(wide_bf16(a) + wide_bf16(b)));
}

fn multiply_bf16(accumulators: &mut [u8], elements: &[u8]) {
    each(accumulators, elements, |a, b| narrow_bf16(wide_bf16(a) * wide_bf16(b)));
}

fn wide_bf16(x: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(x)) << 16)
}

/// Rounds to nearest even. A NaN keeps the upper bits of its payload; arithmetic has set the quiet bit.
fn narrow_bf16(x: f32) -> [u8; 2] {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
    let bits = if x.is_nan() { bits } else { rounded };
    ((bits >> 16) as u16).to_le_bytes()
}
