//! Instruction: an operation in a computation with its shape, operands, users and annotations.

use super::users::Users;
use super::{Annotations, InstrId};
use crate::Shape;
use crate::ops::{Op, Opcode};

/// An operation applied to operands of the same computation.
///
/// Read through accessors; change through [`Computation`](super::Computation), which keeps users up to date.
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
    /// An instruction to be added to a computation, which names it if it has no name by then.
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

    /// The same instruction with a wished name; a number is appended when it is taken.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Instruction {
        self.name = name.into();
        self
    }

    /// The same instruction with annotations.
    #[must_use]
    pub fn with_annotations(mut self, annotations: Option<Box<Annotations>>) -> Instruction {
        self.annotations = annotations;
        self
    }

    /// The name, unique in its computation, without `%`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The shape of the result.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The operation with its attributes.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// The operation's code.
    pub fn opcode(&self) -> Opcode {
        self.op.opcode()
    }

    /// Operands in order.
    pub fn operands(&self) -> &[InstrId] {
        &self.operands
    }

    /// Operand `i`. Panics when there are fewer (arity is verified).
    pub fn operand(&self, i: usize) -> InstrId {
        self.operands[i]
    }

    /// Instructions that have this one as an operand, each once; a few dozen in the order they began to.
    pub fn users(&self) -> &[InstrId] {
        self.users.as_slice()
    }

    /// Whether that instruction has this one as an operand; quicker than to search [`Instruction::users`].
    pub fn is_used_by(&self, user: InstrId) -> bool {
        self.users.contains(user)
    }

    /// Instructions that must run before, beyond operands.
    pub fn control_predecessors(&self) -> &[InstrId] {
        &self.control_predecessors
    }

    /// Instructions that must run after, beyond users.
    pub fn control_successors(&self) -> &[InstrId] {
        &self.control_successors
    }

    /// Annotations, if any were given.
    pub fn annotations(&self) -> Option<&Annotations> {
        self.annotations.as_deref()
    }

    /// Annotations for writing, created empty when there are none.
    pub fn annotations_mut(&mut self) -> &mut Annotations {
        self.annotations.get_or_insert_default()
    }
}
