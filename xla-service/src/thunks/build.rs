//! Construction of a thunk sequence from a scheduled module with a buffer assignment.

use xla_hlo::effects::Effects;
use xla_hlo::ops::{Collective, While};
use xla_hlo::{ArrayShape, CompId, Computation, ElementType, Error, InstrId, Module, Op, Result, ResultExt, Shape};
use xla_passes::buffers::{BufferAssignment, Slice};
use xla_passes::trip_count;

use super::sequence::Selector;
use super::{ArraySlice, Lowered, Lowering, LoweringContext, StreamId, Thunk, ThunkId, ThunkKind, ThunkSequence};
use crate::device_only;
use crate::options::FallbackPolicy;

impl ThunkSequence {
    /// Builds the sequence of the entry computation; `lowering` compiles each operation to device code.
    ///
    /// The module must be scheduled, with calls inlined or callees with a single caller, and `buffers` must be its own
    /// assignment. Errors: [`Error::Unimplemented`], naming the instruction, for operations that `lowering` does not
    /// support if `fallback` is forbidden; errors of `lowering`, with the instruction's name; [`Error::Internal`] if
    /// module and buffers disagree.
    pub fn from_module(
        module: &Module,
        buffers: &BufferAssignment,
        lowering: &mut dyn Lowering,
        fallback: FallbackPolicy,
    ) -> Result<ThunkSequence> {
        let _span = tracing::debug_span!("thunks", module = module.name()).entered();
        let mut builder =
            SequenceBuilder { module, buffers, lowering, fallback, effects: Effects::of(module), next: 0 };
        builder.sequence(module.entry_id())
    }
}

pub(super) struct SequenceBuilder<'a> {
    pub module: &'a Module,
    buffers: &'a BufferAssignment,
    pub lowering: &'a mut dyn Lowering,
    fallback: FallbackPolicy,
    effects: Effects,
    /// Number of the next thunk.
    pub next: u32,
}

