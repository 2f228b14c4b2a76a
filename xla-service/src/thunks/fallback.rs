//! Host fallback: evaluates one instruction on literals, and calls the handlers of custom calls.

use xla_hlo::eval::{Evaluator, RandomState};
use xla_hlo::{ArrayShape, CompId, Error, InstrId, Literal, Module, Op, Result, ResultExt, Shape};

use super::collective::run_in_place;
use super::raw_call::{InPlace, Leaf, execute_in_place};
use super::{ExecutionBuffers, Thunk};
use crate::executable::ExecutionContext;
use crate::signature::{group, ungroup};

/// Evaluates one instruction on the values of its operands, with the reference evaluator. This includes the
/// computations that it calls. Random numbers are drawn from `random`.
pub fn evaluate_instruction(
    module: &Module,
    computation: CompId,
    instruction: InstrId,
    operands: Vec<Literal>,
    random: &RandomState,
) -> Result<Literal> {
    let mut evaluator = Evaluator::new(module).with_random_state(random.clone());
    evaluator.evaluate(computation, instruction, operands).context(|| "evaluated on the host")
}

/// Runs a thunk of any kind on the host: copies operands from device memory, evaluates the instruction, and copies the
/// results back.
///
/// Waits for earlier work on the context's stream. Used for
/// [`ThunkKind::HostFallback`](super::ThunkKind::HostFallback) and [`ThunkKind::Collective`](super::ThunkKind), and by
/// backends whose generated code calls back with a [`ThunkId`](super::ThunkId). Collectives wait for the other devices
/// of the launch. They are executed in place if memory has the format of the host and the engine has the operation.
pub fn run_fallback(
    module: &Module,
    thunk: &Thunk,
    context: &ExecutionContext<'_>,
    buffers: &mut ExecutionBuffers,
) -> Result<()> {
    if run_in_place(module, thunk, context, buffers)? {
        return Ok(());
    }
    on_host(module, thunk, context, buffers, |operands| {
        let evaluator = Evaluator::new(module)
            .with_random_state(context.random.clone())
            .with_custom_calls(context.custom_calls)
            .with_cancellation(context.cancel.flag().clone());
        let mut evaluator = match context.logical_device {
            Some(device) => device.connect(evaluator, context.cancel),
            None => evaluator,
        };
        evaluator.evaluate(thunk.computation, thunk.instruction, operands).context(|| "evaluated on the host")
    })
}

/// Runs a [`ThunkKind::CustomCall`](super::ThunkKind::CustomCall) with the context's handlers.
///
/// Waits for earlier work on the context's stream. A handler on raw memory works in place if the arrays are in host
/// memory and have the layouts that the call specifies.
pub fn run_custom_call(
    module: &Module,
    thunk: &Thunk,
    context: &ExecutionContext<'_>,
    buffers: &mut ExecutionBuffers,
) -> Result<()> {
    let instruction = &module[thunk.computation][thunk.instruction];
    if let Some(places) = places_of(module, thunk, context, buffers)? {
        let call = context.custom_calls.call_raw(instruction, |handler, call, state| {
            execute_in_place(thunk, context, buffers, &places, (handler, call, state))
        });
        if let Some(outcome) = call {
            return outcome;
        }
    }
    on_host(module, thunk, context, buffers, |operands| context.custom_calls.call(instruction, operands))
}

/// Returns the operands and results of a custom call on raw memory. `None` for other calls, and if an array is not in
/// host memory or does not have the layout that the call specifies.
fn places_of(
    module: &Module,
    thunk: &Thunk,
    context: &ExecutionContext<'_>,
    buffers: &ExecutionBuffers,
) -> Result<Option<InPlace>> {
    let graph = &module[thunk.computation];
    let instruction = &graph[thunk.instruction];
    let Op::CustomCall(op) = instruction.op() else { return Ok(None) };
    if !context.custom_calls.is_raw(instruction) || !context.transfer.lies_as_on_host() {
        return Ok(None);
    }
    let shapes = graph.operand_shapes(thunk.instruction);
    let operands = Leaf::of(&shapes, &thunk.operands, buffers)?;
    let results = Leaf::of(&[instruction.shape()], &thunk.results, buffers)?;
    let Some((operands, results)) = operands.zip(results) else { return Ok(None) };
    let order = |shape: &Shape| shape.as_array().map(ArrayShape::minor_to_major);
    let stated = op.operand_layouts.iter().flatten().flat_map(Shape::leaves).map(|(_, leaf)| leaf);
    let is_stated = stated.zip(&operands).all(|(stated, operand)| order(stated) == order(operand.shape()));
    let aliases = op.aliased_leaves(&shapes, instruction.shape());
    Ok(is_stated.then_some(InPlace { operands, results, aliases }))
}

/// Reads a thunk's operands, calls `f`, and writes its results.
fn on_host(
    module: &Module,
    thunk: &Thunk,
    context: &ExecutionContext<'_>,
    buffers: &mut ExecutionBuffers,
    f: impl FnOnce(Vec<Literal>) -> Result<Literal>,
) -> Result<()> {
    let mut leaves = Vec::with_capacity(thunk.operands.len());
    for array in &thunk.operands {
        let memory = buffers.memory(array.slice.allocation)?;
        leaves.push(context.transfer.read(context.stream, memory, array.slice.offset, &array.shape)?);
    }
    let graph = &module[thunk.computation];
    let mut leaves = leaves.into_iter();
    let operands = graph.operand_shapes(thunk.instruction).into_iter().map(|shape| group(shape, &mut leaves));
    let result = f(operands.collect::<Result<_>>()?)?;
    let results = ungroup(result);
    if results.len() != thunk.results.len() {
        return Err(Error::internal(format!("%{} returned {} arrays on the host", thunk.name, results.len())));
    }
    for (array, literal) in thunk.results.iter().zip(&results) {
        let memory = buffers.memory_mut(array.slice.allocation)?;
        context.transfer.write(context.stream, literal, &array.shape, memory, array.slice.offset)?;
    }
    Ok(())
}
