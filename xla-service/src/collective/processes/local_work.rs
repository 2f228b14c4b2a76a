//! Tasks of the local members.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};
use xla_hlo::Result;

use super::exchange::Exchange;
use crate::collective::in_process::{Access, Work};
use crate::collective::{CollectiveSpec, MemberArguments, Operation};

/// Computes the results of the local members. `arguments` and `access` have all members.
pub(super) fn execute(exchange: &Exchange<'_>, arguments: &[MemberArguments], access: Access<'_>) -> Result<()> {
    let work = Work { spec: exchange.spec, arguments, access };
    for array in 0..exchange.spec.result_bytes().count() {
        for range in ranges(exchange.spec, array, exchange.route.local()) {
            exchange.cancel.check()?;
            work.execute(array, range)?;
        }
    }
    Ok(())
}

/// Returns the indices of result `array` that some members need. The functions of `in_process/tasks.rs` document the
/// meaning of the indices.
fn ranges(spec: &CollectiveSpec, array: usize, members: &[usize]) -> SmallVec<[Range<usize>; 1]> {
    let (count, part) = (spec.members(), spec.arrays()[spec.initial_values().start + array]);
    let elements = part.outer * part.inner;
    let of_receivers = |elements: usize| members.iter().map(|to| to * elements..(to + 1) * elements).collect();
    match spec.operation() {
        Operation::AllReduce(_) | Operation::Broadcast => smallvec![0..elements],
        Operation::AllGather => smallvec![0..elements * count],
        Operation::ReduceScatter(_) | Operation::AllToAllTuple | Operation::Permute(_) | Operation::RaggedAllToAll => {
            of_receivers(elements)
        }
        Operation::PermuteSlices(_) => of_receivers(1),
        Operation::AllToAll => {
            let pair = |from: usize, to: usize| (from * count + to) * elements..(from * count + to + 1) * elements;
            (0..count).flat_map(|from| members.iter().map(move |&to| pair(from, to))).collect()
        }
        Operation::Barrier => smallvec![],
    }
}
