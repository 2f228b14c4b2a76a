//! The host fallback: one instruction, evaluated on literals.

use xla_hlo::eval::{Evaluator, RandomState};
use xla_hlo::{CompId, Error, InstrId, Literal, Module, Result, ResultExt};

use super::{ExecutionBuffers, Thunk};
use crate::executable::ExecutionContext;
use crate::signature::{group, ungroup};

/// Evaluates one instruction on values of its operands, with the reference evaluator. Computations that it calls are evaluated too;
/// random numbers are drawn from `random`.
pub fn evaluate_instruction(
    module: &Module,
    computation: CompId,
    instruction: InstrId,
    operands: Vec<Literal>,
    random: &RandomState,
) -> Result<Literal> {
    let instruction = &module[computation][instruction];
    let mut evaluator = Evaluator::new(module).with_random_state(random.clone());
    let result = instruction.op().rules().evaluate(&mut evaluator, operands, instruction.shape());
    result.context(|| "evaluated on the host")
}

/// Runs a thunk on the host, whatever its kind: operands come from memory, the instruction is evaluated, results go to memory.
///
/// Work before it on the context's stream is waited for. For [`ThunkKind::HostFallback`](super::ThunkKind::HostFallback),
/// and for backends whose own code calls back by [`ThunkId`](super::ThunkId).
pub fn run_fallback(
    module: &Module,
    thunk: &Thunk,
    context: &ExecutionContext<'_>,
    buffers: &mut ExecutionBuffers,
) -> Result<()> {
    let mut leaves = Vec::with_capacity(thunk.operands.len());
    for array in &thunk.operands {
        let memory = buffers.memory(array.slice.allocation)?;
        leaves.push(context.transfer.read(context.stream, memory, array.slice.offset, &array.shape)?);
    }
    let graph = &module[thunk.computation];
    let mut leaves = leaves.into_iter();
    let operands = graph.operand_shapes(thunk.instruction).into_iter().map(|shape| group(shape, &mut leaves));
    let operands = operands.collect::<Result<_>>()?;
    let result = evaluate_instruction(module, thunk.computation, thunk.instruction, operands, context.random)?;
    let results = ungroup(result);
    if results.len() != thunk.results.len() {
        return Err(Error::internal(format!("%{} gave {} arrays on the host", thunk.name, results.len())));
    }
    for (array, literal) in thunk.results.iter().zip(&results) {
        let memory = buffers.memory_mut(array.slice.allocation)?;
        context.transfer.write(context.stream, literal, &array.shape, memory, array.slice.offset)?;
    }
    Ok(())
}
