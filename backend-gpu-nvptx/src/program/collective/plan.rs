//! Decision between NCCL and the service.

use std::fmt;
use std::sync::Arc;

use xla_service::collective::{CollectiveSpec, Operation, Part};

use super::declined::Declined;
use super::element::NcclReduction;

/// Maximum number of calls of a member. Parts that are cut into more runs are executed by the service.
const MOST_CALLS: usize = 256;

/// Collective that NCCL executes.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) spec: Arc<CollectiveSpec>,
    /// Reduction of each array; empty if nothing is reduced.
    pub(super) reductions: Vec<NcclReduction>,
}

/// Decides which engine executes a collective: NCCL, or the service for a reason. It depends only on the spec, so all
/// members decide equally.
pub(crate) fn plan(spec: &Arc<CollectiveSpec>) -> Result<Plan, Declined> {
    let (arrays, members) = (spec.arrays(), spec.members());
    let reductions = match spec.operation() {
        Operation::AllReduce(reduction) | Operation::ReduceScatter(reduction) if members > 1 => {
            let of_array = |part: &Part| NcclReduction::of(reduction, part.element_type);
            arrays.iter().map(of_array).collect::<Result<_, _>>()?
        }
        Operation::PermuteSlices(_) | Operation::RaggedAllToAll | Operation::Barrier => {
            return Err(Declined::Operation(spec.name()));
        }
        Operation::AllReduce(_)
        | Operation::ReduceScatter(_)
        | Operation::AllGather
        | Operation::AllToAll
        | Operation::AllToAllTuple
        | Operation::Permute(_)
        | Operation::Broadcast => Vec::new(),
    };
    let runs = || arrays.iter().fold(0, |sum: usize, part| sum.saturating_add(part.outer));
    let calls = match spec.operation() {
        Operation::AllGather | Operation::ReduceScatter(_) => runs(),
        Operation::AllToAll => runs().saturating_mul(2 * members),
        Operation::AllToAllTuple => 2 * members,
        Operation::Permute(_) => 2 * arrays.len(),
        Operation::AllReduce(_)
        | Operation::Broadcast
        | Operation::PermuteSlices(_)
        | Operation::RaggedAllToAll
        | Operation::Barrier => arrays.len(),
    };
    match calls {
        0..=MOST_CALLS => Ok(Plan { spec: spec.clone(), reductions }),
        _ => Err(Declined::Calls(calls)),
    }
}

impl fmt::Display for Plan {
    /// Writes the name of the function in NVIDIA's library, with combiner and type: `ncclAllReduce Sum of f32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = match self.spec.operation() {
            Operation::AllReduce(_) => "ncclAllReduce",
            Operation::ReduceScatter(_) => "ncclReduceScatter",
            Operation::AllGather => "ncclAllGather",
            Operation::Broadcast => "ncclBroadcast",
            Operation::AllToAll
            | Operation::AllToAllTuple
            | Operation::Permute(_)
            | Operation::PermuteSlices(_)
            | Operation::RaggedAllToAll
            | Operation::Barrier => "ncclSend and ncclRecv",
        };
        f.write_str(function)?;
        match self.reductions.first().zip(self.spec.arrays().first()) {
            Some((reduction, part)) => write!(f, " {:?} of {}", reduction.op, part.element_type),
            None => Ok(()),
        }
    }
}
