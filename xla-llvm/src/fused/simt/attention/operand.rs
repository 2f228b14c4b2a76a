//! Operand tiles in shared memory: the copies of a block's threads, and the fragments of a thread.

use inkwell::values::PointerValue;
use xla_hlo::{Error, Result};

use super::plan::AttentionTiling;
use super::shape::TileShape;
use crate::fused::contraction::matmul::{Along, Matmul, MatmulSide};
use crate::fused::core::address::strides_of;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, position};
use crate::fused::loops::variables::counters;
use crate::lanes::{Lanes, Scalar};
use crate::mma::MATRICES;

/// Number of rows in the four matrices of one load.
const ROWS: u64 = 16;

/// Tile of an operand.
pub(super) struct Operand<'e, 'ctx> {
    shape: TileShape,
    scalar: Scalar,
    array: PointerValue<'ctx>,
    source: PointerValue<'ctx>,
    copies: Vec<Copy<'e, 'ctx>>,
    /// Number of rows of the whole operand (`extent`), and its stride in elements between tiles (`advance`).
    extent: u64,
    advance: i64,
}

/// Chunk that a thread copies.
struct Copy<'e, 'ctx> {
    /// Position in the source, for the first tile.
    from: Lanes<'e, 'ctx>,
    to: Lanes<'e, 'ctx>,
    /// Row in the source, for the first tile.
    row: Lanes<'e, 'ctx>,
}

/// Positions in shared memory of a thread's fragments.
pub(super) struct Fragments<'e, 'ctx> {
    /// Positions of every second chunk, until the permutation of chunks repeats.
    places: Vec<Lanes<'e, 'ctx>>,
}

