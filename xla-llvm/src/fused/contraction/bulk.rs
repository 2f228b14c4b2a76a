//! Operands of dots as arrays that boxes can be copied from: few dimensions, evenly apart.

use std::ops::Range;

use xla_hlo::ArrayShape;
use xla_hlo::ops::DotOperandDims;

use crate::fused::core::address::strides_of;
use crate::simt::{MAP_ALIGNMENT, MOST_MAP_RANK};

/// Bound of numbers of elements along a dimension: coordinates of boxes are signed integers of 32 bits.
const EXTENT_BOUND: u64 = 1 << 31;

/// An operand's dimensions, the first of which lies together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BulkLayout {
    pub dims: Vec<BulkDim>,
    /// Bytes of an element.
    pub bytes: u64,
}

/// Neighbouring dimensions that are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BulkDim {
    pub role: BulkRole,
    pub extent: u64,
    /// Elements from one to the next.
    pub stride: u64,
}

/// The meaning of a dimension for the dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BulkRole {
    /// M, or N.
    Free,
    /// K.
    Sum,
    /// Batch dimensions of these numbers.
    Batch(Range<usize>),
}

impl BulkLayout {
    /// That of an operand. `None` where M (or N) or K are not evenly apart, neither of them lies together, or there are
    /// too many dimensions, and where rows do not begin at multiples of [`MAP_ALIGNMENT`].
    pub fn new(array: &ArrayShape, dims: &DotOperandDims<'_>) -> Option<BulkLayout> {
        let strides = strides_of(array);
        let axes = |dims: &[usize]| -> Vec<(u64, u64)> {
            dims.iter().map(|&d| (array.dims()[d] as u64, strides[d] as u64)).collect()
        };
        let one = |dims: &[usize], role: BulkRole| {
            let [dim] = <[_; 1]>::try_from(merged(&axes(dims))).ok()?;
            Some(BulkDim { role, extent: dim.1, stride: dim.2 })
        };
        let mut all = vec![one(&dims.free, BulkRole::Free)?, one(dims.contracting, BulkRole::Sum)?];
        let batch = merged(&axes(dims.batch)).into_iter();
        all.extend(batch.map(|(dims, extent, stride)| BulkDim { role: BulkRole::Batch(dims), extent, stride }));
        // Each stride is then a multiple of the one before, as drivers ask for.
        all.sort_by_key(|dim| dim.stride);
        let bytes = array.element_type().byte_width() as u64;
        let fits = |dim: &BulkDim| {
            let apart = dim.stride * bytes;
            dim.extent < EXTENT_BOUND && apart < 1 << 40 && apart.is_multiple_of(MAP_ALIGNMENT)
        };
        let (first, others) = all.split_first()?;
        let is_along = matches!(first.role, BulkRole::Free | BulkRole::Sum);
        let lies = is_along && first.stride == 1 && first.extent < EXTENT_BOUND && others.iter().all(fits);
        (lies && all.len() <= MOST_MAP_RANK).then_some(BulkLayout { dims: all, bytes })
    }

    /// Whether rows go along K.
    pub fn along_sum(&self) -> bool {
        self.dims[0].role == BulkRole::Sum
    }
}

/// Dimensions, of extents and strides, outer ones first, as few as there can be, the innermost first: of each which
/// ones, the extent, and the stride.
fn merged(axes: &[(u64, u64)]) -> Vec<(Range<usize>, u64, u64)> {
    let mut all: Vec<(Range<usize>, u64, u64)> = Vec::new();
    for (d, &(extent, stride)) in axes.iter().enumerate().rev().filter(|(_, (extent, _))| *extent != 1) {
        match all.last_mut() {
            Some((dims, inner, apart)) if stride == *inner * *apart => {
                *dims = d..dims.end;
                *inner *= extent;
            }
            _ => all.push((d..d + 1, extent, stride)),
        }
    }
    all
}
