//! Members of regions: operations that compute the same elements in any order of dimensions.

use xla_hlo::ops::{Concatenate, DynamicSlice, Pad, ReduceWindow, Reverse, Slice, Window, simple_combiner};
use xla_hlo::{ArrayShape, Computation, InstrId, Module, Op};

use super::order::DimOrder;
use crate::rewrite::graph;

/// Returns the shape of an array with at least two dimensions and static size.
pub(super) fn ordered(computation: &Computation, id: InstrId) -> Option<&ArrayShape> {
    computation[id].shape().as_array().filter(|shape| shape.rank() >= 2 && shape.is_static())
}

/// Whether `operand` of the member `id` is an array with the member's dimensions; other operands are scalars.
pub(super) fn is_array(computation: &Computation, id: InstrId, operand: InstrId) -> bool {
    let rank = |id: InstrId| computation[id].shape().as_array().map(ArrayShape::rank);
    rank(operand) == rank(id)
}

/// Whether an instruction computes the same elements for any common dimension order of its operands and result.
pub(super) fn is_member(module: &Module, computation: &Computation, id: InstrId) -> bool {
    let instruction = &computation[id];
    let Some(shape) = ordered(computation, id) else { return false };
    let agnostic = match instruction.op() {
        Op::Unary(_)
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Select(_)
        | Op::Clamp(_)
        | Op::Convert(_)
        | Op::ReducePrecision(_)
        | Op::Slice(_)
        | Op::Pad(_)
        | Op::Concatenate(_)
        | Op::Reverse(_) => true,
        // Supported between types of equal width.
        Op::BitcastConvert(_) => is_array(computation, id, instruction.operand(0)),
        // An older form has one vector of starts, which is not supported.
        Op::DynamicSlice(_) => instruction.operands().len() == 1 + shape.rank(),
        Op::DynamicUpdateSlice(_) => instruction.operands().len() == 2 + shape.rank(),
        // The reduction order within a window may only change for a simple combiner, whose order is unspecified.
        Op::ReduceWindow(op) => simple_combiner(&module[op.computation]).is_some(),
        // Sorts and scans run along one dimension and prefer it to be minor. Other operations depend on the dimension
        // order, or relate it to the order of other arrays.
        _ => false,
    };
    let sharded = instruction.annotations().is_some_and(|a| a.sharding.is_some());
    let exact = |&o: &InstrId| computation[o].shape().as_array().is_some_and(ArrayShape::is_static);
    agnostic && !sharded && graph::is_free(instruction) && instruction.operands().iter().all(exact)
}

/// Returns the member's operation for arrays in this order.
pub(super) fn reordered(op: &Op, order: &DimOrder) -> Op {
    match op {
        Op::Slice(op) => Slice { ranges: order.apply(&op.ranges) }.into(),
        Op::Pad(op) => Pad { dims: order.apply(&op.dims) }.into(),
        Op::Concatenate(op) => Concatenate { dimension: order.place(op.dimension) }.into(),
        Op::Reverse(op) => Reverse { dimensions: op.dimensions.iter().map(|&d| order.place(d)).collect() }.into(),
        Op::DynamicSlice(op) => DynamicSlice { sizes: order.apply(&op.sizes) }.into(),
        Op::ReduceWindow(op) => {
            let window = Window { dims: order.apply(&op.window.dims) };
            ReduceWindow { window, computation: op.computation }.into()
        }
        // Elementwise operations do not depend on the order.
        op => op.clone(),
    }
}

/// Returns the operands of a member for arrays in this order. Start indices are permuted, since there is one per
/// dimension.
pub(super) fn reordered_operands(op: &Op, operands: &[InstrId], order: &DimOrder) -> Vec<InstrId> {
    let arrays = match op {
        Op::DynamicSlice(_) => 1,
        Op::DynamicUpdateSlice(_) => 2,
        _ => return operands.to_vec(),
    };
    let (arrays, starts) = operands.split_at(arrays.min(operands.len()));
    [arrays, &order.apply(starts)].concat()
}
