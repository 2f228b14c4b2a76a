//! Parser of asynchronous operations: the short form, `subtract-start` to `subtract-done`, and threads.

use super::super::attributes::AttributeReader;
use super::Parser;
use crate::ops::async_::{async_start, has_short_form};
use crate::ops::{Async, AsyncStart, Op, Parameter};
use crate::{Annotations, CompId, Computation, Error, InstrId, Instruction, Opcode, Result, Shape};

/// Opcode as it is spelled in the text.
#[derive(Clone, Copy)]
pub(super) struct Spelling {
    pub opcode: Opcode,
    /// In the short form, the operation that is started, updated or awaited.
    pub wrapped: Option<Opcode>,
}

impl Spelling {
    /// Parses `subtract-start` and similar short forms.
    pub fn short(text: &str) -> Option<Spelling> {
        let steps = [("-start", Opcode::AsyncStart), ("-update", Opcode::AsyncUpdate), ("-done", Opcode::AsyncDone)];
        let (wrapped, opcode) = steps.iter().find_map(|(suffix, step)| Some((text.strip_suffix(suffix)?, *step)))?;
        let wrapped = Opcode::from_name(wrapped).filter(|w| w.is_implemented() && has_short_form(*w))?;
        Some(Spelling { opcode, wrapped: Some(wrapped) })
    }
}

/// Attributes of an asynchronous operation that refer to its computation.
#[derive(Default)]
pub(super) struct Chain {
    thread: Option<String>,
    /// Computation that an update or a done states again.
    restated: Option<CompId>,
}

impl Chain {
    pub fn read(opcode: Opcode, reader: &mut AttributeReader<'_>) -> Result<Chain> {
        let restated = match opcode {
            Opcode::AsyncStart => None,
            Opcode::AsyncUpdate | Opcode::AsyncDone => reader.optional("calls")?,
            _ => return Ok(Chain::default()),
        };
        Ok(Chain { thread: reader.optional("async_execution_thread")?, restated })
    }
}

impl Parser<'_> {
    /// Returns the start of a new computation that consists of `op` only.
    pub fn wrap(
        &mut self,
        op: Op,
        shape: Option<&Shape>,
        (computation, operands): (&Computation, &[InstrId]),
        annotations: Option<&Annotations>,
    ) -> Result<Op> {
        let result = shape.and_then(|shape| shape.subshape(&[1])).ok_or_else(|| {
            Error::invalid_argument("the shape of a start must be written, as ((operands), result, state...)")
        })?;
        let mut wrapped = Computation::new("async_wrapped");
        let parameter = |(number, &operand): (usize, &InstrId)| {
            let shape = computation[operand].shape().clone();
            Instruction::new(Parameter { number }.into(), shape, []).with_name(format!("param_{number}"))
        };
        let parameters: Vec<Instruction> = operands.iter().enumerate().map(parameter).collect();
        let parameters: Vec<InstrId> = parameters.into_iter().map(|p| wrapped.add(p)).collect();
        let annotations = annotations.map(|a| {
            let own = Annotations { sharding: None, parameter_replication: Vec::new(), ..a.clone() };
            Box::new(own)
        });
        let root = wrapped.add(Instruction::new(op, result.clone(), parameters).with_annotations(annotations));
        wrapped.set_root(root);
        let computation = self.module.add(wrapped);
        Ok(Async::Start(AsyncStart { computation, aliases: Vec::new() }).into())
    }

    /// Checks the text of `id` against the start of its chain. The thread that a start states becomes its
    /// computation's.
    pub fn join_chain(
        &mut self,
        computation: &Computation,
        id: InstrId,
        chain: &Chain,
        wrapped: Option<Opcode>,
    ) -> Result<()> {
        if wrapped.is_none() && chain.thread.is_none() && chain.restated.is_none() {
            return Ok(());
        }
        let instruction = &computation[id];
        let Some((start, async_start)) = async_start(computation, id) else {
            return Err(Error::invalid_argument(format!(
                "the operand of {} must be the result of a start operation",
                instruction.opcode()
            )));
        };
        let callee = async_start.computation;
        if start == id {
            if let Some(thread) = &chain.thread
                && self.module.get(callee).is_some()
            {
                self.module.computation_mut(callee).set_execution_thread(thread.clone());
            }
            return Ok(());
        }
        let root = self.module.get(callee).map(|c| (c[c.root()].opcode(), c.execution_thread()));
        let fits = root.is_some_and(|(opcode, thread)| {
            wrapped.is_none_or(|w| w == opcode) && chain.thread.as_deref().is_none_or(|t| t == thread)
        });
        if fits && chain.restated.is_none_or(|c| c == callee) {
            return Ok(());
        }
        let start = computation[start].name();
        Err(Error::invalid_argument(format!(
            "this instruction does not continue {start}: the operation or the thread differs"
        )))
    }
}