impl<'e, 'ctx> Operand<'e, 'ctx> {
    /// Returns an operand of a dot, whose first tile begins at row `first`; the other tiles follow it.
    pub fn new<'m>(
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (matmul, side): (&Matmul<'m>, MatmulSide),
        shape: TileShape,
        (batch, first): (&[AffineExpr], &AffineExpr),
        thread: &AffineExpr,
    ) -> Result<Operand<'e, 'ctx>> {
        let operand = matmul.operands[side as usize];
        let missing = || Error::internal(format!("operand {} of a dot is not in memory", side as usize));
        let source = s.sources.get(&operand).ok_or_else(missing)?.base;
        let along = matmul.neighbours[side as usize].along;
        let scalar = Scalar::Int(8 * shape.bytes as u32);
        let array = s.emitter.shared_array(scalar, shape.rows * shape.stride)?;
        let extent = if along == Along::K { matmul.extent(side) } else { matmul.k() };
        let place = |s: &mut FusedEmitter<'e, 'ctx, 'm>, row: &AffineExpr, column: &AffineExpr| {
            let (frees, sums) = match along {
                Along::K => (counters(s, row, &matmul.free[side as usize])?, vec![column.clone()]),
                Along::Free => (vec![column.clone()], counters(s, row, &matmul.contracting)?),
            };
            let index = matmul.operand_index(s, side, (batch, &frees, &sums), &mut None)?;
            Ok::<_, Error>(position(&index, &strides_of(s.graph()[operand].shape().expect_array()?)))
        };
        let mut copies = Vec::new();
        let count = shape.rows * shape.chunks;
        for begin in (0..count).step_by(AttentionTiling::THREADS as usize) {
            // Threads beyond the last chunk copy it again.
            let number = thread.clone().shifted(begin as i64);
            let number = clamped(s, number, count - 1)?;
            let (row, chunk) = s.divide(&number, shape.chunks as i64)?;
            let from = place(s, &first.clone().plus(&row), &chunk.clone().scaled(shape.chunk as i64))?;
            let [from, row_here, chunk, row] = [from, row.clone(), chunk, first.clone().plus(&row)].map(Some);
            let mut lanes = |expr: Option<AffineExpr>| {
                let number = s.number_of(&expr.unwrap_or_default())?;
                Ok::<_, Error>(s.lanes_of(number))
            };
            let to = shape.place(lanes(row_here)?, lanes(chunk)?);
            copies.push(Copy { from: lanes(from)?, to, row: lanes(row)? });
        }
        // Only operands with one large free dimension, or with one contracted dimension, have more than one tile.
        let origin = place(s, &AffineExpr::default(), &AffineExpr::default())?;
        let next = place(s, &AffineExpr::constant(1), &AffineExpr::default())?;
        let advance = next.plus(&origin.scaled(-1)).offset() * shape.rows as i64;
        Ok(Operand { shape, scalar, array, source, copies, extent, advance })
    }

    /// Starts the copies of tile number `tile`; rows beyond the extent are filled with zeros.
    pub fn copy(&self, s: &FusedEmitter<'e, 'ctx, '_>, tile: Lanes<'e, 'ctx>) -> Result<()> {
        for copy in &self.copies {
            let exists = (copy.row + tile * self.shape.rows as i64).lt(self.extent as i64);
            let from = copy.from + tile * self.advance;
            s.emitter.copy_async((self.array, copy.to), (self.source, from), self.scalar, exists)?;
        }
        Ok(())
    }

    /// Returns the fragments of a left operand whose rows begin at row `first` of the tile; `lane` is the thread's lane
    /// in the warp.
    pub fn left(&self, first: Lanes<'e, 'ctx>, lane: Lanes<'e, 'ctx>) -> Fragments<'e, 'ctx> {
        let [upper, lower, within] = matrix_row(lane);
        Fragments { places: self.shape.places(first + within + lower * 8, upper) }
    }

    /// Returns the fragments of a right operand whose columns are the tile's rows.
    pub fn right(&self, lane: Lanes<'e, 'ctx>) -> Fragments<'e, 'ctx> {
        let [upper, lower, within] = matrix_row(lane);
        Fragments { places: self.shape.places(within + upper * 8, lower) }
    }

    /// Returns the fragments of a right operand whose steps of K are the tile's rows (transposed load), for 16-bit
    /// elements.
    pub fn transposed(&self, lane: Lanes<'e, 'ctx>) -> Fragments<'e, 'ctx> {
        let [upper, lower, within] = matrix_row(lane);
        Fragments { places: self.shape.places(within + lower * 8, upper) }
    }

    /// Returns the fragments of a right operand whose steps of K are the tile's rows, for 32-bit elements, which
    /// `ldmatrix` cannot transpose. Even and odd rows are separate, because a thread's steps of K in the left operand
    /// are consecutive.
    pub fn columns(&self, lane: Lanes<'e, 'ctx>) -> [Fragments<'e, 'ctx>; 2] {
        let (group, member) = (lane.lshr(2), lane & 3);
        let (chunk, within) = (group.lshr(self.shape.chunk.ilog2() as i64), group & (self.shape.chunk as i64 - 1));
        [0, 1].map(|odd| {
            let places = self.shape.places(member * 2 + odd, chunk);
            Fragments { places: places.into_iter().map(|place| place + within).collect() }
        })
    }

    fn at(&self, fragments: &Fragments<'e, 'ctx>, row: u64, chunks: u64) -> Lanes<'e, 'ctx> {
        let count = fragments.places.len() as u64;
        let further = row * self.shape.stride + chunks / count * 2 * count * self.shape.chunk;
        fragments.places[(chunks % count) as usize] + further as i64
    }

    /// Loads the four fragments of a group of 16 rows and a pair of chunks, given their indices.
    pub fn load(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        fragments: &Fragments<'e, 'ctx>,
        (rows, chunks): (u64, u64),
        transposed: bool,
    ) -> Result<[Lanes<'e, 'ctx>; MATRICES]> {
        s.emitter.load_matrices(self.array, self.at(fragments, ROWS * rows, chunks), self.scalar, transposed)
    }

    /// Loads the thread's element of a group of eight rows and a pair of chunks, given their indices.
    pub fn load_element(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        fragments: &Fragments<'e, 'ctx>,
        (rows, chunks): (u64, u64),
    ) -> Lanes<'e, 'ctx> {
        s.emitter.load_aligned_lanes(self.array, self.at(fragments, 8 * rows, chunks), self.scalar, 1)
    }
}

/// Decodes the matrix row that a lane addresses: high and low bit of the matrix's number, and the row in the matrix.
fn matrix_row<'e, 'ctx>(lane: Lanes<'e, 'ctx>) -> [Lanes<'e, 'ctx>; 3] {
    [lane.lshr(4), lane.lshr(3) & 1, lane & 7]
}

/// Clamps an index to the last one.
pub(super) fn clamped(s: &mut FusedEmitter<'_, '_, '_>, at: AffineExpr, last: u64) -> Result<AffineExpr> {
    if at.bounds(&s.symbols).is_some_and(|(_, most)| most <= last as i64) {
        return Ok(at);
    }
    let level = at.level(&s.symbols);
    s.at_level(level, |s| {
        let number = s.number_of(&at)?;
        let lanes = s.lanes_of(number).smin(last as i64);
        Ok(s.computed(lanes, None, Some(last + 1), level))
    })
}
