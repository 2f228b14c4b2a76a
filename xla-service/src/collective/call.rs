//! A member's call of a collective.

use std::ops::Range;
use std::sync::Arc;

use xla_hlo::{Error, Result};

use super::operation::{CollectiveSpec, Operation};
use super::region::{Source, Target};
use crate::cancel::CancelToken;

/// A member's call of a collective.
///
/// Results may be stored over operands in these cases: operand and result `k` of all-reduce and collective-broadcast;
/// the initial value of a result of ragged-all-to-all and of an in-place permute. All other operands and results must
/// not overlap; the communicator checks it for each member.
#[derive(Debug)]
pub struct CollectiveCall<'a> {
    /// Operation, element types and sizes.
    pub spec: &'a Arc<CollectiveSpec>,
    /// Operands of this member.
    pub operands: Vec<Source<'a>>,
    /// Results of this member.
    pub results: Vec<Target<'a>>,
    /// Values that this member has computed for the operation.
    pub arguments: MemberArguments,
    /// Token of the run. Cancellation ends the wait.
    pub cancel: &'a CancelToken,
}

/// Values that a member has computed for a collective, read from its operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MemberArguments {
    /// The operation needs none.
    #[default]
    None,
    /// Rank of the root of a [`Operation::Broadcast`], equal on all members. Also of an [`Operation::AllReduce`] that
    /// executes a collective-reduce: the engine checks that all members have the same.
    Root(usize),
    /// First element of each slice of an [`Operation::PermuteSlices`], by the pair's
    /// [`slice`](super::SlicePair::slice).
    Slices {
        /// Positions in this member's inputs, used if it is the sender.
        read_at: Vec<usize>,
        /// Positions in this member's outputs, used if it is the receiver.
        write_at: Vec<usize>,
    },
    /// Rows that this member of a [`Operation::RaggedAllToAll`] sends. The number of entries is a multiple of the
    /// number of members; each receiver has the same number, in the order of the ranks.
    Rows(Vec<RowMove>),
}

/// Rows that a member sends to another. Rows out of bounds of either array are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowMove {
    /// First row of the sender's input.
    pub read_at: i64,
    /// First row of the receiver's output.
    pub write_at: i64,
    /// Number of rows; a negative number means none.
    pub count: i64,
}

impl CollectiveCall<'_> {
    /// Checks numbers, sizes and overlaps of operands and results against the spec.
    pub fn check(&self) -> Result<()> {
        let name = self.spec.name();
        let sizes = |regions: Vec<usize>, expected: Vec<usize>, what: &str| {
            if regions == expected {
                return Ok(());
            }
            let message = format!("the {what} of {name} have {regions:?} bytes, expected {expected:?}");
            Err(Error::internal(message))
        };
        sizes(self.operands.iter().map(Source::bytes).collect(), self.spec.operand_bytes().collect(), "operands")?;
        sizes(self.results.iter().map(Target::bytes).collect(), self.spec.result_bytes().collect(), "results")?;
        self.check_arguments()?;
        self.check_overlaps()
    }

    fn check_arguments(&self) -> Result<()> {
        let members = self.spec.members();
        let fits = match (self.spec.operation(), &self.arguments) {
            (Operation::Broadcast | Operation::AllReduce(_), MemberArguments::Root(root)) => {
                if *root >= members {
                    let message = format!("the root {root} is not in its group of {members} devices");
                    return Err(Error::invalid_argument(message));
                }
                true
            }
            (Operation::PermuteSlices(_), MemberArguments::Slices { .. }) => true,
            (Operation::RaggedAllToAll, MemberArguments::Rows(rows)) => {
                if !rows.len().is_multiple_of(members) {
                    let entries = rows.len();
                    return Err(Error::invalid_argument(format!(
                        "ragged-all-to-all has lists of {entries} entries in a group of {members} devices"
                    )));
                }
                true
            }
            (Operation::Broadcast | Operation::PermuteSlices(_) | Operation::RaggedAllToAll, _) => false,
            (_, arguments) => *arguments == MemberArguments::None,
        };
        match fits {
            true => Ok(()),
            false => Err(Error::internal(format!("{} has arguments of another operation", self.spec.name()))),
        }
    }

    fn check_overlaps(&self) -> Result<()> {
        let first = self.spec.initial_values().start;
        let may_overwrite = |operand: usize, result: usize| {
            operand == first + result
                && match self.spec.operation() {
                    Operation::AllReduce(_)
                    | Operation::Broadcast
                    | Operation::PermuteSlices(_)
                    | Operation::RaggedAllToAll => true,
                    Operation::ReduceScatter(_)
                    | Operation::AllGather
                    | Operation::AllToAll
                    | Operation::AllToAllTuple
                    | Operation::Permute(_)
                    | Operation::Barrier => false,
                }
        };
        let name = self.spec.name();
        let mut results: Vec<(Range<usize>, usize)> = self.results.iter().map(Target::addresses).zip(0..).collect();
        results.retain(|(addresses, _)| !addresses.is_empty());
        results.sort_unstable_by_key(|(addresses, _)| addresses.start);
        if let Some(pair) = results.windows(2).find(|pair| pair[1].0.start < pair[0].0.end) {
            let (a, b) = (pair[0].1.min(pair[1].1), pair[0].1.max(pair[1].1));
            return Err(Error::internal(format!("results {a} and {b} of {name} overlap in memory")));
        }
        for (o, operand) in self.operands.iter().map(Source::addresses).enumerate().filter(|(_, o)| !o.is_empty()) {
            // Results are disjoint here, so the order of their ends is the order of their starts.
            let first = results.partition_point(|(result, _)| result.end <= operand.start);
            let mut overlapping = results[first..].iter().take_while(|(result, _)| result.start < operand.end);
            if let Some((_, r)) = overlapping.find(|(result, r)| !(may_overwrite(o, *r) && *result == operand)) {
                return Err(Error::internal(format!("operand {o} and result {r} of {name} overlap in memory")));
            }
        }
        Ok(())
    }
}
