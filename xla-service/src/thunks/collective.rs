//! Collectives on the memory of thunks, without copies.

use xla_hlo::ops::Collective;
use xla_hlo::{Module, Op, Result};

use super::raw_call::regions;
use super::{ExecutionBuffers, Thunk};
use crate::collective::{ArrayForm, CollectiveCall, Instruction};
use crate::executable::ExecutionContext;

/// Executes a collective among devices on the memory of its operands and results. Returns `false`, without effect, if
/// an array is not in host memory in the format of the host, if the engine has no such operation, or if the instruction
/// is not a collective among devices.
///
/// All devices of a program take the same decision: they have the same thunks, and memory of the same kind.
pub(super) fn run_in_place(
    module: &Module,
    thunk: &Thunk,
    context: &ExecutionContext<'_>,
    buffers: &mut ExecutionBuffers,
) -> Result<bool> {
    let computation = &module[thunk.computation];
    let Some(device) = context.logical_device.filter(|_| context.transfer.lies_as_on_host()) else { return Ok(false) };
    if !is_exchange(computation[thunk.instruction].op()) {
        return Ok(false);
    }
    let shapes = computation.operand_shapes(thunk.instruction);
    let instruction = Instruction::new(module, (computation, thunk.instruction), &shapes)?;
    let plan = device.plan(&instruction, ArrayForm::Memory(&thunk.operands, &thunk.results))?;
    let Ok(lowered) = &plan.lowered else { return Ok(false) };
    let Some((data, values)) = thunk.operands.split_at_checked(lowered.data) else { return Ok(false) };
    context.stream.synchronize()?;
    let mut literals = Vec::with_capacity(values.len());
    for array in values {
        let memory = buffers.memory(array.slice.allocation)?;
        literals.push(context.transfer.read(context.stream, memory, array.slice.offset, &array.shape)?);
    }
    let arguments = lowered.arguments.arguments(&literals, lowered.spec.members())?;
    let Some((operands, results)) = regions(data, &thunk.results, buffers)? else { return Ok(false) };
    let call = CollectiveCall { spec: &lowered.spec, operands, results, arguments, cancel: context.cancel };
    plan.run(device.run(), call)?;
    Ok(true)
}

/// Whether an operation exchanges arrays and returns only the received ones. Start operations, which also return their
/// operands, are not among them.
pub(crate) fn is_exchange(op: &Op) -> bool {
    match op {
        Op::Collective(Collective::Done(_) | Collective::ReplicaId | Collective::PartitionId) => false,
        Op::Collective(op) => !op.returns_operands(),
        _ => false,
    }
}
