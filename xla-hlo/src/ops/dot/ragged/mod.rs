//! Ragged dots: contractions over groups of rows, columns or batches.

mod eval;
mod rules;
#[cfg(test)]
mod tests;

use super::{DotDims, Precision};
use crate::{Error, Result};

/// Contraction of two arrays, operands 0 and 1, where one dimension of the left one falls into groups, one after the
/// other from its beginning, of the sizes in operand 2.
///
/// The role of the dimension decides what the groups are for: see [`RaggedMode`]. Group sizes are integers, `[groups]`
/// or, for other sizes at each index of the dimensions outside of the ragged one, those dimensions and then `groups`.
/// Negative sizes count as 0, and elements beyond the last group belong to none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RaggedDot {
    /// Roles of the dimensions.
    pub dims: DotDims,
    /// The dimension of the left operand that falls into groups.
    pub ragged_dimension: usize,
    /// The dimension of the right operand that counts groups, where there is one.
    pub group_dimension: Option<usize>,
    /// One for each of the first two operands, or empty for the default.
    pub precision: Vec<Precision>,
}

/// Role of the ragged dimension of a ragged dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RaggedMode {
    /// A free one: rows of group g are multiplied with the matrix g of the right operand; rows of no group give zeros.
    Rows,
    /// A contracted one: the result has a first dimension of groups, each summed over its own elements.
    Contracted,
    /// A batch one: this is a dot, whatever the groups are.
    Batch,
}

impl RaggedDot {
    /// Role of the ragged dimension.
    pub fn mode(&self) -> RaggedMode {
        if self.dims.lhs_batch.contains(&self.ragged_dimension) {
            RaggedMode::Batch
        } else if self.dims.lhs_contracting.contains(&self.ragged_dimension) {
            RaggedMode::Contracted
        } else {
            RaggedMode::Rows
        }
    }

    /// Dimensions of the left operand, of that rank, for which there may be group sizes of their own, in their order.
    pub fn prefix(&self, lhs_rank: usize) -> Vec<usize> {
        let outside = |dims: &[usize]| -> Vec<usize> {
            dims.iter().copied().take_while(|&d| d != self.ragged_dimension).collect()
        };
        let dims = &self.dims;
        match self.mode() {
            RaggedMode::Batch => outside(&dims.lhs_batch),
            RaggedMode::Contracted => [dims.lhs_batch.clone(), outside(&dims.lhs_contracting)].concat(),
            RaggedMode::Rows => {
                let free = dims.lhs(lhs_rank).free;
                [dims.lhs_batch.clone(), outside(&free)].concat()
            }
        }
    }

    /// From lists of dimensions, as text and messages have them.
    pub(in crate::ops::dot) fn with_lists(
        dims: DotDims,
        ragged: &[usize],
        groups: &[usize],
        precision: Vec<Precision>,
    ) -> Result<RaggedDot> {
        let (&[ragged_dimension], [] | [_]) = (ragged, groups) else {
            return Err(Error::unimplemented(format!(
                "ragged-dot with one ragged and at most one group dimension is implemented; there are {ragged:?} and {groups:?}"
            )));
        };
        Ok(RaggedDot { dims, ragged_dimension, group_dimension: groups.first().copied(), precision })
    }
}
