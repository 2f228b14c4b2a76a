//! Roles of instructions with respect to the values of their operands: forward, call or compute.

use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Op, Shape};

/// Origin of the leaves of an instruction's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The parameter with this number; the caller defines its value.
    Parameter(usize),
    /// A compile-time constant.
    Constant,
    /// The leaves of all operands in operand order: tuples, barriers, and operations that only rename the same bytes.
    Forward,
    /// The leaves of operand 0; the other operands only impose an order.
    First,
    /// The leaves of one element of operand 0.
    Element(usize),
    /// A loop over the leaves of operand 0.
    While {
        /// Computation from the state to `pred[]`.
        condition: CompId,
        /// Computation from the state to the next state.
        body: CompId,
    },
    /// The result of one of the branches, applied to its own operand.
    Conditional(Vec<CompId>),
    /// The result of another computation that runs in place.
    Call(CompId),
    /// A new value in its own memory.
    Compute,
}

/// Returns the role of an instruction.
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

/// Whether elements are in row-major order without tiles or padding. An array without a layout is row-major.
pub(crate) fn has_row_major_layout(array: &ArrayShape) -> bool {
    array.layout().is_none_or(|l| l.is_row_major() && l.tiles.is_empty() && l.tail_padding_alignment <= 1)
}

/// Returns the array of a leaf that has memory; `None` for tokens and opaque values.
pub(crate) fn leaf_array(leaf: &Shape) -> Option<&ArrayShape> {
    match leaf {
        Shape::Array(array) => Some(array),
        Shape::Buffer(array) => Some(array),
        Shape::Tuple(_) | Shape::Token | Shape::Opaque => None,
    }
}

/// Returns the number of leaves of a shape.
pub(crate) fn leaf_count(shape: &Shape) -> usize {
    match shape {
        Shape::Tuple(elements) => elements.iter().map(leaf_count).sum(),
        Shape::Array(_) | Shape::Buffer(_) | Shape::Token | Shape::Opaque => 1,
    }
}
