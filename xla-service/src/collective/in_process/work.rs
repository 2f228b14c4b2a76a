//! A collective in execution: its description and the memory of its members.

use std::ops::Range;

use super::memory::{Access, Place};
use crate::collective::{CollectiveSpec, MemberArguments, Part};

/// A collective of which tasks are executed.
pub(in crate::collective) struct Work<'m> {
    pub spec: &'m CollectiveSpec,
    pub arguments: &'m [MemberArguments],
    pub access: Access<'m>,
}

impl Work<'_> {
    pub fn members(&self) -> Range<usize> {
        0..self.spec.members()
    }

    /// Copies elements. Places are `(rank, array, first element)` of an operand and a result.
    pub fn copy(&self, part: Part, from: (usize, usize, usize), to: (usize, usize, usize), elements: usize) {
        let width = part.element_type.byte_width();
        let place = |(rank, array, at): (usize, usize, usize)| Place { rank, array, at: at * width };
        self.access.copy(place(from), place(to), elements * width);
    }
}

/// Splits a range at the multiples of `period`. Returns for each segment the number of the period, the start inside of
/// it, and the length.
pub(super) fn segments(range: Range<usize>, period: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let start = (at < range.end).then(|| at % period)?;
        let length = (period - start).min(range.end - at);
        let segment = (at / period, start, length);
        at += length;
        Some(segment)
    })
}
