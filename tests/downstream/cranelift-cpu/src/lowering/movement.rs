//! Data movement: maps the index of a result's element to an index of the operand.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use xla::hlo::ops::Op;
use xla::hlo::{ElementKind, ElementType, InstrId};

use super::element::Expression;
use super::fold::inside;
use crate::builder::KernelBuilder;

impl Expression<'_> {
    /// Computes the operand's element that a data movement places at an index.
    pub fn moved(&mut self, k: &mut KernelBuilder<'_>, id: InstrId, at: &[Value]) -> Option<Value> {
        let (instruction, (ty, dims)) = (&self.graph[id], self.array(id)?);
        let operands = instruction.operands();
        let (operand, (operand_type, operand_dims)) = (operands[0], self.array(operands[0])?);
        let mut inside_at = at.to_vec();
        match instruction.op() {
            Op::Copy(_) => {}
            Op::Broadcast(op) => inside_at = op.dimensions.iter().map(|&d| at[d]).collect(),
            Op::Transpose(op) => op.permutation.iter().zip(at).for_each(|(&d, &i)| inside_at[d] = i),
            Op::Slice(op) => {
                for (i, range) in inside_at.iter_mut().zip(&op.ranges) {
                    let step = k.times(*i, range.stride as i64);
                    *i = k.plus(step, range.start as i64);
                }
            }
            Op::Reverse(op) => {
                for &d in &op.dimensions {
                    let back = k.times(at[d], -1);
                    inside_at[d] = k.plus(back, dims[d] as i64 - 1);
                }
            }
            // Arrays within a kernel are row-major; a bitcast may change the type.
            Op::Reshape(_) | Op::Bitcast(_) if ty == operand_type => inside_at = reshaped(k, at, dims, operand_dims),
            Op::Pad(op) => {
                for (i, dim) in inside_at.iter_mut().zip(&op.dims) {
                    *i = k.plus(*i, -dim.low);
                }
                let steps: Vec<usize> = op.dims.iter().map(|dim| dim.interior + 1).collect();
                let (condition, inside_at) = inside(k, &inside_at, &steps, operand_dims);
                return self.chosen(k, condition, (operand, &inside_at), (operands[1], &[]));
            }
            Op::Concatenate(op) => return self.concatenated(k, operands, op.dimension, at),
            Op::DynamicSlice(op) => {
                for (d, i) in inside_at.iter_mut().enumerate() {
                    let start = self.start(k, &operands[1..], d, operand_dims[d] - op.sizes[d])?;
                    *i = k.f.ins().iadd(*i, start);
                }
            }
            Op::DynamicUpdateSlice(_) => {
                let update_dims = self.array(operands[1])?.1;
                for (d, i) in inside_at.iter_mut().enumerate() {
                    let start = self.start(k, &operands[2..], d, dims[d] - update_dims[d])?;
                    *i = k.f.ins().isub(*i, start);
                }
                let (condition, inside_at) = inside(k, &inside_at, &vec![1; dims.len()], update_dims);
                return self.chosen(k, condition, (operands[1], &inside_at), (operand, at));
            }
            _ => return None,
        }
        self.element(k, operand, &inside_at)
    }

    /// Selects one of two elements by a branch.
    fn chosen(
        &mut self,
        k: &mut KernelBuilder<'_>,
        condition: Value,
        (then, then_at): (InstrId, &[Value]),
        (otherwise, otherwise_at): (InstrId, &[Value]),
    ) -> Option<Value> {
        let branch = k.begin_branch(condition);
        self.enter();
        let value = self.element(k, then, then_at)?;
        self.leave();
        k.otherwise(&branch, &[value]);
        self.enter();
        let value = self.element(k, otherwise, otherwise_at)?;
        self.leave();
        k.end_branch(&branch, &[value]).first().copied()
    }

    fn concatenated(
        &mut self,
        k: &mut KernelBuilder<'_>,
        arrays: &[InstrId],
        dimension: usize,
        at: &[Value],
    ) -> Option<Value> {
        let (&first, rest) = arrays.split_first()?;
        if rest.is_empty() {
            return self.element(k, first, at);
        }
        let size = self.array(first)?.1[dimension] as i64;
        let condition = k.f.ins().icmp_imm_s(IntCC::SignedLessThan, at[dimension], size);
        let branch = k.begin_branch(condition);
        self.enter();
        let value = self.element(k, first, at)?;
        self.leave();
        k.otherwise(&branch, &[value]);
        self.enter();
        let mut behind = at.to_vec();
        behind[dimension] = k.plus(at[dimension], -size);
        let value = self.concatenated(k, rest, dimension, &behind)?;
        self.leave();
        k.end_branch(&branch, &[value]).first().copied()
    }

    /// Returns the start along dimension `d`, clamped to `0..=limit`. Starts are one scalar for each dimension, or a
    /// vector.
    fn start(&mut self, k: &mut KernelBuilder<'_>, starts: &[InstrId], d: usize, limit: usize) -> Option<Value> {
        let &first = starts.first()?;
        let (start, at) = match self.array(first)?.1.len() {
            0 => (*starts.get(d)?, Vec::new()),
            _ => (first, vec![k.int(d as i64)]),
        };
        let value = self.element(k, start, &at)?;
        let index = index(k, value, self.array(start)?.0)?;
        Some(clamped(k, index, limit as i64))
    }
}