impl SequenceBuilder<'_> {
    fn sequence(&mut self, computation: CompId) -> Result<ThunkSequence> {
        let mut thunks = Vec::new();
        for id in self.module[computation].sequence() {
            self.instruction(computation, id, &mut thunks).context(|| {
                let computation = &self.module[computation];
                format!("%{} of {}", computation[id].name(), computation.name())
            })?;
        }
        Ok(ThunkSequence { thunks, ..ThunkSequence::default() })
    }

    /// Appends the thunks of one instruction: usually one, and none for instructions that only rename values.
    fn instruction(&mut self, computation: CompId, id: InstrId, thunks: &mut Vec<Thunk>) -> Result<()> {
        let module = self.module;
        let instruction = &module[computation][id];
        match instruction.op() {
            op if does_nothing(op) => {}
            Op::Transfer(_) => return Err(device_only::refused(instruction.op())),
            Op::Collective(op) => thunks.push(self.collective(computation, id, op)?),
            Op::Call(call) => thunks.extend(self.sequence(call.computation)?.thunks),
            Op::While(op) => {
                let thunk = self.thunk(computation, id)?;
                thunks.push(self.while_loop(thunk, op)?);
            }
            Op::Conditional(op) => {
                let thunk = self.thunk(computation, id)?;
                thunks.push(self.conditional(thunk, &op.branches)?);
            }
            Op::Bitcast(_) | Op::Reshape(_) | Op::Copy(_) => thunks.extend(self.copied(computation, id)?),
            _ => thunks.push(self.lowered(computation, id)?),
        }
        Ok(())
    }

    /// Builds the thunk of a collective, of the number of a replica or of that of a partition.
    fn collective(&mut self, computation: CompId, id: InstrId, op: &Collective) -> Result<Thunk> {
        if self.module.is_for_one_device() || !self.lowering.has_collectives() {
            op.on_one_device(self.module, &self.module[computation].operand_shapes(id))?;
            return self.lowered(computation, id);
        }
        let mut thunk = self.thunk(computation, id)?;
        thunk.has_effects = true;
        thunk.kind = match self.lowering.lower(&self.context(&thunk))? {
            Lowered::Kernel(kernel) => ThunkKind::Kernel(kernel),
            Lowered::LibraryCall(call) => ThunkKind::LibraryCall(call),
            Lowered::Collective(name) => ThunkKind::Collective(Some(name)),
            Lowered::NotMine => ThunkKind::Collective(None),
        };
        Ok(thunk)
    }

    /// Builds the thunk of an instruction that the backend lowers or the host evaluates.
    fn lowered(&mut self, computation: CompId, id: InstrId) -> Result<Thunk> {
        let mut thunk = self.thunk(computation, id)?;
        thunk.kind = self.lower(&thunk)?;
        Ok(thunk)
    }

    /// Builds the thunk of a bitcast, reshape or copy; `None` if source and destination are the same slice.
    fn copied(&mut self, computation: CompId, id: InstrId) -> Result<Option<Thunk>> {
        let mut thunk = self.thunk(computation, id)?;
        match self.byte_copy(&thunk, self.module[computation][id].op()) {
            Some(copy) => Ok(copy.is_needed.then_some(thunk)),
            None => {
                thunk.kind = self.lower(&thunk)?;
                Ok(Some(thunk))
            }
        }
    }

    /// Creates a thunk for an instruction, initially as a copy; callers set the final kind.
    pub fn thunk(&mut self, computation: CompId, instruction: InstrId) -> Result<Thunk> {
        let graph = &self.module[computation];
        let mut operands = Vec::new();
        for &operand in graph[instruction].operands() {
            operands.extend(self.arrays(computation, operand)?);
        }
        let results = self.arrays(computation, instruction)?;
        let id = ThunkId(self.next);
        self.next = self.next.checked_add(1).ok_or_else(|| Error::resource_exhausted("more than 2^32 thunks"))?;
        Ok(Thunk {
            id,
            computation,
            instruction,
            name: graph[instruction].name().to_string(),
            kind: ThunkKind::Copy,
            operands,
            results,
            has_effects: self.effects.has_effect(&graph[instruction]),
            stream: StreamId::default(),
            waits: Vec::new(),
        })
    }

    fn arrays(&self, computation: CompId, instruction: InstrId) -> Result<Vec<ArraySlice>> {
        let shape = self.module[computation][instruction].shape();
        let mut arrays = Vec::new();
        for (path, leaf) in shape.leaves() {
            let shape = match leaf {
                Shape::Array(array) => array.clone(),
                Shape::Buffer(array) => (**array).clone(),
                Shape::Token | Shape::Opaque | Shape::Tuple(_) => continue,
            };
            arrays.push(ArraySlice { slice: self.buffers.slice(computation, instruction, &path)?, shape });
        }
        Ok(arrays)
    }

    fn context<'t>(&self, thunk: &'t Thunk) -> LoweringContext<'t>
    where
        Self: 't,
    {
        LoweringContext {
            module: self.module,
            computation: thunk.computation,
            instruction: thunk.instruction,
            operands: &thunk.operands,
            results: &thunk.results,
        }
    }

    fn lower(&mut self, thunk: &Thunk) -> Result<ThunkKind> {
        let cx = self.context(thunk);
        match (self.lowering.lower(&cx)?, self.fallback) {
            (Lowered::Kernel(kernel), _) => Ok(ThunkKind::Kernel(kernel)),
            (Lowered::LibraryCall(call), _) => Ok(ThunkKind::LibraryCall(call)),
            (Lowered::Collective(library), _) => Err(Error::internal(format!(
                "{library} is lowered for {}, which one device executes",
                cx.instruction().opcode()
            ))),
            (Lowered::NotMine, _) if matches!(cx.instruction().op(), Op::CustomCall(_)) => Ok(ThunkKind::CustomCall),
            (Lowered::NotMine, FallbackPolicy::Allow) => Ok(ThunkKind::HostFallback),
            (Lowered::NotMine, FallbackPolicy::Forbid) => Err(Error::unimplemented(format!(
                "the backend does not lower {} ({}), and the host fallback is forbidden",
                cx.instruction().opcode(),
                cx.instruction().shape()
            ))),
        }
    }

    /// Returns `Some` if the instruction preserves the order of operand 0's bytes, so that a byte copy implements it.
    /// The result states whether the copy is needed, because the slices differ.
    pub fn byte_copy(&self, thunk: &Thunk, op: &Op) -> Option<ByteCopy> {
        let [operand] = &thunk.operands[..] else { return None };
        let [result] = &thunk.results[..] else { return None };
        let same_order = match op {
            Op::Bitcast(_) => true,
            Op::Reshape(_) => is_row_major(&operand.shape) && is_row_major(&result.shape),
            _ => operand.shape.layout() == result.shape.layout(),
        };
        let same_bytes = same_order && operand.slice.size == result.slice.size;
        same_bytes.then_some(ByteCopy { is_needed: operand.slice != result.slice && result.slice.size > 0 })
    }

    fn while_loop(&mut self, mut thunk: Thunk, op: &While) -> Result<Thunk> {
        let (condition, body) = (op.condition, op.body);
        let state: Vec<Slice> = slices(&thunk.results);
        self.expect_place("the initial state", &slices(&thunk.operands), &state)?;
        for computation in [condition, body] {
            let parameter = parameter(&self.module[computation])?;
            self.expect_place("a parameter", &slices(&self.arrays(computation, parameter)?), &state)?;
        }
        self.expect_place("the next state", &slices(&self.arrays(body, self.module[body].root())?), &state)?;
        let predicate = self.buffers.slice(condition, self.module[condition].root(), &[])?;
        let trip_count = trip_count(self.module, thunk.computation, thunk.instruction);
        if let Some(whole) = self.whole_loop(&thunk, op, (predicate, trip_count))? {
            return Ok(whole);
        }
        thunk.kind = ThunkKind::While {
            condition: self.sequence(condition)?,
            body: self.sequence(body)?,
            predicate,
            trip_count,
        };
        Ok(thunk)
    }

    fn conditional(&mut self, mut thunk: Thunk, branches: &[CompId]) -> Result<Thunk> {
        let first = thunk.operands.first().ok_or_else(|| Error::internal("a conditional has no selector"))?;
        let selector = match first.shape.element_type() {
            ElementType::Pred => Selector::Predicate,
            _ => Selector::Index,
        };
        let slice = first.slice;
        let results = slices(&thunk.results);
        let mut rest = &thunk.operands[1..];
        let mut sequences = Vec::with_capacity(branches.len());
        for &branch in branches {
            let parameter = self.arrays(branch, parameter(&self.module[branch])?)?;
            let (operand, others) = rest.split_at_checked(parameter.len()).unwrap_or((rest, &[]));
            rest = others;
            self.expect_place("a branch's parameter", &slices(&parameter), &slices(operand))?;
            self.expect_place(
                "a branch's result",
                &slices(&self.arrays(branch, self.module[branch].root())?),
                &results,
            )?;
            sequences.push(self.sequence(branch)?);
        }
        thunk.kind = ThunkKind::Conditional { selector, slice, branches: sequences };
        Ok(thunk)
    }

    fn expect_place(&self, what: &str, found: &[Slice], expected: &[Slice]) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        Err(Error::internal(format!("{what} is in {found:?} instead of {expected:?}; copies are missing")))
    }
}

pub(super) struct ByteCopy {
    pub is_needed: bool,
}

/// Whether an operation only renames or orders values, so that it needs no thunk.
pub(super) fn does_nothing(op: &Op) -> bool {
    matches!(
        op,
        Op::Parameter(_)
            | Op::Constant(_)
            | Op::Tuple(_)
            | Op::GetTupleElement(_)
            | Op::OptBarrier(_)
            | Op::Domain(_)
            | Op::AfterAll(_)
            | Op::AddDependency(_)
    )
}

fn slices(arrays: &[ArraySlice]) -> Vec<Slice> {
    arrays.iter().map(|array| array.slice).collect()
}

fn parameter(computation: &Computation) -> Result<InstrId> {
    let first = computation.parameters().first().copied();
    first.ok_or_else(|| Error::internal(format!("computation {} has no parameter", computation.name())))
}

fn is_row_major(shape: &ArrayShape) -> bool {
    shape.layout().is_none_or(|layout| layout.is_row_major() && layout.is_plain())
}
