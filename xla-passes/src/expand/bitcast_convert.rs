//! Bitcast-converts between types of different widths as shifts.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{Computation, ElementKind, ElementType, InstrId, Module, Op, Result, Scalar};

use super::Writer;
use crate::{Pass, PassContext};

/// Puts `bitcast-convert` that adds or removes a minor dimension in terms of shifts of unsigned integers.
///
/// Narrow elements follow each other from the least significant bits of a wide one. Six-bit floats stay, for there is no
/// integer of their width.
pub struct ExpandBitcastConverts;

impl Pass for ExpandBitcastConverts {
    fn name(&self) -> &'static str {
        "expand-bitcast-converts"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        super::expand_each(module, changes_width, expand)
    }
}

fn changes_width(graph: &Computation, id: InstrId) -> bool {
    let instruction = &graph[id];
    let Op::BitcastConvert(_) = instruction.op() else { return false };
    let types = graph[instruction.operand(0)].shape().element_type().zip(instruction.shape().element_type());
    types.is_some_and(|(from, to)| {
        from.bit_width() != to.bit_width() && [from, to].into_iter().all(|ty| pattern_type(ty).is_some())
    })
}

/// The unsigned integer type as wide as `ty`; truth values are bits.
pub(super) fn pattern_type(ty: ElementType) -> Option<ElementType> {
    let unsigned = ElementType::ALL.iter().copied().filter(|u| u.kind() == ElementKind::Unsigned);
    unsigned.into_iter().find(|u| u.bit_width() == ty.bit_width() && !ty.is_complex())
}

fn expand(w: &mut Writer<'_>, id: InstrId) -> Result<InstrId> {
    let x = w.graph()[id].operand(0);
    let (from, to) = (w.element_type(x)?, w.element_type(id)?);
    let (Some(from_bits), Some(to_bits)) = (pattern_type(from), pattern_type(to)) else { return Ok(id) };
    let pattern = as_bits(w, x, from_bits)?;
    let pattern =
        if from.bit_width() > to.bit_width() { split(w, pattern, to_bits)? } else { join(w, pattern, to_bits)? };
    from_pattern(w, pattern, to)
}

/// An array as unsigned integers of the same width.
fn as_bits(w: &mut Writer<'_>, x: InstrId, bits: ElementType) -> Result<InstrId> {
    // A truth value is a byte in memory; its one bit is its value.
    if w.element_type(x)?.kind() == ElementKind::Pred { w.convert(x, bits) } else { w.same_bits(x, bits) }
}

/// Inverse of [`as_bits`].
pub(super) fn from_pattern(w: &mut Writer<'_>, pattern: InstrId, to: ElementType) -> Result<InstrId> {
    if to.kind() == ElementKind::Pred { w.convert(pattern, to) } else { w.same_bits(pattern, to) }
}

/// Each pattern as several of a narrower type, in a new minor dimension.
fn split(w: &mut Writer<'_>, pattern: InstrId, to: ElementType) -> Result<InstrId> {
    let from = w.element_type(pattern)?;
    let mut dims = w.dims(pattern);
    let kept: Vec<usize> = (0..dims.len()).collect();
    dims.push(from.bit_width() / to.bit_width());
    let copies = w.broadcast(pattern, &dims, &kept)?;
    let place = w.iota(from, &dims, kept.len())?;
    let distance = w.binary_with(BinaryOp::Multiply, place, Scalar::Unsigned(to.bit_width() as u64))?;
    let shifted = w.binary(BinaryOp::ShiftRightLogical, copies, distance)?;
    w.convert(shifted, to)
}

/// The patterns of the minor dimension as one of a wider type.
fn join(w: &mut Writer<'_>, pattern: InstrId, to: ElementType) -> Result<InstrId> {
    let width = w.element_type(pattern)?.bit_width();
    let dims = w.dims(pattern);
    let (minor, outer) = (dims.len() - 1, &dims[..dims.len() - 1]);
    let mut whole = None;
    for place in 0..dims[minor] {
        let part = w.slice(pattern, minor, place, place + 1)?;
        let part = w.reshape(part, outer)?;
        let part = w.convert(part, to)?;
        let part = match place {
            0 => part,
            _ => w.binary_with(BinaryOp::ShiftLeft, part, Scalar::Unsigned((place * width) as u64))?,
        };
        whole = Some(match whole {
            Some(sum) => w.binary(BinaryOp::Or, sum, part)?,
            None => part,
        });
    }
    whole.ok_or_else(|| xla_hlo::Error::internal("a wide element has no parts"))
}
