//! Asynchronous operations: start, update, done.

pub(crate) mod attributes;
mod eval;
mod proto;
mod shape;
mod sharding;

use super::control_flow::OutputOperandAlias;
use super::{Family, OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Computation, InstrId, Literal, Module, Op, Result, Shape};

/// Start, update or done of an asynchronous operation.
///
/// A chain is linear: the only user of a start is an update or the done, and likewise for an update.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Async {
    /// Starts a computation on the operands; returns `((operands), result, state...)`.
    Start(AsyncStart),
    /// Continues a started computation; has the shape of its operand.
    Update,
    /// Waits for a started computation; returns its result.
    Done,
    /// Starts a copy of the operand; returns `(copy, operand, u32[])`.
    CopyStart {
        /// Parameter of the next program that is prefetched, if any.
        cross_program_prefetch_index: Option<i64>,
    },
    /// Waits for a started copy; returns the copy.
    CopyDone,
}

/// Start of an asynchronous computation.
///
/// Text has a short form for computations of one operation: `subtract-start`, `subtract-update`, `subtract-done`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AsyncStart {
    /// Computation that takes the operands and has no other caller. It runs on its own execution thread.
    pub computation: CompId,
    /// Results that reuse operand buffers.
    pub aliases: Vec<OutputOperandAlias>,
}

impl ReadAttributes for Async {
    fn read(opcode: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        attributes::read(opcode, r)
    }
}

impl OpRules for Async {
    fn opcode(&self) -> Opcode {
        match self {
            Async::Start(_) => Opcode::AsyncStart,
            Async::Update => Opcode::AsyncUpdate,
            Async::Done => Opcode::AsyncDone,
            Async::CopyStart { .. } => Opcode::CopyStart,
            Async::CopyDone => Opcode::CopyDone,
        }
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::infer(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        attributes::write(self, w);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::evaluate(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        match self {
            Async::Start(start) => vec![start.computation],
            Async::Update | Async::Done | Async::CopyStart { .. } | Async::CopyDone => Vec::new(),
        }
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        match self {
            Async::Start(start) => f(&mut start.computation),
            Async::Update | Async::Done | Async::CopyStart { .. } | Async::CopyDone => {}
        }
    }
}

/// Returns the start of the chain that contains an `async-start`, `-update` or `-done`; `None` if the chain is broken.
pub fn async_start(computation: &Computation, mut id: InstrId) -> Option<(InstrId, &AsyncStart)> {
    // A chain is no longer than the computation, unless the graph has a cycle.
    for _ in 0..computation.len() {
        let instruction = computation.get(id)?;
        match instruction.op() {
            Op::Async(Async::Start(start)) => return Some((id, start)),
            Op::Async(Async::Update | Async::Done) => id = *instruction.operands().first()?,
            _ => return None,
        }
    }
    None
}

/// Returns the computation and the operation that a short form in text denotes, or `None` if the chain needs the long
/// form.
///
/// The operation must be the only one of the computation and take the parameters as its operands, in order, so that the
/// short form reads back as the same computation.
pub(crate) fn short_form(module: &Module, computation: &Computation, id: InstrId) -> Option<(CompId, InstrId)> {
    let (id, start) = async_start(computation, id)?;
    let result = computation[id].shape().subshape(&[1])?;
    let callee = module.get(start.computation)?;
    let root = callee.root_if_set()?;
    let instruction = callee.get(root)?;
    let is_plain = callee.len() == callee.parameters().len() + 1
        && instruction.operands() == callee.parameters()
        && instruction.control_predecessors().is_empty()
        && instruction.shape() == result
        && start.aliases.is_empty();
    (is_plain && has_short_form(instruction.opcode())).then_some((start.computation, root))
}

/// Whether text may denote the start of an operation by its name and the suffix `-start`. Excluded are operations that
/// compute nothing, and names that denote another operation with a suffix, such as `copy-start`.
pub(crate) fn has_short_form(opcode: Opcode) -> bool {
    let computes = !matches!(opcode, Opcode::Parameter | Opcode::Constant) && opcode.family() != Family::Async;
    let is_taken = |suffix| Opcode::from_name(&format!("{opcode}{suffix}")).is_some();
    computes && !["-start", "-update", "-done"].into_iter().any(is_taken)
}
