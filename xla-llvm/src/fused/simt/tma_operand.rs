//! Tiles of a dot's operand that TMA copies into shared memory in the layout of `wgmma`.

use inkwell::values::PointerValue;
use xla_hlo::{Error, Result};

use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::contraction::tma_layout::{TmaLayout, TmaRole};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, position, row_major_strides};
use crate::lanes::{Lanes, Scalar};
use crate::mma::{SharedFactor, SharedForm};
use crate::simt::{Arrival, MOST_BOX_EXTENT, Swizzle, TensorMap, TmaSource};

/// Rows (or columns) and steps of K of a tile, and their layout in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TmaTile {
    /// Number of rows (or columns), and of steps of K.
    extents: [u64; 2],
    pub form: SharedForm,
    /// Size of an element in bytes.
    bytes: u64,
}

impl TmaTile {
    /// Returns the tile with `free` rows (or columns) and `sum` steps of K. `None` if no layout supports it.
    pub fn new(layout: &TmaLayout, free: u64, sum: u64) -> Option<TmaTile> {
        let along_sum = layout.along_sum();
        let (row, rows) = if along_sum { (sum, free) } else { (free, sum) };
        let swizzle = Swizzle::of_rows(row * layout.bytes)?;
        let form = SharedForm { swizzle, rows, along_sum };
        let fits = rows.is_multiple_of(8) && rows <= MOST_BOX_EXTENT && layout.bytes == 2;
        fits.then_some(TmaTile { extents: [free, sum], form, bytes: layout.bytes })
    }

    /// Returns the size of the tile in shared memory, in bytes.
    pub fn all_bytes(self) -> u64 {
        self.extents[0] * self.extents[1] * self.bytes
    }

    /// Returns the number of TMA boxes of the tile.
    fn blocks(self) -> u64 {
        self.all_bytes() / self.form.block_bytes()
    }

    /// Returns a tile in shared memory as an operand of `wgmma`.
    pub fn factor<'e, 'ctx>(self, array: PointerValue<'ctx>, at: Lanes<'e, 'ctx>) -> SharedFactor<'e, 'ctx> {
        SharedFactor { form: self.form, array, at }
    }

    fn map(self, layout: &TmaLayout, array: u32) -> TensorMap {
        let elements = (self.form.swizzle.bytes() / self.bytes) as u32;
        let box_extent = |(d, role): (usize, &TmaRole)| match role {
            _ if d == 0 => elements,
            TmaRole::Free | TmaRole::Sum => self.form.rows as u32,
            TmaRole::Batch(_) => 1,
        };
        TensorMap {
            array,
            element_bytes: self.bytes as u32,
            extents: layout.dims.iter().map(|dim| dim.extent).collect(),
            strides: layout.dims.iter().skip(1).map(|dim| dim.stride * self.bytes).collect(),
            box_extents: layout.dims.iter().map(|dim| &dim.role).enumerate().map(box_extent).collect(),
            swizzle: self.form.swizzle,
        }
    }
}

/// Operand in global memory, the source of tiles that TMA copies.
pub(crate) struct TmaOperand<'e, 'ctx> {
    pub tile: TmaTile,
    source: TmaSource<'ctx>,
    /// Role of each dimension of the tensor map; for batch dimensions, the coordinate.
    coordinates: Vec<Coordinate<'e, 'ctx>>,
}

enum Coordinate<'e, 'ctx> {
    Free,
    Sum,
    Known(Lanes<'e, 'ctx>),
}

impl<'e, 'ctx> TmaOperand<'e, 'ctx> {
    /// Returns the operand on a side of a matmul, at an index of the batch.
    pub fn new<'m>(
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (matmul, side): (&Matmul<'m>, MatmulSide),
        tile: TmaTile,
        batch: &[AffineExpr],
    ) -> Result<Self> {
        let missing = || {
            Error::internal(format!(
                "operand {} of a matmul cannot be copied with TMA or is not in memory",
                side as usize
            ))
        };
        let layout = matmul.bulk[side as usize].as_ref().ok_or_else(missing)?;
        let base = s.sources.get(&matmul.operands[side as usize]).ok_or_else(missing)?.base;
        let array = s.pointers.iter().position(|&pointer| pointer == base).ok_or_else(missing)?;
        let source = s.emitter.tma_source(tile.map(layout, array as u32), base)?;
        let mut coordinates = Vec::with_capacity(layout.dims.len());
        for dim in &layout.dims {
            coordinates.push(match &dim.role {
                TmaRole::Free => Coordinate::Free,
                TmaRole::Sum => Coordinate::Sum,
                TmaRole::Batch(dims) => {
                    let extents: Vec<usize> =
                        matmul.batch[dims.clone()].iter().map(|&extent| extent as usize).collect();
                    let at = position(&batch[dims.clone()], &row_major_strides(&extents));
                    Coordinate::Known(short(s, &at)?)
                }
            });
        }
        Ok(TmaOperand { tile, source, coordinates })
    }

    /// Starts the TMA copies of the tile whose first row (or column) and first step of K are given as 32-bit integers,
    /// to a byte offset in shared memory.
    pub fn copy(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        (array, to): (PointerValue<'ctx>, Lanes<'e, 'ctx>),
        [free, sum]: [Lanes<'e, 'ctx>; 2],
        arrival: Arrival<'e, 'ctx>,
    ) -> Result<()> {
        for block in 0..self.tile.blocks() {
            let at = |(d, coordinate): (usize, &Coordinate<'e, 'ctx>)| {
                let first = match coordinate {
                    Coordinate::Free => free,
                    Coordinate::Sum => sum,
                    Coordinate::Known(at) => *at,
                };
                if d == 0 { first + (block * self.tile.form.row()) as i64 } else { first }
            };
            let coordinates: Vec<_> = self.coordinates.iter().enumerate().map(at).collect();
            let to = to + (block * self.tile.form.block_bytes()) as i64;
            s.emitter.copy_box(&self.source, (array, to), &coordinates, arrival)?;
        }
        Ok(())
    }
}

/// Converts an index to a 32-bit integer.
pub(crate) fn short<'e, 'ctx>(s: &mut FusedEmitter<'e, 'ctx, '_>, at: &AffineExpr) -> Result<Lanes<'e, 'ctx>> {
    let number = s.number_of(at)?;
    Ok(s.lanes_of(number).trunc(Scalar::Int(32).bits()))
}
