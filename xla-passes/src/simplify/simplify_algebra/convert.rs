//! Rules for conversions between element types.

use xla_hlo::ops::Convert;
use xla_hlo::{ElementKind, ElementType, InstrId, Op};

use super::convert_moves::narrowing_of_movement;
use super::draft::{Draft, DraftValue};
use super::{Rule, rules};

pub const CONVERT: &[Rule] = rules![convert_to_same_type, convert_of_exact_convert, narrowing_of_movement];

pub const BITCAST_CONVERT: &[Rule] = rules![bitcast_convert_to_same_type, bitcast_convert_of_bitcast_convert];

/// `convert(x)` to the type of `x` = `x`.
fn convert_to_same_type(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let x = cx.operand(id, 0);
    (cx.element_type(x) == cx.element_type(id)).then_some(x.into())
}

/// `convert(convert(x))` = `convert(x)`, if the inner conversion is exact and the outer one has the same result for
/// both types.
fn convert_of_exact_convert(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::Convert(_) = cx.op(inner) else { return None };
    let x = cx.operand(inner, 0);
    let (from, through) = (cx.element_type(x)?, cx.element_type(inner)?);
    let to = cx.element_type(id)?;
    // An out-of-range float saturates to the greatest integer, whereas an integer wraps around.
    let wraps = !from.is_float() && through.is_float() && to.is_integer() && !keeps_every_value(from, to);
    if wraps || !keeps_every_value(from, through) {
        return None;
    }
    if to == from {
        return Some(x.into());
    }
    Some(cx.add(Convert, cx.shape(id)?.clone(), [x.into()]))
}

/// Whether `to` can represent each value of `from`, including sign, infinities and NaN.
pub(crate) fn keeps_every_value(from: ElementType, to: ElementType) -> bool {
    use ElementKind::*;
    let (bits, room) = (from.bit_width(), to.bit_width());
    match (from.kind(), to.kind()) {
        (Pred, Pred | Signed | Unsigned) => room > 1 || from == to,
        (Pred, Float) => mantissa_bits(to).is_some(),
        (Signed, Signed) | (Unsigned, Unsigned) => bits <= room,
        (Unsigned, Signed) => bits < room,
        (Signed | Unsigned, Float) => mantissa_bits(to).is_some_and(|m| bits <= m),
        (Float, Float) => from == to || widens(from, to),
        (Complex, Complex) => bits <= room,
        _ => false,
    }
}

/// Returns the significand width in bits, including the hidden bit, of types whose exponent range is sufficient here.
fn mantissa_bits(ty: ElementType) -> Option<usize> {
    match ty {
        ElementType::F64 => Some(53),
        ElementType::F32 => Some(24),
        ElementType::F16 => Some(11),
        ElementType::BF16 => Some(8),
        _ => None,
    }
}

fn widens(from: ElementType, to: ElementType) -> bool {
    match to {
        ElementType::F64 => true,
        ElementType::F32 => from != ElementType::F64,
        _ => false,
    }
}

/// `bitcast-convert(x)` to the type of `x` = `x`.
fn bitcast_convert_to_same_type(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let x = cx.operand(id, 0);
    (cx.element_type(x) == cx.element_type(id) && cx.dims(x) == cx.dims(id)).then_some(x.into())
}

/// `bitcast-convert(bitcast-convert(x))` = `bitcast-convert(x)`, if all three types have the same width.
fn bitcast_convert_of_bitcast_convert(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::BitcastConvert(_) = cx.op(inner) else { return None };
    let x = cx.operand(inner, 0);
    let width = |id: InstrId| cx.element_type(id).map(ElementType::bit_width);
    if width(x) != width(inner) || width(inner) != width(id) {
        return None;
    }
    cx.same(id, [x.into()])
}
