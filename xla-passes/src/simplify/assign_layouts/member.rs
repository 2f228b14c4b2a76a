//! Members of regions: operations that compute alike in any order of dimensions.

use xla_hlo::ops::{Concatenate, DynamicSlice, Pad, ReduceWindow, Reverse, Slice, Window, simple_combiner};
use xla_hlo::{ArrayShape, Computation, InstrId, Module, Op};

use super::order::DimOrder;
use crate::rewrite::graph;

/// An array of at least two dimensions, of exact size.
pub(super) fn ordered(computation: &Computation, id: InstrId) -> Option<&ArrayShape> {
    computation[id].shape().as_array().filter(|shape| shape.rank() >= 2 && shape.is_static())
}

/// Whether `operand` of the member `id` is one of the arrays that have its dimensions; others are scalars.
pub(super) fn is_array(computation: &Computation, id: InstrId, operand: InstrId) -> bool {
    let rank = |id: InstrId| computation[id].shape().as_array().map(ArrayShape::rank);
    rank(operand) == rank(id)
}

/// Whether an instruction computes the same elements whatever the dimension order of it and its arrays.
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
        // Between types of one width.
        Op::BitcastConvert(_) => is_array(computation, id, instruction.operand(0)),
        // An older form has one vector of starts.
        Op::DynamicSlice(_) => instruction.operands().len() == 1 + shape.rank(),
        Op::DynamicUpdateSlice(_) => instruction.operands().len() == 2 + shape.rank(),
        // The order in which a window is reduced is free only where the combiner's is.
        Op::ReduceWindow(op) => simple_combiner(&module[op.computation]).is_some(),
        // Sorts and scans run along one dimension and want it minor; the others tie orders to places, or to those of
        // others.
        _ => false,
    };
    let sharded = instruction.annotations().is_some_and(|a| a.sharding.is_some());
    let exact = |&o: &InstrId| computation[o].shape().as_array().is_some_and(ArrayShape::is_static);
    agnostic && !sharded && graph::is_free(instruction) && instruction.operands().iter().all(exact)
}

/// The operation of a member on arrays in that order.
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
        // Element by element.
        op => op.clone(),
    }
}

/// Operands of a member in the order in which it takes them on arrays in that order: starts come one for each
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
