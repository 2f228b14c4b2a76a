//! Positions of a window over an array, and the elements inside the window at each position.

use std::ops::Range;

use super::{Window, WindowDim};
use crate::{IndexIter, Literal, Result, linear_index};

/// A window that slides over an array.
pub(super) struct Windows<'a> {
    pub(super) dims: Vec<WindowDim>,
    /// Sizes of the array.
    pub(super) base: &'a [usize],
    /// Number of positions along each dimension.
    pub(super) output: Vec<usize>,
}

impl<'a> Windows<'a> {
    pub(super) fn new(window: &Window, array: &'a Literal, output: &[usize]) -> Result<Windows<'a>> {
        let base = array.array_shape().dims();
        Ok(Windows { dims: window.dims_for(base.len())?, base, output: output.to_vec() })
    }

    /// Visits all windows in row-major order; passes the row-major index of each.
    pub(super) fn for_each(&self, f: impl FnMut(usize, &WindowElements<'_>) -> Result<()>) -> Result<()> {
        // Saturates only if another dimension has size 0.
        self.for_each_of(0..self.output.iter().fold(1, |n, &d| n.saturating_mul(d)), f)
    }

    /// Visits the windows with these row-major indices.
    pub(super) fn for_each_of(
        &self,
        numbers: Range<usize>,
        mut f: impl FnMut(usize, &WindowElements<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut outputs = IndexIter::starting_at(&self.output, numbers.start);
        for i in numbers {
            let Some(index) = outputs.next_index() else { break };
            let held = self.dims.iter().zip(index).zip(self.base);
            let held = held.map(|((dim, &output), &base)| dim.base_indices(output, base)).collect();
            f(i, &WindowElements { base: self.base, held })?;
        }
        Ok(())
    }
}

/// Elements of an array inside one window.
pub(super) struct WindowElements<'a> {
    base: &'a [usize],
    /// Indices of the elements along each dimension.
    held: Vec<Vec<usize>>,
}

impl WindowElements<'_> {
    /// Visits the elements in the window's row-major order; passes the row-major index of each in the array.
    pub(super) fn for_each(&self, mut f: impl FnMut(usize) -> Result<()>) -> Result<()> {
        let sizes: Vec<usize> = self.held.iter().map(Vec::len).collect();
        let mut index = vec![0; sizes.len()];
        let mut places = IndexIter::new(&sizes);
        while let Some(place) = places.next_index() {
            for ((i, held), &k) in index.iter_mut().zip(&self.held).zip(place) {
                *i = held[k];
            }
            f(linear_index(self.base, &index))?;
        }
        Ok(())
    }
}
