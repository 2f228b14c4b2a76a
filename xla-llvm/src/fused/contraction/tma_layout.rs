//! TMA layouts of dot operands: few dimensions with constant strides, so that TMA can copy boxes.

use std::ops::Range;

use xla_hlo::ArrayShape;
use xla_hlo::ops::DotOperandDims;

use crate::fused::core::address::strides_of;
use crate::simt::{MAP_ALIGNMENT, MOST_MAP_RANK};

/// Exclusive bound of the number of elements along a dimension: coordinates of boxes are signed 32-bit integers.
const EXTENT_BOUND: u64 = 1 << 31;

/// TMA layout of an operand; the first dimension is contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TmaLayout {
    pub dims: Vec<TmaDim>,
    /// Size of an element in bytes.
    pub bytes: u64,
}

/// Dimension of a TMA layout: neighbouring array dimensions merged into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TmaDim {
    pub role: TmaRole,
    pub extent: u64,
    /// Stride in elements.
    pub stride: u64,
}

/// Role of a dimension in the dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TmaRole {
    /// M of the left operand, or N of the right one.
    Free,
    /// K.
    Sum,
    /// Batch dimensions with these numbers.
    Batch(Range<usize>),
}

impl TmaLayout {
    /// Returns the TMA layout of an operand; `None` unless M (or N) and K have constant strides and one of them is
    /// contiguous, the rank is within limits, and rows begin at multiples of [`MAP_ALIGNMENT`].
    pub fn new(array: &ArrayShape, dims: &DotOperandDims<'_>) -> Option<TmaLayout> {
        let strides = strides_of(array);
        let axes = |dims: &[usize]| -> Vec<(u64, u64)> {
            dims.iter().map(|&d| (array.dims()[d] as u64, strides[d] as u64)).collect()
        };
        let one = |dims: &[usize], role: TmaRole| {
            let [dim] = <[_; 1]>::try_from(merged(&axes(dims))).ok()?;
            Some(TmaDim { role, extent: dim.1, stride: dim.2 })
        };
        let mut all = vec![one(&dims.free, TmaRole::Free)?, one(dims.contracting, TmaRole::Sum)?];
        let batch = merged(&axes(dims.batch)).into_iter();
        all.extend(batch.map(|(dims, extent, stride)| TmaDim { role: TmaRole::Batch(dims), extent, stride }));
        // Each stride is now a multiple of the one before, as the driver requires.
        all.sort_by_key(|dim| dim.stride);
        let bytes = array.element_type().byte_width() as u64;
        let fits = |dim: &TmaDim| {
            let apart = dim.stride * bytes;
            dim.extent < EXTENT_BOUND && apart < 1 << 40 && apart.is_multiple_of(MAP_ALIGNMENT)
        };
        let (first, others) = all.split_first()?;
        let is_along = matches!(first.role, TmaRole::Free | TmaRole::Sum);
        let lies = is_along && first.stride == 1 && first.extent < EXTENT_BOUND && others.iter().all(fits);
        (lies && all.len() <= MOST_MAP_RANK).then_some(TmaLayout { dims: all, bytes })
    }

    /// Whether rows are contiguous along K.
    pub fn along_sum(&self) -> bool {
        self.dims[0].role == TmaRole::Sum
    }
}

/// Merges dimensions, given as (extent, stride) with the outermost first, as far as possible. Returns the merged
/// dimensions with the innermost first: the numbers of the original dimensions, the extent, and the stride.
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
