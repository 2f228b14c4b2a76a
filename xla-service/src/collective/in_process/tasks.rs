//! Execution of tasks: one function for each kind of collective.
//!
//! A task is a range of indices of one result. Indices are elements, counted through the parts that are read or
//! written: index `i` of an array of parts with `E` elements is element `i % E` of part `i / E`.

use std::ops::Range;

use smallvec::SmallVec;
use xla_hlo::Result;

use super::memory::Place;
use super::ragged::move_rows;
use super::slices::place_slices;
use super::work::{Work, segments};
use crate::collective::{MemberArguments, Operation, Reduction};

/// Number of bytes of each operand that are processed at a time: they stay in the first-level cache.
const BLOCK: usize = 16 << 10;

/// Block of reduced elements.
#[repr(align(64))]
struct Block([u8; BLOCK]);

impl Work<'_> {
    /// Executes the indices `range` of result `array`.
    pub fn execute(&self, array: usize, range: Range<usize>) -> Result<()> {
        let part = self.spec.arrays()[array];
        match self.spec.operation() {
            Operation::AllReduce(reduction) => return self.all_reduce(reduction, array, range),
            Operation::ReduceScatter(reduction) => return self.reduce_scatter(reduction, array, range),
            Operation::AllGather => self.all_gather(array, range),
            Operation::AllToAll => self.all_to_all(array, range),
            // The indices count through the receivers. Result `array` is from the sender of that rank.
            Operation::AllToAllTuple => {
                for (to, at, elements) in segments(range, part.outer * part.inner) {
                    self.copy(part, (array, to, at), (to, array, at), elements);
                }
            }
            Operation::Permute(pairs) => self.permute(pairs, array, range),
            Operation::PermuteSlices(pairs) => range.for_each(|to| place_slices(self, pairs, array, to)),
            Operation::Broadcast => self.broadcast(array, range),
            Operation::RaggedAllToAll => move_rows(self, range),
            Operation::Barrier => {}
        }
        Ok(())
    }

    /// The indices are the elements of a result, which is equal on all members.
    fn all_reduce(&self, reduction: &Reduction, array: usize, range: Range<usize>) -> Result<()> {
        let store = |at, block: &[u8]| {
            self.members().for_each(|rank| self.access.write(Place { rank, array, at }, block));
        };
        self.reduce(reduction, array, range, &mut Block([0; BLOCK]), store)
    }

    /// The indices count through the results of all members.
    fn reduce_scatter(&self, reduction: &Reduction, array: usize, range: Range<usize>) -> Result<()> {
        let part = self.spec.arrays()[array];
        let width = part.element_type.byte_width();
        let mut block = Block([0; BLOCK]);
        for (to, at, elements) in segments(range, part.outer * part.inner) {
            for (outer, inner, run) in segments(at..at + elements, part.inner) {
                let first = (outer * self.spec.members() + to) * part.inner + inner;
                // Offset of the result's first byte from the operand's.
                let (read_at, write_at) = (first * width, (outer * part.inner + inner) * width);
                self.reduce(reduction, array, first..first + run, &mut block, |at, block| {
                    self.access.write(Place { rank: to, array, at: write_at + (at - read_at) }, block);
                })?;
            }
        }
        Ok(())
    }

    /// Reduces the elements `range` of all operands. `store` receives the reduced bytes, stored in `block`, with their
    /// offset in the operand.
    fn reduce(
        &self,
        reduction: &Reduction,
        array: usize,
        range: Range<usize>,
        block: &mut Block,
        store: impl Fn(usize, &[u8]),
    ) -> Result<()> {
        let ty = self.spec.arrays()[array].element_type;
        let (mut at, end) = (range.start * ty.byte_width(), range.end * ty.byte_width());
        while at < end {
            let block = &mut block.0[..BLOCK.min(end - at)];
            let source = |rank| self.access.operand(Place { rank, array, at }, block.len());
            let sources: SmallVec<[&[u8]; 8]> = self.members().map(source).collect();
            match sources[..] {
                // The array of a single member is not converted to the combiner's type.
                [only] => block.copy_from_slice(only),
                _ => reduction.reducer.reduce(ty, &sources, block)?,
            }
            store(at, block);
            at += block.len();
        }
        Ok(())
    }

    /// The indices count through the operands of all members.
    fn all_gather(&self, array: usize, range: Range<usize>) {
        let part = self.spec.arrays()[array];
        let width = part.element_type.byte_width();
        for (from, at, elements) in segments(range, part.outer * part.inner) {
            for (outer, inner, run) in segments(at..at + elements, part.inner) {
                let (read_at, write_at) =
                    (outer * part.inner + inner, (outer * self.spec.members() + from) * part.inner + inner);
                for (start, block) in blocks(run, width) {
                    let copy =
                        |to| self.copy(part, (from, array, read_at + start), (to, array, write_at + start), block);
                    self.members().for_each(copy);
                }
            }
        }
    }

    /// The indices count through the parts of all operands: index `i` is in part `i / E` of all `N * N` parts.
    fn all_to_all(&self, array: usize, range: Range<usize>) {
        let (part, members) = (self.spec.arrays()[array], self.spec.members());
        for (pair, at, elements) in segments(range, part.outer * part.inner) {
            let (from, to) = (pair / members, pair % members);
            for (outer, inner, run) in segments(at..at + elements, part.inner) {
                let element = |part_index: usize| (outer * members + part_index) * part.inner + inner;
                self.copy(part, (from, array, element(to)), (to, array, element(from)), run);
            }
        }
    }

    /// The indices count through the results of all members.
    fn permute(&self, pairs: &[(usize, usize)], array: usize, range: Range<usize>) {
        let part = self.spec.arrays()[array];
        let width = part.element_type.byte_width();
        for (to, at, elements) in segments(range, part.outer * part.inner) {
            match pairs.iter().find(|pair| pair.1 == to) {
                Some(&(from, _)) => self.copy(part, (from, array, at), (to, array, at), elements),
                None => self.access.clear(Place { rank: to, array, at: at * width }, elements * width),
            }
        }
    }

    /// The indices are the elements of a result, which is equal on all members.
    fn broadcast(&self, array: usize, range: Range<usize>) {
        let part = self.spec.arrays()[array];
        let MemberArguments::Root(root) = self.arguments[0] else { return };
        for (start, block) in blocks(range.len(), part.element_type.byte_width()) {
            let at = range.start + start;
            self.members().for_each(|to| self.copy(part, (root, array, at), (to, array, at), block));
        }
    }
}

/// Splits `count` elements of `width` bytes into blocks. Returns the first element and the length of each.
fn blocks(count: usize, width: usize) -> impl Iterator<Item = (usize, usize)> {
    segments(0..count, BLOCK / width).map(move |(block, _, length)| (block * (BLOCK / width), length))
}
