//! Tensor descriptors of the DMA unit: an array in memory, tiles and padding included.

use xla_hlo::{ElementType, Error, Result};

use super::spec::{LANES, TILE_COLUMNS, TILE_ROWS};

/// A program's access to a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads only.
    Read,
    /// Stores every element; may load elements that it has stored.
    Write,
    /// Loads, and stores some of the elements.
    Update,
}

/// An array in memory: row major, in tiles.
///
/// The two minor dimensions lie in tiles of [`TILE_ROWS`] by [`TILE_COLUMNS`] elements, a vector in tiles of [`LANES`],
/// padded up to whole ones; elements within a tile and tiles within the array are in row-major order. A scalar lies as
/// it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorDescriptor {
    /// The program's access to it.
    pub access: Access,
    element_type: ElementType,
    dims: Vec<usize>,
    /// Tiles along the last two dimensions.
    grid: [usize; 2],
    byte_size: usize,
}

impl TensorDescriptor {
    /// The descriptor of an array; [`Error::ResourceExhausted`] if that has more bytes than can be addressed.
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
        Ok(TensorDescriptor { access, element_type, dims: dims.to_vec(), grid, byte_size })
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Sizes, slowest varying first.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Elements, padding not counted.
    pub fn element_count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Bytes in memory, padding included.
    pub fn byte_size(&self) -> usize {
        self.byte_size
    }

    /// The first byte of the element at those coordinates, which must be one for each dimension and inside.
    pub fn offset(&self, coordinates: &[usize]) -> usize {
        let element = match *coordinates {
            [] => 0,
            [i] => i,
            [ref outer @ .., row, column] => {
                let plane = outer.iter().zip(&self.dims).fold(0, |plane, (&i, &size)| plane * size + i);
                let tile = (plane * self.grid[0] + row / TILE_ROWS) * self.grid[1] + column / TILE_COLUMNS;
                tile * LANES + row % TILE_ROWS * TILE_COLUMNS + column % TILE_COLUMNS
            }
        };
        element * self.element_type.byte_width()
    }

    /// The first byte of the element at a place in row-major order; `None` if there is none.
    pub fn offset_of_linear(&self, place: usize) -> Option<usize> {
        if place >= self.element_count() {
            return None;
        }
        let (mut rest, mut coordinates) = (place, vec![0; self.dims.len()]);
        for (coordinate, &size) in coordinates.iter_mut().zip(&self.dims).rev() {
            *coordinate = rest % size;
            rest /= size;
        }
        Some(self.offset(&coordinates))
    }

    /// Calls `f` with each run of elements that is consecutive in row-major order and in memory: its first element, its
    /// first byte, and how many elements it has.
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
