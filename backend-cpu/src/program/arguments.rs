//! Layout of the address table that the entry function passes to kernels, library calls and copies.
//!
//! The locations of arrays are known when a run begins and do not change during the run. Therefore
//! [`ArgumentTable::addresses`] computes all addresses once, and the entry function only needs a position in the table
//! for each call. Its code stays small for any number of arrays, and loops do not recompute addresses.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use xla_hlo::entity::EntityId;
use xla_passes::buffers::Slice;

/// Entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum ArgumentWord {
    /// Address of byte `offset` of an allocation.
    Address { allocation: usize, offset: usize },
    /// Context of the run, for library functions that share state between programs.
    Context,
    /// Scratch memory, for kernels that receive it from their caller.
    Scratch,
    /// Random state of the caller, in programs without runtime.
    RandomState,
}

impl From<Slice> for ArgumentWord {
    fn from(slice: Slice) -> ArgumentWord {
        ArgumentWord::Address { allocation: slice.allocation.index(), offset: slice.offset }
    }
}

/// Address table of a program.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ArgumentTable {
    words: Vec<ArgumentWord>,
    /// Size of the run's scratch memory, in bytes.
    scratch_bytes: usize,
}

impl ArgumentTable {
    /// Returns the entries.
    pub fn words(&self) -> &[ArgumentWord] {
        &self.words
    }

    /// Returns the size of the kernels' scratch memory, in bytes.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch_bytes
    }

    /// Whether a table that was read from a file contains only addresses within allocations of these sizes, and only
    /// entries that a run in this process can provide.
    pub fn fits(&self, sizes: &[usize]) -> bool {
        self.words.iter().all(|word| match *word {
            ArgumentWord::Address { allocation, offset } => sizes.get(allocation).is_some_and(|&size| offset <= size),
            ArgumentWord::Context | ArgumentWord::Scratch => true,
            ArgumentWord::RandomState => false,
        })
    }

    /// Computes the table of one run from the addresses of the allocations and of scratch memory; `None` if there are
    /// too few allocations.
    pub fn addresses(
        &self,
        allocations: &[*mut u8],
        scratch: *mut u8,
        context: *mut u8,
    ) -> Option<SmallVec<[*mut u8; 16]>> {
        let mut table = SmallVec::with_capacity(self.words.len());
        for word in &self.words {
            table.push(match *word {
                ArgumentWord::Address { allocation, offset } => allocations.get(allocation)?.wrapping_add(offset),
                ArgumentWord::Context => context,
                ArgumentWord::Scratch => scratch,
                // Only programs without runtime have this entry.
                ArgumentWord::RandomState => return None,
            });
        }
        Some(table)
    }
}

/// Builder of a table from sequences of words. Each sequence holds the arguments of one or more calls.
#[derive(Debug, Default)]
pub(crate) struct ArgumentTableBuilder {
    table: ArgumentTable,
    runs: HashMap<Vec<ArgumentWord>, usize>,
}

impl ArgumentTableBuilder {
    /// Returns the position of a sequence of words in the table; equal sequences are stored once.
    pub fn place(&mut self, run: Vec<ArgumentWord>) -> usize {
        let words = &mut self.table.words;
        *self.runs.entry(run).or_insert_with_key(|run| {
            words.extend(run);
            words.len() - run.len()
        })
    }

    /// Returns the finished table, for runs with this size of scratch memory.
    pub fn finish(self, scratch_bytes: usize) -> ArgumentTable {
        ArgumentTable { scratch_bytes, ..self.table }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    #[test]
    fn tables_with_addresses_outside_of_the_plan_do_not_fit() {
        let fits = |word| {
            let mut table = ArgumentTableBuilder::default();
            table.place(vec![ArgumentWord::Context, ArgumentWord::Scratch, word]);
            table.finish(0).fits(&[16, 0])
        };
        let address = |allocation, offset| ArgumentWord::Address { allocation, offset };
        assert!(fits(address(0, 0)) && fits(address(0, 16)) && fits(address(1, 0)));
        assert!(!fits(address(0, 17)) && !fits(address(1, 1)) && !fits(address(2, 0)));
        assert!(!fits(address(0, usize::MAX)) && !fits(address(usize::MAX, 0)) && !fits(ArgumentWord::RandomState));
    }

    #[test]
    fn equal_runs_share_a_place() {
        let word = |allocation, offset| ArgumentWord::Address { allocation, offset };
        let mut table = ArgumentTableBuilder::default();
        assert_eq!(table.place(vec![word(0, 0), word(1, 8)]), 0);
        assert_eq!(table.place(vec![ArgumentWord::Context, word(1, 8)]), 2);
        assert_eq!(table.place(vec![word(0, 0), word(1, 8)]), 0);
        assert_eq!(table.place(vec![word(1, 8)]), 4);
        let table = table.finish(0);
        let mut memory = [[0_u8; 16]; 2];
        let bases = memory.each_mut().map(|bytes| bytes.as_mut_ptr());
        let context = std::ptr::null_mut();
        let [first, second] = [bases[0], bases[1].wrapping_add(8)];
        assert_eq!(table.addresses(&bases, context, context), Some(smallvec![first, second, context, second, second]));
        assert_eq!(table.addresses(&bases[..1], context, context), None);
    }
}
