//! Functions of integers. Narrow integers are sign- or zero-extended to a byte, and wrapped to their width after each
//! operation.

use xla_hlo::ops::{BinaryOp, UnaryOp};
use xla_hlo::{ElementKind, ElementType};

use super::format::normalized;
use super::value::Value;
use crate::lanes::{Lanes, Scalar};

/// Width and signedness of an integer type.
#[derive(Clone, Copy)]
struct Kind {
    signed: bool,
    /// Bits of the type; lanes may be wider.
    bits: i64,
}

impl Kind {
    fn of(ty: ElementType) -> Kind {
        Kind { signed: ty.kind() == ElementKind::Signed, bits: ty.bit_width() as i64 }
    }
}

pub(super) fn unary<'e, 'ctx>(op: UnaryOp, x: Value<'e, 'ctx>) -> Option<Value<'e, 'ctx>> {
    use UnaryOp::*;
    let ty = x.element_type();
    let Kind { signed, bits } = Kind::of(ty);
    let a = x.lanes();
    let result = match op {
        Abs if signed => a.lt(0).select(-a, a),
        CountLeadingZeros => unsigned(a, bits).leading_zeros() - (i64::from(a.scalar().bits()) - bits),
        Negate => -a,
        Not => !a,
        Popcnt => unsigned(a, bits).popcount(),
        Sign if signed => a.gt(0).select(a.int(1), a.ashr(i64::from(a.scalar().bits()) - 1)),
        Abs | Acos | Acosh | Asin | Asinh | Atan | Atanh | Cbrt | Ceil | Cosh | Cosine | Erf | Exponential
        | ExponentialMinusOne | Floor | Imag | IsFinite | Log | LogPlusOne | Logistic | Real | RoundNearestAfz
        | RoundNearestEven | Rsqrt | Sign | Sine | Sinh | Sqrt | Tan | Tanh => return None,
    };
    Some(Value::new(ty, normalized(ty, result)))
}

pub(super) fn binary<'e, 'ctx>(op: BinaryOp, x: Value<'e, 'ctx>, y: Value<'e, 'ctx>) -> Option<Value<'e, 'ctx>> {
    use BinaryOp::*;
    let ty = x.element_type();
    let kind = Kind::of(ty);
    let (a, b) = (x.lanes(), y.lanes());
    let result = match op {
        Add => a + b,
        And => a & b,
        Divide => divide(a, b, kind),
        Maximum if kind.signed => a.smax(b),
        Maximum => a.umax(b),
        Minimum if kind.signed => a.smin(b),
        Minimum => a.umin(b),
        Mulhi => multiply_high(a, b, kind),
        Multiply => a * b,
        Or => a | b,
        Power => power(a, b, kind),
        Remainder => remainder(a, b, kind),
        ShiftLeft => in_range(b, kind).select(a << shift_amount(b, kind), 0),
        ShiftRightArithmetic => shift_right_arithmetic(a, b, kind),
        ShiftRightLogical => in_range(b, kind).select(unsigned(a, kind.bits).lshr(shift_amount(b, kind)), 0),
        Subtract => a - b,
        Xor => a ^ b,
        Atan2 | Complex => return None,
    };
    Some(Value::new(ty, normalized(ty, result)))
}

/// Zero-extends the type's own bits.
fn unsigned<'e, 'ctx>(x: Lanes<'e, 'ctx>, bits: i64) -> Lanes<'e, 'ctx> {
    if bits < i64::from(x.scalar().bits()) { x & ((1 << bits) - 1) } else { x }
}

/// Whether a shift amount, an unsigned number of the type's width, is less than the width.
fn in_range<'e, 'ctx>(amount: Lanes<'e, 'ctx>, kind: Kind) -> Lanes<'e, 'ctx> {
    unsigned(amount, kind.bits).ult(kind.bits)
}

/// Returns an amount that is valid for a shift, and unchanged if it is less than the width.
///
/// LLVM maps the shift and the range check to the shift of PTX, which saturates but takes 32-bit amounts. It would drop
/// the range check, although a 64-bit amount may be in range after truncation.
fn shift_amount<'e, 'ctx>(amount: Lanes<'e, 'ctx>, kind: Kind) -> Lanes<'e, 'ctx> {
    if kind.bits > 32 { amount & (kind.bits - 1) } else { amount }
}