/// Converts an element of an integer array to an index; numbers out of range become the greatest index.
pub(super) fn index(k: &mut KernelBuilder<'_>, value: Value, ty: ElementType) -> Option<Value> {
    let narrow = ty.byte_width() < 8;
    Some(match ty.kind() {
        ElementKind::Signed if narrow => k.f.ins().sextend(types::I64, value),
        ElementKind::Signed => value,
        ElementKind::Unsigned if narrow => k.f.ins().uextend(types::I64, value),
        ElementKind::Unsigned => {
            let greatest = k.int(i64::MAX);
            let fits = k.f.ins().icmp(IntCC::UnsignedLessThan, value, greatest);
            k.f.ins().select(fits, value, greatest)
        }
        ElementKind::Pred | ElementKind::Float | ElementKind::Complex => return None,
    })
}

/// Clamps an index to `0..=limit`.
pub(super) fn clamped(k: &mut KernelBuilder<'_>, index: Value, limit: i64) -> Value {
    let [zero, limit] = [0, limit].map(|bound| k.int(bound));
    let is_positive = k.f.ins().icmp(IntCC::SignedGreaterThan, index, zero);
    let index = k.f.ins().select(is_positive, index, zero);
    let is_less = k.f.ins().icmp(IntCC::SignedLessThan, index, limit);
    k.f.ins().select(is_less, index, limit)
}

/// Returns the index of the element at the same row-major position in an array of other dimensions.
///
/// Dimensions are processed in groups of equal products, innermost first, so that dimensions common to both arrays need
/// no code.
fn reshaped(k: &mut KernelBuilder<'_>, at: &[Value], dims: &[usize], to: &[usize]) -> Vec<Value> {
    let zero = k.int(0);
    let mut result = vec![zero; to.len()];
    let (mut from_end, mut to_end) = (dims.len(), to.len());
    while to_end > 0 {
        let (mut from, mut into) = (from_end, to_end - 1);
        let (mut have, mut want) = (1, to[into]);
        while have != want {
            if have < want && from > 0 {
                from -= 1;
                have *= dims[from];
            } else if into > 0 {
                into -= 1;
                want *= to[into];
            } else {
                break;
            }
        }
        // Row-major position in the group, which is split into indices.
        let mut place = zero;
        for d in from..from_end {
            let outer = k.times(place, dims[d] as i64);
            place = if d == from { at[d] } else { k.f.ins().iadd(outer, at[d]) };
        }
        for d in (into..to_end).rev() {
            if d == into {
                result[d] = place;
            } else if to[d] > 1 {
                result[d] = k.f.ins().urem_imm_u(place, to[d] as i64);
                place = k.f.ins().udiv_imm_u(place, to[d] as i64);
            }
        }
        (from_end, to_end) = (from, into);
    }
    result
}
