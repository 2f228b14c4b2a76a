//! Windows and their geometry: sizes of results and positions in the array, with padding and dilation.

use crate::Result;
use crate::ops::checks::{self, ensure};

/// Window along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowDim {
    /// Elements in the window.
    pub size: usize,
    /// Step between windows, at least 1.
    pub stride: usize,
    /// Padding in front; negative trims.
    pub pad_low: i64,
    /// Padding after the last element; negative trims.
    pub pad_high: i64,
    /// Step between elements of the window, at least 1 (`rhs_dilate`).
    pub window_dilation: usize,
    /// Step between elements of the array, at least 1 (`lhs_dilate`).
    pub base_dilation: usize,
    /// Whether the window runs backwards.
    pub reversal: bool,
}

/// A window over all (or all spatial) dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Window {
    /// One for each dimension.
    pub dims: Vec<WindowDim>,
}

/// `size` elements, `dilation` apart from each other, span this many positions; `None` when that overflows.
fn dilated(size: usize, dilation: usize) -> Option<i128> {
    match size {
        0 => Some(0),
        _ => (size as i128 - 1).checked_mul(dilation as i128)?.checked_add(1),
    }
}

impl WindowDim {
    /// A window of one element that visits each.
    pub const UNIT: WindowDim = WindowDim {
        size: 1,
        stride: 1,
        pad_low: 0,
        pad_high: 0,
        window_dilation: 1,
        base_dilation: 1,
        reversal: false,
    };

    /// Whether each position holds the element at that position and nothing else.
    pub fn is_unit(&self) -> bool {
        // Dilation and reversal make no difference to a window of one element.
        WindowDim { window_dilation: 1, reversal: false, ..*self } == WindowDim::UNIT
    }

    /// Number of positions of the window along a dimension of `base` elements: floor((dilated base + padding - dilated
    /// window) / stride) + 1, or 0 where the window does not fit.
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

    /// The place in a dimension of `base` elements of element `k` of the window at position `output`, or `None` where
    /// that is in the padding or between two elements.
    ///
    /// `output` must be less than [`WindowDim::output_size`] and `k` less than the window's size.
    pub fn base_index(&self, output: usize, k: usize, base: usize) -> Option<usize> {
        let k = if self.reversal { self.size - 1 - k } else { k };
        let place = self.begin(output) + k as i128 * self.window_dilation as i128;
        let step = self.base_dilation as i128;
        (place >= 0 && place % step == 0 && place / step < base as i128).then(|| (place / step) as usize)
    }

    /// The elements of a dimension of `base` elements that the window at position `output` holds, in its order.
    ///
    /// Takes time in the smaller of the window and the array, however much padding there is.
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

    /// Begin of the window at position `output`, in places of the dilated array without its padding.
    fn begin(&self, output: usize) -> i128 {
        output as i128 * self.stride as i128 - i128::from(self.pad_low)
    }

    /// The elements of a dimension of `base` elements that the window at position `output` holds, as a range; `None`
    /// where they need not lie side by side because the window is dilated.
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

/// A window that holds all elements up to its position along one dimension: reductions are running totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cumulative {
    /// The dimension.
    pub dimension: usize,
    /// Whether windows hold the elements from their position to the end.
    pub from_end: bool,
    /// Whether the reduction of a window is the reduction of the one it contains and one more step, for any combiner;
    /// else only for associative and commutative ones.
    pub in_order: bool,
}

impl Window {
    /// Whether the window grows by one element from each position to the next, along one dimension of an array of
    /// `base`.
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

    /// The window's dimensions for an array of that rank: what was written, or a single element.
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

    /// Number of positions of the window along each dimension of an array of `base`.
    pub fn output_dims(&self, base: &[usize]) -> Result<Vec<usize>> {
        let of_dim = |(d, (window, &size)): (usize, (WindowDim, &usize))| {
            window.output_size(size).map_err(|e| e.context(format_args!("dimension {d}")))
        };
        self.dims_for(base.len())?.into_iter().zip(base).enumerate().map(of_dim).collect()
    }
}
