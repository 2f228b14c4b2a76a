//! Tensor descriptors of the DMA unit: arrays in memory with tiles and padding.

use xla_hlo::{ElementType, Error, Result};

use super::spec::{LANES, TILE_COLUMNS, TILE_ROWS};

/// Access of a program to a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads elements only.
    Read,
    /// Writes every element; may read elements that it has written.
    Write,
    /// Reads elements and writes some of them.
    Update,
}

/// Array in memory, row-major and tiled.
///
/// The two minor dimensions are split into tiles of [`TILE_ROWS`] by [`TILE_COLUMNS`] elements, a vector into tiles of
/// [`LANES`] elements; partial tiles are padded. Elements within a tile and tiles within the array are in row-major
/// order. A scalar has no tile and no padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorDescriptor {
    /// Access of the program to the tensor.
    pub access: Access,
    element_type: ElementType,
    dims: Vec<usize>,
    /// Distance of consecutive indices in elements, padding included, for all dimensions but the last two.
    outer_strides: Vec<usize>,
    /// Number of tiles along the last two dimensions.
    grid: [usize; 2],
    byte_size: usize,
}

impl TensorDescriptor {
    /// Creates the descriptor of an array; [`Error::ResourceExhausted`] if its size in bytes overflows.
    pub fn new(element_type: ElementType, dims: &[usize], access: Access) -> Result<TensorDescriptor> {
        let grid = match *dims {
            [] => [1, 1],
            [n] => [1, n.div_ceil(LANES)],
            [.., rows, columns] => [rows.div_ceil(TILE_ROWS), columns.div_ceil(TILE_COLUMNS)],
        };
        let (tile, width) = (if dims.is_empty() { 1 } else { LANES }, element_type.byte_width());
        let outer = &dims[..dims.len().saturating_sub(2)];
        let sizes = outer.iter().chain(&grid).chain([&tile, &width]);
        let is_empty = dims.contains(&0);
        let byte_size = sizes.copied().try_fold(usize::from(!is_empty), usize::checked_mul);
        let byte_size = byte_size.ok_or_else(|| {
            Error::resource_exhausted(format!("an array of {dims:?} elements is more than the device can address"))
        })?;
        let mut outer_strides = vec![0; outer.len()];
        if !is_empty {
            let mut stride = tile * grid[0] * grid[1];
            for (outer_stride, size) in outer_strides.iter_mut().zip(outer).rev() {
                *outer_stride = stride;
                stride *= size;
            }
        }
        Ok(TensorDescriptor { access, element_type, dims: dims.to_vec(), outer_strides, grid, byte_size })
    }

    /// Returns the element type.
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Returns the dimension sizes, slowest varying first.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Returns the number of elements, without padding.
    pub fn element_count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns the size in memory in bytes, padding included.
    pub fn byte_size(&self) -> usize {
        self.byte_size
    }

    /// Returns the byte offset of an element. There must be one coordinate per dimension, each within its bounds.
    pub fn offset(&self, coordinates: &[usize]) -> usize {
        coordinates.iter().enumerate().map(|(dim, &index)| self.offset_along(dim, index)).sum()
    }

    /// Returns the part of an element's byte offset that one coordinate, within its bounds, contributes. The parts of
    /// all coordinates add up to the offset.
    pub fn offset_along(&self, dim: usize, index: usize) -> usize {
        let elements = match (self.outer_strides.get(dim), self.dims.len() - dim) {
            (Some(stride), _) => index * stride,
            (None, 2) => index / TILE_ROWS * self.grid[1] * LANES + index % TILE_ROWS * TILE_COLUMNS,
            (None, _) if self.dims.len() == 1 => index,
            (None, _) => index / TILE_COLUMNS * LANES + index % TILE_COLUMNS,
        };
        elements * self.element_type.byte_width()
    }

    /// Returns the byte offset of the element with this linear index in row-major order; `None` if it is out of bounds.
    pub fn offset_of_linear(&self, place: usize) -> Option<usize> {
        if place >= self.element_count() {
            return None;
        }
        let (mut rest, mut offset) = (place, 0);
        for (dim, &size) in self.dims.iter().enumerate().rev() {
            offset += self.offset_along(dim, rest % size);
            rest /= size;
        }
        Some(offset)
    }

    /// Calls `f` for each run of elements that are consecutive both in row-major order and in memory.
    /// Arguments: index of the first element, its byte offset, and the number of elements.
    pub fn for_each_run(&self, mut f: impl FnMut(usize, usize, usize)) {
        let width = self.element_type.byte_width();
        let [ref outer @ .., rows, columns] = *self.dims else {
            return f(0, 0, self.element_count());
        };
        if self.byte_size == 0 {
            return;
        }
        for row in 0..outer.iter().product::<usize>() * rows {
            let tile_row = row / rows * self.grid[0] + row % rows / TILE_ROWS;
            let line = row % rows % TILE_ROWS;
            for column in (0..columns).step_by(TILE_COLUMNS) {
                let tile = tile_row * self.grid[1] + column / TILE_COLUMNS;
                let at = (tile * LANES + line * TILE_COLUMNS) * width;
                f(row * columns + column, at, TILE_COLUMNS.min(columns - column));
            }
        }
    }
}
