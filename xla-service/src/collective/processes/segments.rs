//! Parts of operands that the members of another process need.

use xla_hlo::{Error, Result};

use super::slots::Segment;
use crate::collective::{CollectiveSpec, MemberArguments, Operation, Part, RowMove, SlicePair};

/// Returns the parts of the operands of member `from` that members of another process need. The result depends only on
/// the spec and on the arguments of this member, so the receiver computes it, too. Parts may overlap.
///
/// Fails if a slice is out of bounds.
pub(super) fn segments(
    spec: &CollectiveSpec,
    from: usize,
    arguments: &MemberArguments,
    receivers: &[usize],
) -> Result<Vec<Segment>> {
    let is_receiver = |rank: &usize| receivers.binary_search(rank).is_ok();
    let mut segments = match (spec.operation(), arguments) {
        (Operation::AllReduce(_) | Operation::AllGather, _) => whole(spec).collect(),
        (Operation::ReduceScatter(_) | Operation::AllToAll, _) => parts(spec, receivers),
        (Operation::AllToAllTuple, _) => whole(spec).filter(|segment| is_receiver(&segment.array)).collect(),
        (Operation::Permute(pairs), _) => {
            let is_sent = pairs.iter().any(|pair| pair.0 == from && is_receiver(&pair.1));
            whole(spec).filter(|_| is_sent).collect()
        }
        (Operation::Broadcast, MemberArguments::Root(root)) => whole(spec).filter(|_| from == *root).collect(),
        (Operation::PermuteSlices(pairs), MemberArguments::Slices { read_at, .. }) => {
            let sent = pairs.iter().filter(|pair| pair.from == from && is_receiver(&pair.to));
            sent.map(|pair| slice(spec, pair, read_at)).collect::<Result<_>>()?
        }
        (Operation::RaggedAllToAll, MemberArguments::Rows(rows)) => {
            let entries = rows.len() / spec.members();
            let sent = receivers.iter().flat_map(|to| &rows[to * entries..(to + 1) * entries]);
            sent.map(|entry| sent_rows(spec.arrays()[0], entry)).collect()
        }
        (Operation::Barrier, _) => vec![],
        (Operation::Broadcast | Operation::PermuteSlices(_) | Operation::RaggedAllToAll, _) => {
            return Err(Error::internal(format!("{} has arguments of another operation", spec.name())));
        }
    };
    segments.retain(|segment| segment.bytes > 0);
    Ok(segments)
}

/// Whether a member sends equal parts to all processes.
pub(super) fn are_equal_for_all(operation: &Operation) -> bool {
    matches!(operation, Operation::AllReduce(_) | Operation::AllGather | Operation::Broadcast | Operation::Barrier)
}

fn whole(spec: &CollectiveSpec) -> impl Iterator<Item = Segment> {
    spec.operand_bytes().enumerate().map(|(array, bytes)| Segment { array, at: 0, bytes })
}

/// Returns the parts of these members in all operands, which have a part for each member.
fn parts(spec: &CollectiveSpec, receivers: &[usize]) -> Vec<Segment> {
    let runs = |(array, part): (usize, &Part)| {
        let (members, outer, bytes) = (spec.members(), part.outer, part.inner * part.element_type.byte_width());
        let run = move |o: usize, to: usize| Segment { array, at: (o * members + to) * bytes, bytes };
        receivers.iter().flat_map(move |&to| (0..outer).map(move |o| run(o, to)))
    };
    spec.arrays().iter().enumerate().flat_map(runs).collect()
}

/// Returns the range from the first to the last element of a slice.
fn slice(spec: &CollectiveSpec, pair: &SlicePair, read_at: &[usize]) -> Result<Segment> {
    let part = spec.arrays()[pair.array];
    let (width, elements) = (part.element_type.byte_width(), part.outer * part.inner);
    if pair.sizes.contains(&0) {
        return Ok(Segment { array: pair.array, at: 0, bytes: 0 });
    }
    let mut extents = pair.sizes.iter().zip(&pair.read_strides);
    let first = read_at.get(pair.slice).copied();
    let last = first.and_then(|first| {
        extents.try_fold(first, |last, (size, stride)| last.checked_add((size - 1).checked_mul(*stride)?))
    });
    match (first, last.filter(|&last| last < elements)) {
        (Some(first), Some(last)) => {
            Ok(Segment { array: pair.array, at: first * width, bytes: (last + 1 - first) * width })
        }
        _ => Err(Error::internal(format!(
            "slice {} of a collective-permute is out of bounds of array {}",
            pair.slice, pair.array
        ))),
    }
}

/// Returns the rows of an entry that are in bounds of the input.
fn sent_rows(input: Part, entry: &RowMove) -> Segment {
    let row = input.inner * input.element_type.byte_width();
    let end = entry.read_at.saturating_add(entry.count.max(0));
    let clamp = |at: i64| usize::try_from(at.max(0)).map_or(input.outer, |at| at.min(input.outer));
    let (start, end) = (clamp(entry.read_at), clamp(end));
    Segment { array: 0, at: start * row, bytes: end.saturating_sub(start) * row }
}
