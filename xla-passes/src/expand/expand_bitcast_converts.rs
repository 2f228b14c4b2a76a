//! Expands bitcast-converts between types of different widths into shifts.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{Computation, ElementKind, ElementType, InstrId, Module, Op, Result, Scalar};

use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Expands a `bitcast-convert` that adds or removes a minor dimension into shifts of unsigned integers.
///
/// Narrow elements are ordered from the least significant bits of a wide element. Conversions of six-bit floats are
/// kept, since there is no integer of their width.
pub struct ExpandBitcastConverts;

impl Pass for ExpandBitcastConverts {
    fn name(&self) -> &'static str {
        "expand-bitcast-converts"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::replace_each(self, module, cx, changes_width, expand)
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

/// Returns the unsigned integer type of the same width as `ty`; booleans are one bit wide.
pub(crate) fn pattern_type(ty: ElementType) -> Option<ElementType> {
    let unsigned = ElementType::ALL.iter().copied().filter(|u| u.kind() == ElementKind::Unsigned);
    unsigned.into_iter().find(|u| u.bit_width() == ty.bit_width() && !ty.is_complex())
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let x = at.graph()[id].operand(0);
    let (from, to) = (at.element_type(x)?, at.element_type(id)?);
    let (Some(from_bits), Some(to_bits)) = (pattern_type(from), pattern_type(to)) else { return Ok(id) };
    let pattern = as_bits(at, x, from_bits)?;
    let pattern =
        if from.bit_width() > to.bit_width() { split(at, pattern, to_bits)? } else { join(at, pattern, to_bits)? };
    from_pattern(at, pattern, to)
}

/// Reinterprets an array as unsigned integers of the same width.
fn as_bits(at: &mut Inserter<'_>, x: InstrId, bits: ElementType) -> Result<InstrId> {
    // A boolean is a byte in memory, but only its value is a bit.
    if at.element_type(x)?.kind() == ElementKind::Pred { at.convert(x, bits) } else { at.same_bits(x, bits) }
}

/// Converts bit patterns back to elements; the inverse of [`as_bits`].
pub(super) fn from_pattern(at: &mut Inserter<'_>, pattern: InstrId, to: ElementType) -> Result<InstrId> {
    if to.kind() == ElementKind::Pred { at.convert(pattern, to) } else { at.same_bits(pattern, to) }
}

/// Splits each bit pattern into several patterns of a narrower type, in a new minor dimension.
fn split(at: &mut Inserter<'_>, pattern: InstrId, to: ElementType) -> Result<InstrId> {
    let from = at.element_type(pattern)?;
    let mut dims = at.dims(pattern);
    let kept: Vec<usize> = (0..dims.len()).collect();
    dims.push(from.bit_width() / to.bit_width());
    let copies = at.broadcast(pattern, &dims, &kept)?;
    let place = at.iota(from, &dims, kept.len())?;
    let distance = at.binary_with(BinaryOp::Multiply, place, Scalar::Unsigned(to.bit_width() as u64))?;
    let shifted = at.binary(BinaryOp::ShiftRightLogical, copies, distance)?;
    at.convert(shifted, to)
}

/// Joins the bit patterns along the minor dimension into one pattern of a wider type.
fn join(at: &mut Inserter<'_>, pattern: InstrId, to: ElementType) -> Result<InstrId> {
    let width = at.element_type(pattern)?.bit_width();
    let dims = at.dims(pattern);
    let (minor, outer) = (dims.len() - 1, &dims[..dims.len() - 1]);
    let mut whole = None;
    for place in 0..dims[minor] {
        let part = at.slice(pattern, minor, place, place + 1)?;
        let part = at.reshape(part, outer)?;
        let part = at.convert(part, to)?;
        let part = match place {
            0 => part,
            _ => at.binary_with(BinaryOp::ShiftLeft, part, Scalar::Unsigned((place * width) as u64))?,
        };
        whole = Some(match whole {
            Some(sum) => at.binary(BinaryOp::Or, sum, part)?,
            None => part,
        });
    }
    whole.ok_or_else(|| xla_hlo::Error::internal("bitcast-convert has no narrow elements to combine"))
}
