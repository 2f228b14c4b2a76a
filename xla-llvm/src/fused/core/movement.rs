//! Data movement: index arithmetic, and guards for elements with several possible sources.

use xla_hlo::ops::{Op, Pad};
use xla_hlo::{Error, InstrId, Result};

use crate::elemental::Value;
use crate::fused::core::addressing::Addressing;
use crate::fused::core::gather::gathered_from;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{self, AffineExpr, Index, position, reshape_groups};

/// Returns the operand and the index of the element that an operation moves or copies; `None` for other operations.
pub(crate) fn moved_from<'m, A: Addressing<'m>>(
    s: &mut A,
    id: InstrId,
    index: &Index,
) -> Result<Option<(InstrId, Index)>> {
    let graph = s.graph();
    let instruction = &graph[id];
    let Some(&operand) = instruction.operands().first() else { return Ok(None) };
    let at = match instruction.op() {
        Op::Copy(_) | Op::OptBarrier(_) => index.clone(),
        Op::Broadcast(b) => affine::broadcast(index, &b.dimensions),
        Op::Transpose(t) => affine::transpose(index, &t.permutation),
        Op::Slice(slice) => affine::slice(index, &slice.ranges),
        Op::Reverse(r) => affine::reverse(index, &r.dimensions, instruction.shape().expect_array()?.dims()),
        Op::Reshape(_) | Op::Bitcast(_) => reshaped(s, operand, id, index)?,
        Op::DynamicSlice(d) => {
            let starts = s.starts(id, 1, operand, &d.sizes)?;
            index.iter().zip(&starts).map(|(c, start)| c.clone().plus(start)).collect()
        }
        Op::Gather(gather) => gathered_from(s, id, gather, index)?,
        _ => return Ok(None),
    };
    Ok(Some((operand, at)))
}

/// Returns the operand's index for an element of a reshape: delinearizes the position within each group of dimensions.
fn reshaped<'m, A: Addressing<'m>>(s: &mut A, from: InstrId, to: InstrId, index: &Index) -> Result<Index> {
    let from = s.graph()[from].shape().expect_array()?.dims();
    let to = s.graph()[to].shape().expect_array()?.dims();
    let mut operand = Vec::with_capacity(from.len());
    for (inside, outside) in reshape_groups(from, to) {
        let strides = affine::row_major_strides(&to[outside.clone()]);
        let mut rest = position(&index[outside], &strides);
        let sizes = &from[inside];
        let mut exprs = vec![AffineExpr::default(); sizes.len()];
        for (i, &size) in sizes.iter().enumerate().rev() {
            if i == 0 {
                exprs[0] = std::mem::take(&mut rest);
            } else if size > 1 {
                let (quotient, remainder) = s.quotient(&rest, size as i64)?;
                exprs[i] = remainder;
                rest = quotient;
            }
        }
        operand.extend(exprs);
    }
    Ok(operand)
}

/// Returns the index in a pad's operand, which has no dimension of size 0, and adds the condition that the element is
/// there.
pub(crate) fn inside_pad<'m, A: Addressing<'m>>(
    s: &mut A,
    id: InstrId,
    pad: &Pad,
    index: &Index,
    conditions: &mut Option<A::Condition>,
) -> Result<Index> {
    let dims = s.graph()[s.graph()[id].operand(0)].shape().expect_array()?.dims();
    let mut inside = Vec::with_capacity(dims.len());
    for ((expr, p), &size) in affine::pad(index, &pad.dims).into_iter().zip(&pad.dims).zip(dims) {
        let step = p.interior as i64 + 1;
        let last = (size as i64 - 1) * step;
        s.require_up_to(conditions, &expr, last)?;
        inside.push(if step == 1 { expr } else { s.on_grid(conditions, &expr, step, size)? });
    }
    Ok(inside)
}

/// Returns the index in the update of a dynamic-update-slice, and adds the condition that the element is there.
pub(crate) fn inside_update<'m, A: Addressing<'m>>(
    s: &mut A,
    id: InstrId,
    index: &Index,
    conditions: &mut Option<A::Condition>,
) -> Result<Index> {
    let graph = s.graph();
    let sizes = graph[graph[id].operand(1)].shape().expect_array()?.dims();
    let starts = s.starts(id, 2, graph[id].operand(0), sizes)?;
    let mut inside = Vec::with_capacity(sizes.len());
    for ((expr, start), &size) in index.iter().zip(&starts).zip(sizes) {
        let expr = expr.clone().plus(&start.clone().scaled(-1));
        s.require_up_to(conditions, &expr, size as i64 - 1)?;
        inside.push(expr);
    }
    Ok(inside)
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Computes the element of an operation that moves elements.
    pub(crate) fn moved(&mut self, id: InstrId, index: &Index) -> Result<Value<'e, 'ctx>> {
        if let Some((operand, at)) = moved_from(self, id, index)? {
            return self.element(operand, &at);
        }
        let instruction = &self.graph()[id];
        match instruction.op() {
            Op::Iota(iota) => {
                let ty = instruction.shape().expect_array()?.element_type();
                self.coordinate_value(&index[iota.dimension], ty)
            }
            Op::Pad(pad) => self.padded(id, pad, index),
            Op::Concatenate(c) => self.concatenated(id, c.dimension, index),
            Op::DynamicUpdateSlice(_) => self.updated(id, index),
            other => {
                Err(Error::internal(format!("%{} ({}) is not a data movement", instruction.name(), other.opcode())))
            }
        }
    }

    fn padded(&mut self, id: InstrId, pad: &Pad, index: &Index) -> Result<Value<'e, 'ctx>> {
        let instruction = &self.graph()[id];
        let (operand, value) = (instruction.operand(0), instruction.operand(1));
        let width = self.width(index);
        let dims = self.graph()[operand].shape().expect_array()?.dims();
        let value = self.element(value, &Vec::new())?.splat(width);
        if dims.contains(&0) {
            return Ok(value);
        }
        let mut conditions = None;
        let inside = inside_pad(self, id, pad, index, &mut conditions)?;
        self.choose(conditions, width, operand, &inside, value)
    }

    /// Computes an element of a dynamic-update-slice that is not in place.
    fn updated(&mut self, id: InstrId, index: &Index) -> Result<Value<'e, 'ctx>> {
        let instruction = &self.graph()[id];
        let (operand, update) = (instruction.operand(0), instruction.operand(1));
        let width = self.width(index);
        let old = self.element(operand, index)?;
        if self.graph()[update].shape().expect_array()?.dims().contains(&0) {
            return Ok(old);
        }
        let mut conditions = None;
        let inside = inside_update(self, id, index, &mut conditions)?;
        self.choose(conditions, width, update, &inside, old)
    }
}
