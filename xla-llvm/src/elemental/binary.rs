//! Functions of two elements.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementKind, ElementType, Error, Result};

use super::convert::wrapped;
use super::round::rounded;
use super::value::Value;
use crate::emitter::Emitter;
use crate::lanes::Lanes;
use crate::math;

/// A function of two elements of one type, in equally many lanes.
pub fn binary<'e, 'ctx>(
    _: &'e Emitter<'ctx>,
    op: BinaryOp,
    x: Value<'e, 'ctx>,
    y: Value<'e, 'ctx>,
) -> Result<Value<'e, 'ctx>> {
    let ty = x.element_type();
    let (a, b) = (x.lanes(), y.lanes());
    if op == BinaryOp::Complex {
        let complex = ty.complex_of().ok_or_else(|| not_for(op, ty))?;
        return Ok(Value::complex(complex, a, b));
    }
    let lanes = match ty.kind() {
        ElementKind::Pred => predicate(op, a, b),
        ElementKind::Signed => integer(op, ty, a, b).map(|x| wrapped(x, ty)),
        ElementKind::Unsigned => integer(op, ty, a, b).map(|x| wrapped(x, ty)),
        ElementKind::Float => float(op, a, b).map(|x| rounded(ty, x)),
        ElementKind::Complex => None,
    };
    lanes.map(|lanes| Value::new(ty, lanes)).ok_or_else(|| not_for(op, ty))
}

fn not_for(op: BinaryOp, ty: ElementType) -> Error {
    Error::unimplemented(format!("{} of {ty} in native code", op.opcode()))
}

/// `add` and `max` are or, `multiply` and `min` are and, `power` is `a or not b`.
fn predicate<'e, 'ctx>(op: BinaryOp, a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> Option<Lanes<'e, 'ctx>> {
    Some(match op {
        BinaryOp::Add | BinaryOp::Or | BinaryOp::Maximum => a | b,
        BinaryOp::Multiply | BinaryOp::And | BinaryOp::Minimum => a & b,
        BinaryOp::Xor | BinaryOp::Subtract => a ^ b,
        BinaryOp::Power => a | !b,
        _ => return None,
    })
}

fn float<'e, 'ctx>(op: BinaryOp, a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> Option<Lanes<'e, 'ctx>> {
    Some(match op {
        BinaryOp::Add => (a + b).contractable(),
        BinaryOp::Subtract => (a - b).contractable(),
        BinaryOp::Multiply => (a * b).contractable(),
        BinaryOp::Divide => a / b,
        BinaryOp::Maximum => propagating(a, b, a.gt(b)),
        BinaryOp::Minimum => propagating(a, b, a.lt(b)),
        BinaryOp::Remainder => a.float_remainder(b),
        BinaryOp::Power => math::pow(a, b),
        BinaryOp::Atan2 => math::atan2(a, b),
        _ => return None,
    })
}

/// `a` where it is chosen or NaN, else `b`, which may be NaN.
fn propagating<'e, 'ctx>(a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>, chosen: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    (chosen | a.is_nan()).select(a, b)
}

fn integer<'e, 'ctx>(op: BinaryOp, ty: ElementType, a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> Option<Lanes<'e, 'ctx>> {
    let signed = ty.kind() == ElementKind::Signed;
    let bits = ty.bit_width() as i64;
    Some(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Maximum if signed => a.smax(b),
        BinaryOp::Maximum => a.umax(b),
        BinaryOp::Minimum if signed => a.smin(b),
        BinaryOp::Minimum => a.umin(b),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Divide => quotient(ty, a, b),
        BinaryOp::Remainder => remainder(ty, a, b),
        BinaryOp::Power => power(ty, a, b),
        BinaryOp::Mulhi => high_product(ty, a, b),
        // Amounts are compared without sign, so that negative ones are too large.
        BinaryOp::ShiftLeft => b.ult(bits).select(a << inside(b, bits), 0),
        BinaryOp::ShiftRightLogical => b.ult(bits).select(unsigned_bits(ty, a).lshr(inside(b, bits)), 0),
        BinaryOp::ShiftRightArithmetic => {
            let sign = if signed { a } else { (a << (8 - bits.min(8))).ashr(8 - bits.min(8)) };
            let fill = sign.ashr(bits - 1);
            b.ult(bits).select(sign.ashr(inside(b, bits)), fill)
        }
        _ => return None,
    })
}

/// The bits of the declared width, without sign extension of narrow ones.
fn unsigned_bits<'e, 'ctx>(ty: ElementType, x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if ty.bit_width() < 8 { x & ((1 << ty.bit_width()) - 1) } else { x }
}

/// A shift amount that is defined; what it gives for amounts outside is replaced.
fn inside<'e, 'ctx>(b: Lanes<'e, 'ctx>, bits: i64) -> Lanes<'e, 'ctx> {
    b.ult(bits).select(b, 0)
}

/// x/0 is all ones, the least number by -1 is itself.
fn quotient<'e, 'ctx>(ty: ElementType, a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let by_zero = b.eq(0);
    if ty.kind() == ElementKind::Unsigned {
        return by_zero.select(a.int(-1), a.udiv(by_zero.select(b.int(1), b)));
    }
    let overflow = overflows(a, b);
    let quotient = a.sdiv((by_zero | overflow).select(b.int(1), b));
    by_zero.select(a.int(-1), quotient)
}

/// x%0 is x, the least number by -1 leaves 0.
fn remainder<'e, 'ctx>(ty: ElementType, a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let by_zero = b.eq(0);
    if ty.kind() == ElementKind::Unsigned {
        return by_zero.select(a, a.urem(by_zero.select(b.int(1), b)));
    }
    let overflow = overflows(a, b);
    let remainder = a.srem((by_zero | overflow).select(b.int(1), b));
    by_zero.select(a, remainder)
}

/// Whether this is the least number of the lanes by -1, the division that traps.
fn overflows<'e, 'ctx>(a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let least = i64::MIN >> (64 - a.scalar().bits());
    a.eq(least) & b.eq(-1)
}

/// By squaring, wrapping; x^0 is 1; a negative exponent gives 1 for base 1, else 0.
fn power<'e, 'ctx>(ty: ElementType, base: Lanes<'e, 'ctx>, exponent: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let bits = ty.bit_width() as i64;
    let one = base.int(1);
    let mut result = one;
    let mut square = base;
    for bit in 0..bits {
        let factor = (exponent.lshr(bit) & 1).ne(0).select(square, one);
        result = result * factor;
        square = square * square;
    }
    if ty.kind() == ElementKind::Unsigned {
        return result;
    }
    let inverse = base.eq(1).select(one, 0);
    exponent.lt(0).select(inverse, result)
}

/// The upper half of the product in twice the width.
fn high_product<'e, 'ctx>(ty: ElementType, a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let (bits, storage) = (ty.bit_width() as i64, a.scalar().bits());
    let wide = storage * 2;
    if ty.kind() == ElementKind::Signed {
        (a.sext(wide) * b.sext(wide)).ashr(bits).trunc(storage)
    } else {
        (a.zext(wide) * b.zext(wide)).lshr(bits).trunc(storage)
    }
}
