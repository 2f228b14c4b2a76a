//! Roles of instructions towards their operands' values: forward, call, compute.

use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Op, Shape};

/// Origin of the leaves of an instruction's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The computation's parameter of that number: its caller knows.
    Parameter(usize),
    /// Known when compiling.
    Constant,
    /// The leaves of all operands, one operand after the other: tuples, barriers, other names for the same bytes.
    Forward,
    /// The leaves of operand 0; others only order.
    First,
    /// The leaves of one element of operand 0.
    Element(usize),
    /// A loop over the leaves of operand 0.
    While {
        /// State to `pred[]`.
        condition: CompId,
        /// State to state.
        body: CompId,
    },
    /// One of the branches, on its own operand.
    Conditional(Vec<CompId>),
    /// The result of another computation, run in place.
    Call(CompId),
    /// Something new in memory of its own.
    Compute,
}

/// The role of an instruction.
pub(crate) fn role(computation: &Computation, id: InstrId) -> Role {
    let instruction = &computation[id];
    match instruction.op() {
        Op::Parameter(p) => Role::Parameter(p.number),
        Op::Constant(_) => Role::Constant,
        Op::Tuple(_) | Op::OptBarrier(_) | Op::Domain(_) => Role::Forward,
        Op::AddDependency(_) => Role::First,
        Op::GetTupleElement(gte) => Role::Element(gte.index),
        Op::Bitcast(_) => forward_if(same_bytes(computation, id)),
        Op::Reshape(_) => forward_if(same_bytes(computation, id) && is_row_major(computation, id)),
        Op::While(w) => Role::While { condition: w.condition, body: w.body },
        Op::Conditional(c) => Role::Conditional(c.branches.clone()),
        Op::Call(c) => Role::Call(c.computation),
        _ => Role::Compute,
    }
}

fn forward_if(yes: bool) -> Role {
    if yes { Role::Forward } else { Role::Compute }
}

fn same_bytes(computation: &Computation, id: InstrId) -> bool {
    let instruction = &computation[id];
    instruction.shape().byte_size() == computation[instruction.operand(0)].shape().byte_size()
}

fn is_row_major(computation: &Computation, id: InstrId) -> bool {
    let instruction = &computation[id];
    let shapes = [instruction.shape(), computation[instruction.operand(0)].shape()];
    shapes.iter().all(|s| s.as_array().is_some_and(|a| a.is_static() && has_row_major_layout(a)))
}

/// Whether elements lie in row-major order, without tiles or padding. Arrays without a layout are row major.
pub(crate) fn has_row_major_layout(array: &ArrayShape) -> bool {
    array.layout().is_none_or(|l| l.is_row_major() && l.tiles.is_empty() && l.tail_padding_alignment <= 1)
}

/// The array of a leaf that has memory; tokens and opaque values have none.
pub(crate) fn leaf_array(leaf: &Shape) -> Option<&ArrayShape> {
    match leaf {
        Shape::Array(array) => Some(array),
        Shape::Buffer(array) => Some(array),
        Shape::Tuple(_) | Shape::Token | Shape::Opaque => None,
    }
}

/// Number of leaves of a shape.
pub(crate) fn leaf_count(shape: &Shape) -> usize {
    match shape {
        Shape::Tuple(elements) => elements.iter().map(leaf_count).sum(),
        Shape::Array(_) | Shape::Buffer(_) | Shape::Token | Shape::Opaque => 1,
    }
}
