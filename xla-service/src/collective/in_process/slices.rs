//! Slices of an in-place permute.

use xla_hlo::{Error, IndexIter, Result};

use super::work::Work;
use crate::collective::{CollectiveSpec, MemberArguments, SlicePair};

/// Writes result `array` of the receiver: its initial value, overwritten by the slices that are sent to it.
pub(super) fn place_slices(work: &Work<'_>, pairs: &[SlicePair], array: usize, to: usize) {
    let initial = work.spec.initial_values().start + array;
    let part = work.spec.arrays()[initial];
    work.copy(part, (to, initial, 0), (to, array, 0), part.outer * part.inner);
    let is_written = |pair: &&SlicePair| pair.to == to && pair.array == array && !pair.sizes.contains(&0);
    for pair in pairs.iter().filter(is_written) {
        let Some([read_at, write_at]) = starts(work.arguments, pair) else { continue };
        // Elements along the last dimension are copied together if they are contiguous in both arrays.
        let is_contiguous = pair.read_strides.last() == Some(&1) && pair.write_strides.last() == Some(&1);
        let mut sizes = pair.sizes.clone();
        let run = if is_contiguous { sizes.pop().unwrap_or(1) } else { 1 };
        let mut indices = IndexIter::new(&sizes);
        while let Some(index) = indices.next_index() {
            let offset = |strides: &[usize]| index.iter().zip(strides).map(|(i, stride)| i * stride).sum::<usize>();
            let from = (pair.from, array, read_at + offset(&pair.read_strides));
            work.copy(part, from, (to, array, write_at + offset(&pair.write_strides)), run);
        }
    }
}

/// Returns the first elements of a slice, in the sender's input and the receiver's output.
fn starts(arguments: &[MemberArguments], pair: &SlicePair) -> Option<[usize; 2]> {
    let (MemberArguments::Slices { read_at, .. }, MemberArguments::Slices { write_at, .. }) =
        (&arguments[pair.from], &arguments[pair.to])
    else {
        return None;
    };
    Some([*read_at.get(pair.slice)?, *write_at.get(pair.slice)?])
}

/// Checks that all slices are in bounds of both arrays.
pub(super) fn check_slices(spec: &CollectiveSpec, pairs: &[SlicePair], arguments: &[MemberArguments]) -> Result<()> {
    for pair in pairs {
        let end = |start: usize, strides: &[usize]| {
            let mut extents = pair.sizes.iter().zip(strides);
            extents.try_fold(start, |end, (size, stride)| end.checked_add(size.saturating_sub(1).checked_mul(*stride)?))
        };
        let elements = |operand: usize| spec.arrays()[operand].outer * spec.arrays()[operand].inner;
        let [input, output] = [pair.array, spec.initial_values().start + pair.array].map(elements);
        let is_inside = pair.sizes.contains(&0)
            || starts(arguments, pair).is_some_and(|[read_at, write_at]| {
                end(read_at, &pair.read_strides).is_some_and(|last| last < input)
                    && end(write_at, &pair.write_strides).is_some_and(|last| last < output)
            });
        if !is_inside {
            let (slice, array) = (pair.slice, pair.array);
            return Err(Error::internal(format!(
                "slice {slice} of a collective-permute is out of bounds of array {array}"
            )));
        }
    }
    Ok(())
}
