//! Completion of asynchronous operations. HLO requires a done operation for each start, in the same computation.

use std::collections::HashSet;

use xla_hlo::ops::collective::{AllGather, AllReduce, Collective, CollectiveDone, CollectivePermute};
use xla_hlo::ops::{Async, Op};
use xla_hlo::{Computation, InstrId, Instruction, Shape};

/// Returns the operation that completes a start, and its result shape; `None` for other operations.
pub(super) fn end(op: &Op, shape: &Shape) -> Option<(Op, Shape)> {
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

/// Completes the starts of a computation whose results the program never uses.
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
