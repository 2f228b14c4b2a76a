//! Asynchronous operations: their start, whose result is a future, and their end.

use std::collections::HashSet;

use xla_hlo::ops::collective::{AllGather, AllReduce, Collective, CollectiveDone, CollectivePermute};
use xla_hlo::ops::{Async, AsyncStart, Op};
use xla_hlo::{Computation, InstrId, Instruction, Result, Shape};

use super::call::Call;
use super::context::Lowering;
use crate::ir::ValueId;

/// Lowers the start or the end of an asynchronous operation; a value for each result.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<Vec<InstrId>>> {
    Some(match call.name {
        "async_start" => start(lowering, call).map(|start| vec![start]),
        "async_done" => done(lowering, call),
        _ => return None,
    })
}

/// Collectives that have a start of their own become that, others a computation that is started.
fn start(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [region] = call.regions()?;
    let body = lowering.closed_computation("async_computation", region)?;
    let operands: Vec<Shape> = call.operands.iter().map(|&operand| lowering.shape(operand)).collect();
    let result = body.result_shape().clone();
    let pair = |operands: Shape, result| Shape::Tuple(vec![operands, result]);
    let (op, shape): (Op, Shape) = match collective(&body) {
        Some(Collective::AllReduce(op)) => (Collective::AllReduce(AllReduce { is_start: true, ..op }).into(), result),
        Some(Collective::AllGather(op)) => {
            let shape = pair(super::types::packed_shape(operands), result);
            (Collective::AllGather(AllGather { is_start: true, ..op }).into(), shape)
        }
        Some(Collective::CollectivePermute(op)) => {
            let shape = pair(super::types::packed_shape(operands), result);
            (Collective::CollectivePermute(CollectivePermute { is_start: true, ..op }).into(), shape)
        }
        _ => {
            let computation = lowering.hlo.add(body);
            let shape = pair(Shape::Tuple(operands), result);
            (Async::Start(AsyncStart { computation, aliases: Vec::new() }).into(), shape)
        }
    };
    lowering.add(op, shape, call.operands.clone())
}

/// The collective that a computation is, all its parameters being the operands in order.
fn collective(body: &Computation) -> Option<Collective> {
    let root = &body[body.root()];
    let is_alone = body.len() == body.parameters().len() + 1 && root.operands() == body.parameters();
    match root.op() {
        Op::Collective(op) if is_alone => Some(op.clone()),
        _ => None,
    }
}

/// The operation that ends a start, and the shape of its result; `None` for other operations.
fn end(op: &Op, shape: &Shape) -> Option<(Op, Shape)> {
    let second = || shape.as_tuple().and_then(|parts| parts.get(1)).cloned();
    Some(match op {
        Op::Collective(Collective::AllReduce(AllReduce { is_start: true, .. })) => {
            (Collective::Done(CollectiveDone::AllReduce).into(), shape.clone())
        }
        Op::Collective(Collective::AllGather(AllGather { is_start: true, .. })) => {
            (Collective::Done(CollectiveDone::AllGather).into(), second()?)
        }
        Op::Collective(Collective::CollectivePermute(CollectivePermute { is_start: true, .. })) => {
            (Collective::Done(CollectiveDone::CollectivePermute).into(), second()?)
        }
        Op::Async(Async::Start(_)) => (Async::Done.into(), second()?),
        _ => return None,
    })
}

/// The result of the start that a future is. A future has one end in HLO, and it does not leave its computation: an
/// operation other than `async_done` takes the result, and so does a second `async_done`.
pub(super) fn result(lowering: &mut Lowering<'_>, future: ValueId) -> Result<InstrId> {
    let start = lowering.value(future)?;
    let shape = lowering.shape(start);
    let Some((op, shape)) = end(lowering.op(start), &shape) else { return Ok(start) };
    let result = lowering.add(op, shape, [start])?;
    lowering.set_value(future, result);
    Ok(result)
}

fn done(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let [_] = call.exactly()?;
    let future = lowering.source.operations[call.op].operands[0];
    let result = result(lowering, future)?;
    lowering.unpacked(result, call.results.len())
}

/// Ends the starts of a computation that the program never waits for.
pub(super) fn end_unused(computation: &mut Computation) {
    let is_used: HashSet<InstrId> =
        computation.iter().flat_map(|(_, instruction)| instruction.operands().iter().copied()).collect();
    let unused: Vec<InstrId> = computation.ids().filter(|id| !is_used.contains(id)).collect();
    for start in unused {
        let instruction = &computation[start];
        if let Some((op, shape)) = end(instruction.op(), instruction.shape()) {
            computation.add(Instruction::new(op, shape, [start]));
        }
    }
}
