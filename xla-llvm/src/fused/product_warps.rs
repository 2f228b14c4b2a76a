//! Tiles of matrix products whose sums are computed by warps with the matrix unit: two rows of four warps.

use xla_hlo::{ElementType, Result};

use super::FusedEmitter;
use super::index::Coord;
use super::product_tiles::{Part, THREADS, Tile, Tiling};
use crate::elemental::Value;
use crate::lanes::{Lanes, Scalar};
use crate::matrix_unit::{COLUMNS, DEPTH, ROWS};
use crate::simt::WARP;

/// Warps of a block along the columns; as many times two along the rows.
const WARPS_ACROSS: u64 = 4;
const WARPS_DOWN: u64 = THREADS / WARP as u64 / WARPS_ACROSS;

/// Where a thread's pieces of matrices are in the tile.
pub(super) struct WarpPlace {
    /// The first row of the warp's sums, and the first column.
    pub row: Coord,
    pub column: Coord,
    /// The numbers of the thread that `matrix_unit` calls g and t.
    group: Coord,
    member: Coord,
}

impl WarpPlace {
    pub fn new(s: &mut FusedEmitter<'_, '_, '_>, tiling: Tiling, thread: &Coord) -> Result<WarpPlace> {
        let (warp, lane) = s.divide(thread, i64::from(WARP))?;
        let (down, across) = s.divide(&warp, WARPS_ACROSS as i64)?;
        let (group, member) = s.divide(&lane, 4)?;
        let [rows, columns] = matrices(tiling);
        Ok(WarpPlace {
            row: down.scaled((rows * ROWS) as i64),
            column: across.scaled((columns * COLUMNS) as i64),
            group,
            member,
        })
    }
}

/// Matrices of a warp's sums, down and across.
fn matrices(tiling: Tiling) -> [u64; 2] {
    let [rows, columns] = tiling.each;
    let side = THREADS.isqrt();
    [rows * side / (ROWS * WARPS_DOWN), columns * side / (COLUMNS * WARPS_ACROSS)]
}

impl<'e, 'ctx, 'm> Tile<'e, 'ctx, '_, 'm> {
    /// Vectors of a thread's sums, and their columns: two rows of each matrix.
    pub fn warp_vectors(&self) -> (u64, u64) {
        let [rows, columns] = matrices(self.tiling);
        (rows * columns * 2, 2)
    }

    /// The row and the first column of each of them.
    pub fn warp_places(&self, place: &WarpPlace) -> Vec<[Coord; 2]> {
        let [left, right] = &self.parts;
        let row = left.first.clone().plus(&place.row).plus(&place.group);
        let column = right.first.clone().plus(&place.column).plus(&place.member.clone().scaled(2));
        let [rows, columns] = matrices(self.tiling);
        let mut places = Vec::new();
        for number in 0..rows * columns {
            let (down, across) = (number / columns * ROWS, number % columns * COLUMNS);
            for lower in [0, ROWS / 2] {
                places.push([row.clone().shifted((down + lower) as i64), column.clone().shifted(across as i64)]);
            }
        }
        places
    }

    /// Where the thread's first pieces of each operand are in shared memory.
    pub fn pieces(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, place: &WarpPlace) -> Result<[Lanes<'e, 'ctx>; 2]> {
        let mut at = |part: &Part<'e, 'ctx>, first: &Coord| {
            let free = first.clone().plus(&place.group).scaled(part.stride.0 as i64);
            let number = s.number_of(&free.plus(&place.member.clone().scaled(2 * part.stride.1 as i64)))?;
            Ok(s.lanes_of(number))
        };
        Ok([at(&self.parts[0], &place.row)?, at(&self.parts[1], &place.column)?])
    }

    /// Adds the products of the steps in one half of shared memory, given where the thread's pieces and the halves begin.
    pub fn multiply_by_warps(
        &self,
        s: &FusedEmitter<'e, 'ctx, 'm>,
        ty: ElementType,
        (pieces, halves): ([Lanes<'e, 'ctx>; 2], [Lanes<'e, 'ctx>; 2]),
        sums: &mut [Value<'e, 'ctx>],
    ) -> Result<()> {
        let ([left, right], [rows, columns]) = (&self.parts, matrices(self.tiling));
        let at = [halves[0] + pieces[0], halves[1] + pieces[1]];
        for step in (0..self.tiling.depth).step_by(DEPTH as usize) {
            let lefts: Vec<_> = (0..rows)
                .map(|row| {
                    let piece = |down, along| left.pair(s, at[0], (row * ROWS + down, step + along));
                    [piece(0, 0), piece(ROWS / 2, 0), piece(0, DEPTH / 2), piece(ROWS / 2, DEPTH / 2)]
                })
                .collect();
            let rights: Vec<_> = (0..columns)
                .map(|column| [0, DEPTH / 2].map(|along| right.pair(s, at[1], (column * COLUMNS, step + along))))
                .collect();
            for (number, sums) in sums.chunks_exact_mut(2).enumerate() {
                let (row, column) = (number / rights.len(), number % rights.len());
                let before = [0, 1, 2, 3].map(|i| sums[i / 2].slice(i as u32 % 2, 1).lanes());
                let [a, b, c, d] = s.emitter.multiply_matrices(ty, lefts[row], rights[column], before)?;
                for (sum, both) in sums.iter_mut().zip([a.interleave(b), c.interleave(d)]) {
                    *sum = Value::new(ElementType::F32, both);
                }
            }
        }
        Ok(())
    }
}

impl<'e, 'ctx> Part<'e, 'ctx> {
    /// The 16-bit elements at a row or column and two neighbouring steps of the sum, from a place on, as a word.
    fn pair(&self, s: &FusedEmitter<'e, 'ctx, '_>, at: Lanes<'e, 'ctx>, (free, sum): (u64, u64)) -> Lanes<'e, 'ctx> {
        let at = at + (free * self.stride.0 + sum * self.stride.1) as i64;
        let array = self.arrays[0].0;
        match self.stride.1 {
            1 => s.emitter.load_aligned_lanes(array, at.lshr(1), Scalar::Int(32), 1),
            step => {
                let [low, high] =
                    [at, at + step as i64].map(|at| s.emitter.load_aligned_lanes(array, at, Scalar::Int(16), 1));
                (high.zext(32) << 16) | low.zext(32)
            }
        }
    }
}
