//! Rules for conversions next to data movement, so that few elements are converted and narrow ones are moved.
//!
//! A conversion moves after operations that select elements, and before [broadcasts](super::broadcast) and
//! [reshapes](super::reshape). At operations that keep or add elements, it moves to the side of the narrower type.
//! Opposite conversions thus become adjacent and cancel. [`AssignLayouts`](crate::AssignLayouts) handles transposes.

use xla_hlo::ops::Convert;
use xla_hlo::{ArrayShape, ElementKind, ElementType, InstrId, Op, Scalar};

use super::draft::{Draft, DraftValue};
use super::{Rule, rules};

/// Rules for operations that select elements of their first operand and have no other rules.
pub const CUT: &[Rule] = rules![cut_of_convert];

fn bits(cx: &Draft<'_>, id: InstrId) -> Option<usize> {
    cx.element_type(id).map(ElementType::bit_width)
}

/// `slice(convert(x))` = `convert(slice(x))`, also for `dynamic-slice` and `gather`, if it converts no more elements
/// than before.
pub fn cut_of_convert(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::Convert(_) = cx.op(inner) else { return None };
    let (from, to) = (cx.shape(cx.operand(inner, 0))?, cx.shape(id)?);
    if !cx.is_used_once(inner) || to.element_count() > from.element_count() {
        return None;
    }
    let mut operands: Vec<DraftValue> = cx.instruction(id).operands().iter().map(|&o| o.into()).collect();
    operands[0] = cx.operand(inner, 0).into();
    let cut = cx.add(cx.op(id).clone(), ArrayShape::new(from.element_type(), to.dims()), operands);
    Some(cx.add(Convert, to.clone(), [cut]))
}

/// Splits the operands of a data movement: first those that control it, then those whose elements are moved.
fn moved<'c>(cx: &Draft<'c>, id: InstrId) -> Option<(&'c [InstrId], &'c [InstrId])> {
    let operands = cx.instruction(id).operands();
    match cx.op(id) {
        Op::Reverse(_) | Op::Pad(_) | Op::Concatenate(_) => Some((&[], operands)),
        Op::Select(_) => operands.split_at_checked(1),
        _ => None,
    }
}

/// `movement(convert(x), convert(y), ...)` = `convert(movement(x, y, ...))`, if the conversions widen elements of one
/// type. Operands may also be splats that the narrow type represents. Movements are `reverse`, `pad`, `concatenate` and
/// `select`.
pub fn movement_of_widening(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (others, data) = moved(cx, id)?;
    let source = |cx: &Draft<'_>, o: InstrId| matches!(cx.op(o), Op::Convert(_)).then(|| cx.operand(o, 0));
    let from = data.iter().find_map(|&o| cx.element_type(source(cx, o)?))?;
    if from.bit_width() >= bits(cx, id)? {
        return None;
    }
    let splats: Vec<Option<Scalar>> = data.iter().map(|&o| narrow_splat(cx, o, from)).collect();
    let widens = |o: InstrId| source(cx, o).is_some_and(|x| cx.element_type(x) == Some(from)) && cx.is_used_once(o);
    if !data.iter().zip(&splats).all(|(&o, splat)| splat.is_some() || widens(o)) {
        return None;
    }
    let mut operands: Vec<DraftValue> = others.iter().map(|&o| o.into()).collect();
    for (&o, splat) in data.iter().zip(splats) {
        let value = match splat {
            Some(value) => {
                let shape = ArrayShape::new(from, cx.dims(o));
                cx.splat_of(&shape, value)
            }
            None => source(cx, o)?.into(),
        };
        operands.push(value);
    }
    let narrow = cx.add(cx.op(id).clone(), ArrayShape::new(from, cx.dims(id)), operands);
    Some(cx.add(Convert, cx.shape(id)?.clone(), [narrow]))
}

/// Returns the splat value of `id` in a narrower type that widens to it exactly.
fn narrow_splat(cx: &Draft<'_>, id: InstrId, ty: ElementType) -> Option<Scalar> {
    let (value, wide) = (cx.splat(id)?, cx.element_type(id)?);
    if matches!(wide.kind(), ElementKind::Complex) || matches!(ty.kind(), ElementKind::Complex) {
        return None;
    }
    // Zero is zero in every type, but minus zero is not.
    if value.to_bits(wide) == Scalar::zero(wide).to_bits(wide) {
        return Some(Scalar::zero(ty));
    }
    let narrow = value.rounded(ty);
    let exact = match (value, narrow) {
        (Scalar::Float(a), Scalar::Float(b)) => !a.is_nan() && a.to_bits() == b.to_bits(),
        (Scalar::Signed(a), Scalar::Signed(b)) => a == b,
        (Scalar::Unsigned(a), Scalar::Unsigned(b)) => a == b,
        _ => false,
    };
    (exact && ty.kind() == wide.kind()).then_some(narrow)
}

/// `convert(movement(x, y, ...))` = `movement(convert(x), convert(y), ...)`, if the conversion narrows. For a `select`,
/// which would turn one conversion into two, each side must have been converted from that type or be a splat.
pub fn narrowing_of_movement(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let (others, data) = moved(cx, inner)?;
    let to = cx.element_type(id)?;
    if to.bit_width() >= bits(cx, inner)? || !cx.is_used_once(inner) {
        return None;
    }
    let vanishes = |&o: &InstrId| {
        let there_and_back = matches!(cx.op(o), Op::Convert(_)) && cx.element_type(cx.operand(o, 0)) == Some(to);
        there_and_back || cx.splat(o).is_some()
    };
    if matches!(cx.op(inner), Op::Select(_)) && !data.iter().all(vanishes) {
        return None;
    }
    let mut operands: Vec<DraftValue> = others.iter().map(|&o| o.into()).collect();
    for &o in data {
        let shape = ArrayShape::new(to, cx.dims(o));
        operands.push(cx.add(Convert, shape, [o.into()]));
    }
    Some(cx.add(cx.op(inner).clone(), cx.shape(id)?.clone(), operands))
}
