//! Ragged dots: contractions over groups of rows, columns or batches.

mod eval;
mod rules;

use super::{DotDims, Precision};
use crate::{Error, Result};

/// `ragged-dot`: contraction of two arrays, operands 0 and 1, in which one dimension of the left operand is partitioned
/// into consecutive groups. Operand 2 contains the group sizes.
///
/// The role of the ragged dimension decides how groups are used, see [`RaggedMode`]. Group sizes are integers of shape
/// `[groups]`. If sizes differ by the index along dimensions outside of the ragged one ([`RaggedDot::prefix`]), these
/// dimensions precede `groups`. Negative sizes count as 0, and elements after the last group belong to no group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RaggedDot {
    /// Roles of the dimensions.
    pub dims: DotDims,
    /// The dimension of the left operand that is partitioned into groups.
    pub ragged_dimension: usize,
    /// The dimension of the right operand that enumerates groups, if there is one.
    pub group_dimension: Option<usize>,
    /// Precision of each of the first two operands; empty for the default.
    pub precision: Vec<Precision>,
}

/// Role of the ragged dimension of a ragged dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RaggedMode {
    /// Free dimension (M): rows of group g are multiplied by matrix g of the right operand; rows in no group yield
    /// zeros.
    Rows,
    /// Contracting dimension (K): the result has an additional first dimension of groups, and each group is summed
    /// separately.
    Contracted,
    /// Batch dimension: the operation is a plain dot, and the groups have no effect.
    Batch,
}

impl RaggedDot {
    /// Returns the role of the ragged dimension.
    pub fn mode(&self) -> RaggedMode {
        if self.dims.lhs_batch.contains(&self.ragged_dimension) {
            RaggedMode::Batch
        } else if self.dims.lhs_contracting.contains(&self.ragged_dimension) {
            RaggedMode::Contracted
        } else {
            RaggedMode::Rows
        }
    }

    /// Returns the dimensions of the left operand, of rank `lhs_rank`, along which group sizes may vary, in order.
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

    /// Creates a ragged dot from lists of dimensions, the form of text and messages.
    pub(in crate::ops::dot) fn with_lists(
        dims: DotDims,
        ragged: &[usize],
        groups: &[usize],
        precision: Vec<Precision>,
    ) -> Result<RaggedDot> {
        let (&[ragged_dimension], [] | [_]) = (ragged, groups) else {
            return Err(Error::unimplemented(format!(
                "ragged-dot is implemented for one ragged and at most one group dimension, not for {ragged:?} and {groups:?}"
            )));
        };
        Ok(RaggedDot { dims, ragged_dimension, group_dimension: groups.first().copied(), precision })
    }
}
