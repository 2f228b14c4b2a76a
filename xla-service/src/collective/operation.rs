//! Description of a collective: its operation, element types and sizes. Constant for an instruction and a group.

use std::fmt;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use xla_hlo::{ElementType, Error, Result};

use super::key::first_u64;
use super::reduction::Reduction;

/// Operation of a collective. `N` is the number of members; a [`Part`] describes one member's share of an array.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Reduces the operands of all members. Operand and result `k` have one part. A collective-reduce is executed as an
    /// all-reduce; if a value selects its root, the members pass it for a check.
    AllReduce(Reduction),
    /// Reduces the operands of all members; member `r` receives part `r`. Operands have `N` parts, results one.
    ReduceScatter(Reduction),
    /// Concatenates the operands in the order of the ranks. Operands have one part, results `N`.
    AllGather,
    /// Sends part `r` of each member's operand to member `r`, which concatenates the parts in the order of the ranks.
    /// Operands and results have `N` parts.
    AllToAll,
    /// Sends operand `r` to member `r`, which receives it as the result of the sender's rank. `N` operands and results,
    /// one part each.
    AllToAllTuple,
    /// Sends the operands along pairs of ranks `(source, target)`. A rank is the source of at most one pair and the
    /// target of at most one; the results of all others become zero bytes.
    Permute(Vec<(usize, usize)>),
    /// Sends slices of the inputs over slices of the receivers' outputs. For `K` arrays, operands are `K` inputs and
    /// `K` outputs, which are the initial values of the `K` results. Pairs take effect in their order.
    /// [`MemberArguments::Slices`](super::MemberArguments::Slices) has the positions.
    PermuteSlices(Vec<SlicePair>),
    /// Sends the operands of the root, [`MemberArguments::Root`](super::MemberArguments::Root), to all members.
    Broadcast,
    /// Sends rows of operand 0 over rows of the receiver's operand 1, the initial value of the only result.
    /// [`MemberArguments::Rows`](super::MemberArguments::Rows) has the positions. Both parts have `outer` rows of
    /// `inner` elements. Senders take effect in the order of their ranks.
    RaggedAllToAll,
    /// Waits for all members.
    Barrier,
}

/// One member's share of an array: `outer` runs of `inner` contiguous elements in memory order. Elements are unpacked:
/// each has [`ElementType::byte_width`] bytes.
///
/// An array of `N` parts is cut along one dimension: run `o` of part `p` is run `o * N + p` of the array. For a part
/// with the dimensions `[a, b, c, d]`, from major to minor, that is cut along `b`, `outer` is `a` and `inner` is
/// `b * c * d`. For operations without cuts, `outer` is usually 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Element type.
    pub element_type: ElementType,
    /// Number of runs.
    pub outer: usize,
    /// Number of elements of a run.
    pub inner: usize,
}

impl Part {
    /// Describes an array of `count` elements that is not cut.
    pub fn whole(element_type: ElementType, count: usize) -> Part {
        Part { element_type, outer: 1, inner: count }
    }

    /// Returns the number of bytes of a run. It fits, as [`CollectiveSpec::new`] has checked.
    fn run_bytes(&self) -> usize {
        self.inner * self.element_type.byte_width()
    }

    /// Returns the number of bytes of the part. It fits, as [`CollectiveSpec::new`] has checked.
    pub fn bytes(&self) -> usize {
        self.outer * self.run_bytes()
    }
}

/// A slice that an in-place permute sends along a pair of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePair {
    /// Rank of the sender.
    pub from: usize,
    /// Rank of the receiver.
    pub to: usize,
    /// Index of the array among the inputs and outputs.
    pub array: usize,
    /// Index of the slice's positions in [`MemberArguments::Slices`](super::MemberArguments::Slices).
    pub slice: usize,
    /// Size of the slice along each dimension.
    pub sizes: Vec<usize>,
    /// Strides of the input along each dimension, in elements.
    pub read_strides: Vec<usize>,
    /// Strides of the output along each dimension, in elements.
    pub write_strides: Vec<usize>,
}

/// Description of a collective, equal for all members. Share one `Arc` among them: it is compared by address first.
#[derive(Clone, Debug)]
pub struct CollectiveSpec {
    operation: Operation,
    arrays: Vec<Part>,
    members: usize,
    /// Computed at the first use: most specs are never sent to another process.
    identity: OnceLock<(u64, String)>,
}

impl PartialEq for CollectiveSpec {
    fn eq(&self, other: &CollectiveSpec) -> bool {
        (&self.operation, &self.arrays, self.members) == (&other.operation, &other.arrays, other.members)
    }
}

