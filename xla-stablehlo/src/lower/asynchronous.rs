//! Asynchronous operations: `async_start`, whose result is a future, and `async_done`.

use xla_hlo::ops::collective::{AllGather, AllReduce, Collective, CollectivePermute};
use xla_hlo::ops::{Async, AsyncStart, Op};
use xla_hlo::{Computation, InstrId, Result, Shape};

use super::call::Call;
use super::context::Lowering;

/// Lowers the start or end of an asynchronous operation; returns one instruction per result.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<Vec<InstrId>>> {
    Some(match call.name {
        "async_start" => start(lowering, call).map(|start| vec![start]),
        "async_done" => done(lowering, call),
        _ => return None,
    })
}

/// Lowers `async_start`. A collective with an asynchronous form in HLO uses it; any other body becomes an `async-start`
/// of a computation.
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

/// Returns the collective that a computation consists of, if its operands are all parameters in order.
fn collective(body: &Computation) -> Option<Collective> {
    let root = &body[body.root()];
    let is_alone = body.len() == body.parameters().len() + 1 && root.operands() == body.parameters();
    match root.op() {
        Op::Collective(op) if is_alone => Some(op.clone()),
        _ => None,
    }
}

fn done(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let [_] = call.exactly()?;
    let future = lowering.source.operations[call.op].operands[0];
    let result = lowering.operand(future)?;
    lowering.unpacked(result, call.results.len())
}
