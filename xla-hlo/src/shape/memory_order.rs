//! Steps from an array's logical order to its memory order: transposes, tiles and padding.

use super::{ADDRESSABLE_BYTES, ArrayShape, Layout, Tile, TileDim};
use crate::{Error, Result};

/// Step of the conversion between the row-major order of an array and its order in memory, in either direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryStep {
    /// Kind of movement.
    pub kind: MemoryStepKind,
    /// Dimensions before the step.
    pub from: Vec<usize>,
    /// Dimensions after the step.
    pub to: Vec<usize>,
}

/// Kind of movement of a [`MemoryStep`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemoryStepKind {
    /// Dimension `i` of the result is dimension `permutation[i]` of the operand.
    Transpose(Vec<usize>),
    /// Elements keep their row-major order; the dimensions change.
    Reshape,
    /// Each dimension is padded at its end.
    Pad,
    /// The padding at the end of each dimension is removed.
    Slice,
}

impl MemoryStep {
    /// Returns the inverse step. Contents of padding are lost.
    #[must_use]
    pub fn inverse(self) -> MemoryStep {
        let kind = match self.kind {
            MemoryStepKind::Transpose(permutation) => {
                let mut inverse = vec![0; permutation.len()];
                permutation.iter().enumerate().for_each(|(i, &d)| inverse[d] = i);
                MemoryStepKind::Transpose(inverse)
            }
            MemoryStepKind::Reshape => MemoryStepKind::Reshape,
            MemoryStepKind::Pad => MemoryStepKind::Slice,
            MemoryStepKind::Slice => MemoryStepKind::Pad,
        };
        MemoryStep { kind, from: self.to, to: self.from }
    }
}

impl ArrayShape {
    /// Returns the steps from the row-major order of the array's elements to the memory order of its layout; none for a
    /// plain row-major array. The dimensions in memory are those after the last step, row-major, padding included.
    ///
    /// Fails with [`Error::InvalidArgument`] for a layout that does not fit the shape, and with
    /// [`Error::ResourceExhausted`] if memory cannot hold the padded array.
    pub fn memory_steps(&self) -> Result<Vec<MemoryStep>> {
        let Some(layout) = self.layout() else { return Ok(Vec::new()) };
        let mut steps = Steps { dims: self.dims().to_vec(), steps: Vec::new() };
        steps.add(layout).ok_or_else(|| Error::invalid_argument(format!("the layout of {self} does not fit it")))?;
        if count(&steps.dims).saturating_mul(self.element_type().byte_width()) > ADDRESSABLE_BYTES {
            return Err(Error::resource_exhausted(format!("{self} takes more memory than can be addressed")));
        }
        Ok(steps.steps)
    }

    /// Returns the number of elements of the array in memory, padding included. Fails as [`ArrayShape::memory_steps`]
    /// does.
    pub fn memory_element_count(&self) -> Result<usize> {
        Ok(count(self.memory_steps()?.last().map_or(self.dims(), |step| &step.to)))
    }
}

/// Returns the number of elements of an array of those dimensions; saturates on overflow.
fn count(dims: &[usize]) -> usize {
    if dims.contains(&0) { 0 } else { dims.iter().copied().fold(1, usize::saturating_mul) }
}

struct Steps {
    dims: Vec<usize>,
    steps: Vec<MemoryStep>,
}

impl Steps {
    /// Appends the steps of a layout; `None` if it does not fit the dimensions.
    fn add(&mut self, layout: &Layout) -> Option<()> {
        if !layout.is_permutation_of(self.dims.len()) {
            return None;
        }
        self.transpose(layout.minor_to_major.iter().rev().copied().collect());
        layout.tiles.iter().try_for_each(|tile| self.tile(tile))?;
        let alignment = usize::try_from(layout.tail_padding_alignment).unwrap_or(usize::MAX);
        if alignment > 1 {
            let elements = count(&self.dims);
            self.reshape(vec![elements]);
            self.pad(vec![up_to_multiple(elements, alignment)]);
        }
        Some(())
    }

    /// Splits the minor dimensions into a grid of tiles and the positions within a tile, which become the most minor
    /// dimensions.
    fn tile(&mut self, Tile(sizes): &Tile) -> Option<()> {
        let missing = sizes.len().saturating_sub(self.dims.len());
        let dims = [vec![1; missing], self.dims.clone()].concat();
        let (outer, tiled) = dims.split_at(dims.len() - sizes.len());
        let (mut merged, mut of_tile, mut run) = (outer.to_vec(), Vec::new(), 1usize);
        for (size, &dim) in sizes.iter().zip(tiled) {
            run = run.saturating_mul(dim);
            if let TileDim::Size(size) = size {
                merged.push(std::mem::replace(&mut run, 1));
                of_tile.push(usize::try_from(*size).unwrap_or(usize::MAX).max(1));
            }
        }
        // The most minor dimension has no successor to be merged with.
        if sizes.last() == Some(&TileDim::Combine) {
            return None;
        }
        let (outer, count) = (outer.len(), of_tile.len());
        let padded =
            |(d, &size): (usize, &usize)| if d < outer { size } else { up_to_multiple(size, of_tile[d - outer]) };
        let padded: Vec<usize> = merged.iter().enumerate().map(padded).collect();
        let split = padded[outer..].iter().zip(&of_tile).flat_map(|(&size, &tile)| [size / tile, tile]);
        let split = padded[..outer].iter().copied().chain(split).collect();
        self.reshape(merged);
        self.pad(padded);
        self.reshape(split);
        let places = |first: usize| (0..count).map(move |i| outer + 2 * i + first);
        self.transpose((0..outer).chain(places(0)).chain(places(1)).collect());
        Some(())
    }

    fn transpose(&mut self, permutation: Vec<usize>) {
        let to = permutation.iter().map(|&d| self.dims[d]).collect();
        if !permutation.is_sorted() {
            self.push(MemoryStepKind::Transpose(permutation), to);
        }
    }

    fn reshape(&mut self, to: Vec<usize>) {
        if to != self.dims {
            self.push(MemoryStepKind::Reshape, to);
        }
    }

    fn pad(&mut self, to: Vec<usize>) {
        if to != self.dims {
            self.push(MemoryStepKind::Pad, to);
        }
    }

    fn push(&mut self, kind: MemoryStepKind, to: Vec<usize>) {
        let from = std::mem::replace(&mut self.dims, to.clone());
        self.steps.push(MemoryStep { kind, from, to });
    }
}

/// Rounds `size` up to a multiple of `of`; saturates to a number that exceeds every memory.
fn up_to_multiple(size: usize, of: usize) -> usize {
    size.div_ceil(of).saturating_mul(of)
}
