//! Dimension numbers of a dot: batch, free (M, N) and contracting (K) dimensions of each operand.

use crate::text::{AttributeReader, AttributeWriter};
use crate::{ArrayShape, Result};

/// Roles of the dimensions of a dot's operands: batch, contracting, free.
///
/// The result has the batch dimensions, then the free dimensions of the left operand, then the free dimensions of the
/// right operand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DotDims {
    /// Batch dimensions of the left operand, paired by position with the right operand's.
    pub lhs_batch: Vec<usize>,
    /// Batch dimensions of the right operand.
    pub rhs_batch: Vec<usize>,
    /// Contracting dimensions (K) of the left operand, paired by position with the right operand's.
    pub lhs_contracting: Vec<usize>,
    /// Contracting dimensions (K) of the right operand.
    pub rhs_contracting: Vec<usize>,
}

/// Dimensions of one operand of a dot, by role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotOperandDims<'a> {
    /// Batch dimensions, in the order of the result.
    pub batch: &'a [usize],
    /// Free dimensions, ascending, as in the result: M of the left operand, N of the right.
    pub free: Vec<usize>,
    /// Contracting dimensions, K, paired by position with the other operand's.
    pub contracting: &'a [usize],
}

impl DotDims {
    /// Returns the dimensions of the left operand, whose rank is `rank`.
    pub fn lhs(&self, rank: usize) -> DotOperandDims<'_> {
        DotOperandDims::new(rank, &self.lhs_batch, &self.lhs_contracting)
    }

    /// Returns the dimensions of the right operand, whose rank is `rank`.
    pub fn rhs(&self, rank: usize) -> DotOperandDims<'_> {
        DotOperandDims::new(rank, &self.rhs_batch, &self.rhs_contracting)
    }

    /// Returns the dimensions of both operands, left first.
    pub fn operands(&self, ranks: [usize; 2]) -> [DotOperandDims<'_>; 2] {
        [self.lhs(ranks[0]), self.rhs(ranks[1])]
    }

    /// Returns K, the number of multiplications for each element of the result: the product of the sizes of `lhs` along
    /// the contracting dimensions. Saturates.
    pub fn contracted_elements(&self, lhs: &ArrayShape) -> usize {
        self.lhs_contracting.iter().map(|&d| lhs.dims()[d]).fold(1, usize::saturating_mul)
    }

    pub(super) fn read(r: &mut AttributeReader<'_>) -> Result<DotDims> {
        Ok(DotDims {
            lhs_batch: r.optional("lhs_batch_dims")?.unwrap_or_default(),
            lhs_contracting: r.optional("lhs_contracting_dims")?.unwrap_or_default(),
            rhs_batch: r.optional("rhs_batch_dims")?.unwrap_or_default(),
            rhs_contracting: r.optional("rhs_contracting_dims")?.unwrap_or_default(),
        })
    }

    pub(super) fn write(&self, w: &mut AttributeWriter<'_>) {
        let batched = !self.lhs_batch.is_empty() || !self.rhs_batch.is_empty();
        for (name, list, shown) in [
            ("lhs_batch_dims", &self.lhs_batch, batched),
            ("lhs_contracting_dims", &self.lhs_contracting, true),
            ("rhs_batch_dims", &self.rhs_batch, batched),
            ("rhs_contracting_dims", &self.rhs_contracting, true),
        ] {
            if shown {
                w.attribute(name, list);
            }
        }
    }
}

impl<'a> DotOperandDims<'a> {
    fn new(rank: usize, batch: &'a [usize], contracting: &'a [usize]) -> DotOperandDims<'a> {
        let free = (0..rank).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect();
        DotOperandDims { batch, free, contracting }
    }

    /// Returns the permutation into batch, free and contracting dimensions, in this order.
    pub fn permutation(&self) -> Vec<usize> {
        [self.batch, &self.free, self.contracting].concat()
    }
}
