//! Windows and their geometry: sizes of results and positions in the array, with padding and dilation.

use crate::Result;
use crate::ops::checks::{self, ensure};

/// Window along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowDim {
    /// Number of elements in the window.
    pub size: usize,
    /// Step between window positions, at least 1.
    pub stride: usize,
    /// Padding before the first element; negative values remove elements.
    pub pad_low: i64,
    /// Padding after the last element; negative values remove elements.
    pub pad_high: i64,
    /// Step between elements of the window, at least 1 (`rhs_dilate`).
    pub window_dilation: usize,
    /// Step between elements of the array, at least 1 (`lhs_dilate`).
    pub base_dilation: usize,
    /// Whether the elements of the window are in reverse order.
    pub reversal: bool,
}

/// A window over all dimensions or, for convolutions, all spatial dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Window {
    /// Window along each dimension.
    pub dims: Vec<WindowDim>,
}

/// Returns the number of positions from the first to the last of `size` elements at distance `dilation`; `None` on
/// overflow.
fn dilated(size: usize, dilation: usize) -> Option<i128> {
    match size {
        0 => Some(0),
        _ => (size as i128 - 1).checked_mul(dilation as i128)?.checked_add(1),
    }
}

impl WindowDim {
    /// A window of one element with stride 1.
    pub const UNIT: WindowDim = WindowDim {
        size: 1,
        stride: 1,
        pad_low: 0,
        pad_high: 0,
        window_dilation: 1,
        base_dilation: 1,
        reversal: false,
    };

    /// Whether each position holds exactly the element at that position.
    pub fn is_unit(&self) -> bool {
        // Dilation and reversal have no effect on a window of one element.
        WindowDim { window_dilation: 1, reversal: false, ..*self } == WindowDim::UNIT
    }

    /// Returns the number of window positions along a dimension of `base` elements: floor((dilated base + padding -
    /// dilated window) / stride) + 1, or 0 if the window does not fit.
    pub fn output_size(&self, base: usize) -> Result<usize> {
        ensure!(self.size > 0, "the window has size 0 along a dimension; it must be at least 1");
        ensure!(self.stride > 0, "the window has stride 0 along a dimension; it must be at least 1");
        ensure!(self.window_dilation > 0, "the window has rhs_dilate 0 along a dimension; it must be at least 1");
        ensure!(self.base_dilation > 0, "the window has lhs_dilate 0 along a dimension; it must be at least 1");
        let room = || {
            let base = dilated(base, self.base_dilation)?;
            let padded = base.checked_add(i128::from(self.pad_low) + i128::from(self.pad_high))?;
            padded.checked_sub(dilated(self.size, self.window_dilation)?)
        };
        let positions = room().map(|room| if room < 0 { 0 } else { room / self.stride as i128 + 1 });
        checks::size("the result's dimension", positions)
    }

    /// Returns the index of element `k` of the window at position `output`, in a dimension of `base` elements. `None`
    /// if the element is in the padding or in a dilation hole.
    ///
    /// `output` must be less than [`WindowDim::output_size`], and `k` less than the window's size.
    pub fn base_index(&self, output: usize, k: usize, base: usize) -> Option<usize> {
        let k = if self.reversal { self.size - 1 - k } else { k };
        let place = self.begin(output) + k as i128 * self.window_dilation as i128;
        let step = self.base_dilation as i128;
        (place >= 0 && place % step == 0 && place / step < base as i128).then(|| (place / step) as usize)
    }

    /// Returns the indices of the elements in the window at position `output`, in the order of the window, along a
    /// dimension of `base` elements.
    ///
    /// Takes time proportional to the smaller of window and array, independent of the padding.
    pub fn base_indices(&self, output: usize, base: usize) -> Vec<usize> {
        if self.size <= base {
            return (0..self.size).filter_map(|k| self.base_index(output, k, base)).collect();
        }
        let (begin, step) = (self.begin(output), self.window_dilation as i128);
        let is_held = |i: &usize| {
            let place = *i as i128 * self.base_dilation as i128 - begin;
            place >= 0 && place % step == 0 && place / step < self.size as i128
        };
        let mut indices: Vec<usize> = (0..base).filter(is_held).collect();
        if self.reversal {
            indices.reverse();
        }
        indices
    }

    /// Returns the position of the first element of window `output`, in the coordinates of the dilated array without
    /// padding.
    fn begin(&self, output: usize) -> i128 {
        output as i128 * self.stride as i128 - i128::from(self.pad_low)
    }

    /// Returns the range of elements in the window at position `output`, along a dimension of `base` elements. `None`
    /// if the elements may not be contiguous because the window is dilated.
    pub fn base_range(&self, output: usize, base: usize) -> Option<std::ops::Range<usize>> {
        if self.window_dilation != 1 && self.size > 1 {
            return None;
        }
        let begin = self.begin(output);
        // The first element of the array at or after a position.
        let first_from = |place: i128| {
            (place.max(0).cast_unsigned().div_ceil(self.base_dilation as u128)).min(base as u128) as usize
        };
        Some(first_from(begin)..first_from(begin + self.size as i128))
    }
}

/// A window that contains all elements up to its position along one dimension (or from its position to the end), so
/// that its reductions are cumulative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cumulative {
    /// The cumulative dimension.
    pub dimension: usize,
    /// Whether windows contain the elements from their position to the end.
    pub from_end: bool,
    /// Whether the reduction of a window equals one more combiner step on the reduction of the next smaller window, for
    /// any combiner. Otherwise this holds only for associative and commutative combiners.
    pub in_order: bool,
}

impl Window {
    /// Returns the cumulative dimension if the window grows by one element from each position to the next along exactly
    /// one dimension of an array of sizes `base`.
    pub fn cumulative(&self, base: &[usize]) -> Option<Cumulative> {
        let mut others = (0..self.dims.len()).filter(|&d| !self.dims[d].is_unit());
        let (dimension, None) = (others.next()?, others.next()) else { return None };
        let (w, size) = (self.dims[dimension], *base.get(dimension)?);
        let from_end = match (w.pad_low, w.pad_high) {
            (0, high) if high > 0 => true,
            (low, 0) if low > 0 => false,
            _ => return None,
        };
        let whole = WindowDim { size, pad_low: 0, pad_high: 0, reversal: false, ..WindowDim::UNIT };
        let grows = WindowDim { pad_low: 0, pad_high: 0, reversal: false, ..w } == whole
            && usize::try_from(w.pad_low + w.pad_high).is_ok_and(|pad| pad + 1 == size);
        grows.then_some(Cumulative { dimension, from_end, in_order: from_end == w.reversal })
    }

    /// Returns the window's dimensions for an array of rank `rank`. A window without dimensions has one element.
    pub fn dims_for(&self, rank: usize) -> Result<Vec<WindowDim>> {
        if self.dims.is_empty() {
            return Ok(vec![WindowDim::UNIT; rank]);
        }
        ensure!(
            self.dims.len() == rank,
            "the window has {} dimensions, but the array has {rank}; there must be one for each",
            self.dims.len()
        );
        Ok(self.dims.clone())
    }

    /// Returns the number of window positions along each dimension of an array of sizes `base`.
    pub fn output_dims(&self, base: &[usize]) -> Result<Vec<usize>> {
        let of_dim = |(d, (window, &size)): (usize, (WindowDim, &usize))| {
            window.output_size(size).map_err(|e| e.context(format_args!("dimension {d}")))
        };
        self.dims_for(base.len())?.into_iter().zip(base).enumerate().map(of_dim).collect()
    }
}
