//! Instructions: operations in a computation with their shapes, operands, users and annotations.

use super::users::Users;
use super::{Annotations, InstrId};
use crate::Shape;
use crate::ops::{Op, Opcode};

/// Operation applied to operands of the same computation.
///
/// Read it through accessors and edit it through [`Computation`](super::Computation), which keeps users up to date.
#[derive(Clone, Debug)]
pub struct Instruction {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) op: Op,
    pub(super) operands: Vec<InstrId>,
    pub(super) users: Users,
    pub(super) control_predecessors: Vec<InstrId>,
    pub(super) control_successors: Vec<InstrId>,
    pub(super) annotations: Option<Box<Annotations>>,
}

impl Instruction {
    /// Creates an instruction to be added to a computation. The computation names it if it has no name.
    pub fn new(op: Op, shape: Shape, operands: impl Into<Vec<InstrId>>) -> Instruction {
        Instruction {
            name: String::new(),
            shape,
            op,
            operands: operands.into(),
            users: Users::default(),
            control_predecessors: Vec::new(),
            control_successors: Vec::new(),
            annotations: None,
        }
    }

    /// Sets the preferred name; a computation appends a number if it is taken.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Instruction {
        self.name = name.into();
        self
    }

    /// Sets the annotations.
    #[must_use]
    pub fn with_annotations(mut self, annotations: Option<Box<Annotations>>) -> Instruction {
        self.annotations = annotations;
        self
    }

    /// Returns the name, unique in its computation, without `%`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the shape of the result.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the operation with its attributes.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// Returns the opcode of the operation.
    pub fn opcode(&self) -> Opcode {
        self.op.opcode()
    }

    /// Returns the operands in order.
    pub fn operands(&self) -> &[InstrId] {
        &self.operands
    }

    /// Returns operand `i`. Panics if there are fewer (the verifier checks the arity).
    pub fn operand(&self, i: usize) -> InstrId {
        self.operands[i]
    }

    /// Returns the instructions that have this one as an operand, each once. Up to 64 users are in the order of
    /// addition.
    pub fn users(&self) -> &[InstrId] {
        self.users.as_slice()
    }

    /// Whether `user` has this instruction as an operand; faster than a search of [`Instruction::users`].
    pub fn is_used_by(&self, user: InstrId) -> bool {
        self.users.contains(user)
    }

    /// Returns the instructions that must run before, in addition to operands.
    pub fn control_predecessors(&self) -> &[InstrId] {
        &self.control_predecessors
    }

    /// Returns the instructions that must run after, in addition to users.
    pub fn control_successors(&self) -> &[InstrId] {
        &self.control_successors
    }

    /// Returns the annotations, if there are any.
    pub fn annotations(&self) -> Option<&Annotations> {
        self.annotations.as_deref()
    }

    /// Returns the annotations for writing; creates empty ones if there are none.
    pub fn annotations_mut(&mut self) -> &mut Annotations {
        self.annotations.get_or_insert_default()
    }
}