impl CollectiveSpec {
    /// Creates the description for groups of `members` devices. `arrays` holds a part for each operand.
    ///
    /// Fails if the number of arrays does not fit the operation, if ranks are out of range, or if sizes overflow.
    pub fn new(operation: Operation, arrays: Vec<Part>, members: usize) -> Result<CollectiveSpec> {
        let spec = CollectiveSpec { operation, arrays, members, identity: OnceLock::new() };
        spec.check_arrays()?;
        spec.check_pairs()?;
        Ok(spec)
    }

    /// Returns the operation.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// Returns a part for each operand.
    pub fn arrays(&self) -> &[Part] {
        &self.arrays
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.members
    }

    /// Returns the name of the operation in HLO.
    pub fn name(&self) -> &'static str {
        match self.operation {
            Operation::AllReduce(_) => "all-reduce",
            Operation::ReduceScatter(_) => "reduce-scatter",
            Operation::AllGather => "all-gather",
            Operation::AllToAll | Operation::AllToAllTuple => "all-to-all",
            Operation::Permute(_) | Operation::PermuteSlices(_) => "collective-permute",
            Operation::Broadcast => "collective-broadcast",
            Operation::RaggedAllToAll => "ragged-all-to-all",
            Operation::Barrier => "barrier",
        }
    }

    /// Returns a hash and a short text, for comparison with the specs of other processes. Reducers of combiners that
    /// are not a single operation are not compared.
    pub(super) fn identity(&self) -> &(u64, String) {
        self.identity.get_or_init(|| {
            let operation = match &self.operation {
                Operation::AllReduce(reduction) | Operation::ReduceScatter(reduction) => {
                    format!("{:?} {:?}", reduction.operation, reduction.accumulator)
                }
                operation => format!("{operation:?}"),
            };
            let all = format!("{} {operation} {:?} {}", self.name(), self.arrays, self.members);
            (first_u64(&Sha256::digest(all)), self.to_string())
        })
    }

    /// Returns the number of bytes of each operand.
    pub fn operand_bytes(&self) -> impl Iterator<Item = usize> {
        let parts = match self.operation {
            Operation::ReduceScatter(_) | Operation::AllToAll => self.members,
            _ => 1,
        };
        self.arrays.iter().map(move |part| part.bytes() * parts)
    }

    /// Returns the number of bytes of each result.
    pub fn result_bytes(&self) -> impl Iterator<Item = usize> {
        let parts = match self.operation {
            Operation::AllGather | Operation::AllToAll => self.members,
            _ => 1,
        };
        self.arrays[self.initial_values()].iter().map(move |part| part.bytes() * parts)
    }

    /// Returns the range of operands that have the sizes of the results. For operations that overwrite part of a
    /// result, these operands are the initial values.
    pub(super) fn initial_values(&self) -> std::ops::Range<usize> {
        let count = self.arrays.len();
        match self.operation {
            Operation::PermuteSlices(_) | Operation::RaggedAllToAll => count / 2..count,
            _ => 0..count,
        }
    }

    /// Whether two reducing collectives have different reducers that cannot be compared, and are equal otherwise.
    pub(super) fn differs_only_in_reducer(&self, other: &CollectiveSpec) -> bool {
        let operations = (&self.operation, &other.operation);
        let is_equal_otherwise = match operations {
            (Operation::AllReduce(a), Operation::AllReduce(b))
            | (Operation::ReduceScatter(a), Operation::ReduceScatter(b)) => {
                a != b && (a.operation, a.accumulator) == (b.operation, b.accumulator)
            }
            _ => false,
        };
        is_equal_otherwise && self.arrays == other.arrays && self.members == other.members
    }

    fn check_arrays(&self) -> Result<()> {
        let (name, count, members) = (self.name(), self.arrays.len(), self.members);
        let expected = match self.operation {
            Operation::AllToAllTuple => Some(members),
            Operation::RaggedAllToAll => Some(2),
            Operation::Barrier => Some(0),
            Operation::PermuteSlices(_) if !count.is_multiple_of(2) => Some(count + 1),
            _ => None,
        };
        if let Some(expected) = expected.filter(|&expected| expected != count) {
            return Err(Error::invalid_argument(format!("{name} needs {expected} operands, it has {count}")));
        }
        let bytes = |part: &Part| {
            // The size of a run must fit even if there are no runs.
            let factors = [part.inner, part.element_type.byte_width(), members, part.outer];
            factors.iter().try_fold(1, |bytes: usize, &factor| bytes.checked_mul(factor))
        };
        match self.arrays.iter().position(|part| bytes(part).is_none_or(|bytes| bytes > isize::MAX as usize)) {
            Some(i) => {
                Err(Error::resource_exhausted(format!("operand {i} of {name} is too large for {members} parts")))
            }
            None => Ok(()),
        }
    }

    fn check_pairs(&self) -> Result<()> {
        let name = self.name();
        let in_range = |rank: usize| rank < self.members;
        match &self.operation {
            Operation::Permute(pairs) => {
                for (i, &(from, to)) in pairs.iter().enumerate() {
                    let is_unique = pairs[..i].iter().all(|other| other.0 != from && other.1 != to);
                    if !in_range(from) || !in_range(to) || !is_unique {
                        let message =
                            format!("{name} among {} members has an invalid pair {from} -> {to}", self.members);
                        return Err(Error::invalid_argument(message));
                    }
                }
                Ok(())
            }
            Operation::PermuteSlices(pairs) => {
                let is_valid = |pair: &&SlicePair| {
                    let ranks = [pair.sizes.len(), pair.read_strides.len(), pair.write_strides.len()];
                    let types = [pair.array, pair.array + self.arrays.len() / 2].map(|i| self.arrays.get(i));
                    let same_type = matches!(types, [Some(a), Some(b)] if a.element_type == b.element_type);
                    in_range(pair.from) && in_range(pair.to) && same_type && ranks == [pair.sizes.len(); 3]
                };
                match pairs.iter().find(|pair| !is_valid(pair)) {
                    Some(pair) => Err(Error::invalid_argument(format!("{name} has an invalid pair {pair:?}"))),
                    None => Ok(()),
                }
            }
            Operation::RaggedAllToAll
                if self.arrays[0].inner != self.arrays[1].inner
                    || self.arrays[0].element_type != self.arrays[1].element_type =>
            {
                Err(Error::invalid_argument(format!("the rows of {name} differ in size or type")))
            }
            Operation::AllToAllTuple if self.arrays.iter().any(|part| *part != self.arrays[0]) => {
                Err(Error::invalid_argument(format!("the operands of {name} differ in size or type")))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for CollectiveSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 4;
        let part = |part: &Part| match part.outer {
            1 => format!("{}[{}]", part.element_type, part.inner),
            outer => format!("{}[{outer},{}]", part.element_type, part.inner),
        };
        let parts: Vec<String> = self.arrays.iter().take(SHOWN).map(part).collect();
        f.write_str(self.name())?;
        if let Operation::AllReduce(reduction) | Operation::ReduceScatter(reduction) = &self.operation {
            match reduction.operation {
                Some(operation) => write!(f, " ({operation:?} of {})", reduction.accumulator)?,
                None => write!(f, " (computation of {})", reduction.accumulator)?,
            }
        }
        if !parts.is_empty() {
            write!(f, " of {}", parts.join(", "))?;
        }
        match self.arrays.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            others => write!(f, " and {others} others"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_that_do_not_fit_the_operation_are_errors() {
        let part = |count| Part::whole(ElementType::F32, count);
        let error = |operation, arrays| CollectiveSpec::new(operation, arrays, 3).unwrap_err().to_string();
        assert_eq!(error(Operation::Barrier, vec![part(1)]), "barrier needs 0 operands, it has 1");
        assert_eq!(error(Operation::RaggedAllToAll, vec![part(1)]), "ragged-all-to-all needs 2 operands, it has 1");
        assert_eq!(error(Operation::AllToAllTuple, vec![part(1); 2]), "all-to-all needs 3 operands, it has 2");
        let rows = |inner, element_type| Part { element_type, outer: 2, inner };
        for other in [rows(4, ElementType::F32), rows(3, ElementType::S32)] {
            let text = error(Operation::RaggedAllToAll, vec![rows(3, ElementType::F32), other]);
            assert_eq!(text, "the rows of ragged-all-to-all differ in size or type");
        }
        let different = vec![part(1), part(1), part(2)];
        assert_eq!(error(Operation::AllToAllTuple, different), "the operands of all-to-all differ in size or type");
        let large = error(Operation::AllGather, vec![part(1), part(usize::MAX / 8)]);
        assert_eq!(large, "operand 1 of all-gather is too large for 3 parts");
    }

    #[test]
    fn pairs_name_each_member_once() {
        let error = |pairs| CollectiveSpec::new(Operation::Permute(pairs), vec![], 3).unwrap_err().to_string();
        for (pairs, invalid) in
            [(vec![(0, 1), (2, 1)], "2 -> 1"), (vec![(0, 1), (0, 2)], "0 -> 2"), (vec![(3, 0)], "3 -> 0")]
        {
            assert_eq!(error(pairs), format!("collective-permute among 3 members has an invalid pair {invalid}"));
        }
    }
}