/// Shifts right and fills with the top bit of the width, also for unsigned types.
fn shift_right_arithmetic<'e, 'ctx>(a: Lanes<'e, 'ctx>, amount: Lanes<'e, 'ctx>, kind: Kind) -> Lanes<'e, 'ctx> {
    let unused = i64::from(a.scalar().bits()) - kind.bits;
    let filled = if unused > 0 { (a << unused).ashr(unused) } else { a };
    filled.ashr(unsigned(amount, kind.bits).umin(kind.bits - 1))
}

fn multiply_high<'e, 'ctx>(a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>, kind: Kind) -> Lanes<'e, 'ctx> {
    if kind.bits < 8 {
        // The lane holds the whole product.
        return if kind.signed { (a * b).ashr(kind.bits) } else { (a * b).lshr(kind.bits) };
    }
    if kind.signed { a.multiply_high_signed(b) } else { a.multiply_high_unsigned(b) }
}

/// Divides; returns -1 (all ones) for a zero divisor, and the dividend for the only overflow.
fn divide<'e, 'ctx>(a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>, kind: Kind) -> Lanes<'e, 'ctx> {
    b.eq(0).select(a.int(-1), quotient(a, b, kind))
}

/// Returns the remainder; the dividend for a zero divisor, and 0 for the only overflow.
fn remainder<'e, 'ctx>(a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>, kind: Kind) -> Lanes<'e, 'ctx> {
    // For a zero divisor the quotient is arbitrary, and its product with the divisor is zero.
    a - quotient(a, b, kind) * b
}

/// Returns the truncated quotient; arbitrary for a zero divisor, and the dividend for the only overflow.
///
/// No vector unit divides integers, and LLVM would scalarize the division. Vectors divide in a float type that holds
/// both operands exactly. The correctly rounded quotient is never rounded up to an integer: its distance from one is at
/// least 1 / divisor, which is more than half a unit in the last place.
fn quotient<'e, 'ctx>(a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>, kind: Kind) -> Lanes<'e, 'ctx> {
    let bits = a.scalar().bits();
    let overflow = b.eq(-1);
    let unsafe_divisor = if kind.signed { b.eq(0) | overflow } else { b.eq(0) };
    let divisor = unsafe_divisor.select(b.int(1), b);
    // Division by a constant becomes a multiplication in LLVM.
    let whole = if a.width() > 1 && bits <= 32 && !b.is_constant() {
        let wide = if bits <= 16 { Scalar::F32 } else { Scalar::F64 };
        if kind.signed {
            (a.signed_to_float(wide) / divisor.signed_to_float(wide)).float_to_signed(32).trunc_to(bits)
        } else {
            (a.unsigned_to_float(wide) / divisor.unsigned_to_float(wide)).float_to_unsigned(32).trunc_to(bits)
        }
    } else if kind.signed {
        a.sdiv(divisor)
    } else {
        a.udiv(divisor)
    };
    if kind.signed { overflow.select(-a, whole) } else { whole }
}

/// Computes a power by squaring; negative exponents give 1 for base 1 and 0 for all other bases.
fn power<'e, 'ctx>(base: Lanes<'e, 'ctx>, exponent: Lanes<'e, 'ctx>, kind: Kind) -> Lanes<'e, 'ctx> {
    let one = base.int(1);
    let [result, ..] = base.emitter().repeat_while(
        [one, base, exponent],
        |[_, _, exponent]| if kind.signed { exponent.gt(0) } else { exponent.ne(0) },
        |[result, square, exponent]| {
            let odd = (exponent & 1).ne(0);
            // A lane with a negative exponent may iterate along with others; its result is not used.
            [odd.select(result * square, result), square * square, exponent.lshr(1)]
        },
    );
    if !kind.signed {
        return result;
    }
    exponent.lt(0).select(base.eq(1).select(one, 0), result)
}
