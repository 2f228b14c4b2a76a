//! Hazards between commands: a command follows the writers of its inputs, and the readers and writers of its outputs.

use std::ops::Range;

/// Access to bytes of a memory that has a number, such as an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Number of the memory.
    pub memory: usize,
    /// Accessed bytes.
    pub bytes: Range<usize>,
    /// Whether the bytes are written.
    pub writes: bool,
}

/// Accesses of the commands so far.
#[derive(Debug, Default)]
pub(crate) struct Hazards {
    accesses: Vec<Vec<Access>>,
    /// For each command, its direct and indirect predecessors as a bit set.
    before: Vec<Vec<u64>>,
}

impl Hazards {
    /// Adds the next command. Returns the indices of its direct predecessors in ascending order, without those that
    /// precede another one of them.
    pub fn add(&mut self, accesses: &[Access]) -> Vec<usize> {
        let number = self.accesses.len();
        let mut behind = vec![0u64; number.div_ceil(64)];
        let mut after = Vec::new();
        // Visit the latest first: its own predecessors need no edges.
        for earlier in (0..number).rev() {
            if !has(&behind, earlier) && conflict(&self.accesses[earlier], accesses) {
                after.push(earlier);
                behind[earlier / 64] |= 1 << (earlier % 64);
                for (all, more) in behind.iter_mut().zip(&self.before[earlier]) {
                    *all |= more;
                }
            }
        }
        after.reverse();
        self.accesses.push(accesses.to_vec());
        self.before.push(behind);
        after
    }

    /// Whether a command follows an earlier one, directly or indirectly.
    pub fn follows(&self, number: usize, earlier: usize) -> bool {
        self.before.get(number).is_some_and(|before| has(before, earlier))
    }
}

fn has(bits: &[u64], number: usize) -> bool {
    bits.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
}

fn conflict(one: &[Access], other: &[Access]) -> bool {
    one.iter().any(|a| {
        other.iter().any(|b| {
            let common = a.bytes.start.max(b.bytes.start)..a.bytes.end.min(b.bytes.end);
            a.memory == b.memory && !common.is_empty() && (a.writes || b.writes)
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn access(memory: usize, bytes: Range<usize>, writes: bool) -> Access {
        Access { memory, bytes, writes }
    }

    #[test]
    fn independent_work_has_no_edges() {
        let mut hazards = Hazards::default();
        let read = |memory| access(memory, 0..8, false);
        let write = |memory| access(memory, 0..8, true);
        assert_eq!(hazards.add(&[read(0), write(1)]), [0usize; 0]);
        assert_eq!(hazards.add(&[read(0), write(2)]), [0usize; 0]);
        assert_eq!(hazards.add(&[read(1), read(2), write(3)]), [0, 1]);
        assert_eq!(hazards.add(&[read(1), read(3), write(4)]), [2], "behind 0 by way of 2");
        assert_eq!(hazards.add(&[write(1)]), [3], "who reads comes first");
        assert_eq!(hazards.add(&[access(1, 8..16, true)]), [0usize; 0], "other bytes");
        assert_eq!(hazards.add(&[access(1, 4..4, true)]), [0usize; 0], "no bytes");
    }

    proptest! {
        #[test]
        fn every_conflict_is_ordered_and_no_edge_is_superfluous(
            work in prop::collection::vec(
                prop::collection::vec((0usize..4, 0usize..4, 1usize..3, any::<bool>()), 0..4),
                0..90,
            ),
        ) {
            let mut hazards = Hazards::default();
            let mut before: Vec<Vec<bool>> = Vec::new();
            let work: Vec<Vec<Access>> = work
                .into_iter()
                .map(|all| {
                    let all = all.into_iter();
                    all.map(|(memory, at, size, writes)| access(memory, at..at + size, writes)).collect()
                })
                .collect();
            for (number, accesses) in work.iter().enumerate() {
                let after = hazards.add(accesses);
                let reached = |after: &[usize]| -> Vec<bool> {
                    (0..number).map(|e| after.iter().any(|&a| a == e || before[a].get(e) == Some(&true))).collect()
                };
                let all = reached(&after);
                for earlier in 0..number {
                    prop_assert_eq!(hazards.follows(number, earlier), all[earlier]);
                    prop_assert!(all[earlier] || !conflict(&work[earlier], accesses));
                }
                for left_out in 0..after.len() {
                    let mut rest = after.clone();
                    let edge = rest.remove(left_out);
                    prop_assert!(!reached(&rest)[edge]);
                }
                before.push(all);
            }
        }
    }
}
