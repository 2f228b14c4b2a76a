//! Tile of an operand in shared memory: the chunks that a thread copies, and the rows of matrices that it loads.

use inkwell::values::PointerValue;
use xla_hlo::{Error, Result};

use super::fit::THREADS;
use crate::fused::contraction::matmul::{Along, Matmul, MatmulSide};
use crate::fused::core::address::strides_of;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, position};
use crate::fused::loops::variables::counters;
use crate::fused::simt::matmul::tiling::Tiling;
use crate::fused::tuning::matmul_stages::WARPS_ALONG;
use crate::lanes::{Lanes, Scalar};
use crate::mma::MATRICES;
use crate::simt::COPY_BYTES;

/// Number of rows (or columns), and of chunks along K, in the four matrices of one load.
const ROWS: u64 = 16;
const CHUNKS: u64 = 2;

/// Position of a block in the matmul: batch, first row or column, and first step of K.
pub(super) struct Origin<'a> {
    pub batch: &'a [AffineExpr],
    pub free: AffineExpr,
    pub sum: AffineExpr,
}

/// Indices of a thread in its block and in its warp, and of its warp along the operand's side.
pub(super) struct ThreadPlace<'a> {
    pub thread: &'a AffineExpr,
    pub lane: &'a AffineExpr,
    pub warp: &'a AffineExpr,
}

/// Tile of an operand in shared memory.
pub(super) struct MultistagePart<'e, 'ctx> {
    pub scalar: Scalar,
    along: Along,
    /// Number of elements per row.
    row: u64,
    /// Offset of the tile in a stage (`first`), and its size (`size`), in elements.
    pub first: u64,
    pub size: u64,
    source: PointerValue<'ctx>,
    /// Position in the source of the thread's first chunk (`from`), and its increment per iteration (`advance`), in
    /// elements.
    pub from: Lanes<'e, 'ctx>,
    pub advance: i64,
    copies: Vec<Copy<'e, 'ctx>>,
    /// Positions of the lane's row in the first matrices, one for each pair of chunks along a row.
    rows: Vec<Lanes<'e, 'ctx>>,
}

/// Chunk that a thread copies.
struct Copy<'e, 'ctx> {
    /// Offset in the source from the thread's first chunk, in elements.
    after: Lanes<'e, 'ctx>,
    /// Position in the stage.
    to: Lanes<'e, 'ctx>,
    /// Step of K, relative to the first one of the iteration.
    sum: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> MultistagePart<'e, 'ctx> {
    pub fn new<'m>(
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        matmul: &Matmul<'m>,
        tiling: Tiling,
        side: MatmulSide,
        origin: &Origin<'_>,
        place: &ThreadPlace<'_>,
    ) -> Result<Self> {
        let operand = matmul.operands[side as usize];
        let missing = || {
            Error::internal(format!(
                "operand {} of a matmul has no constant stride along K or is not in memory",
                side as usize
            ))
        };
        let source = s.sources.get(&operand).ok_or_else(missing)?.base;
        let stride = matmul.k_strides[side as usize].ok_or_else(missing)?;
        let bytes = matmul.bytes[side as usize];
        let (size, along) = (tiling.size(side), matmul.neighbours[side as usize].along);
        let row = if along == Along::K { tiling.depth } else { size };
        let part = MultistagePart {
            scalar: Scalar::Int(8 * bytes as u32),
            along,
            row,
            first: 0,
            size: size * tiling.depth,
            source,
            from: s.number(0),
            advance: (tiling.depth * stride) as i64,
            copies: Vec::new(),
            rows: Vec::new(),
        };
        let rows = part.matrix_rows(s, (side, size / WARPS_ALONG), place)?;
        let (from, copies) = part.chunks(s, matmul, side, origin, place.thread)?;
        Ok(MultistagePart { from, copies, rows, ..part })
    }

    /// Returns the number of elements per chunk.
    fn chunk(&self) -> u64 {
        8 * COPY_BYTES / u64::from(self.scalar.bits())
    }

    /// Returns the position in a stage of the first element of a chunk.
    fn place(&self, row: Lanes<'e, 'ctx>, chunk: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let chunk = chunk ^ self.permutation(row);
        row * self.row as i64 + chunk * self.chunk() as i64
    }

    /// Returns the bits that are XORed with the numbers of a row's chunks, so that eight chunks of a matrix are in
    /// different banks. They repeat after eight rows.
    fn permutation(&self, row: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        match self.row / self.chunk() {
            4 => row.lshr(1) & 3,
            _ => row & 7,
        }
    }

    /// Returns the positions of the lane's rows in the first four matrices of the warp: two groups of eight rows (or
    /// columns) by two chunks of K.
    fn matrix_rows<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (side, extent): (MatmulSide, u64),
        place: &ThreadPlace<'_>,
    ) -> Result<Vec<Lanes<'e, 'ctx>>> {
        let (matrix, within) = s.divide(place.lane, 8)?;
        let (upper, lower) = s.divide(&matrix, (MATRICES / 2) as i64)?;
        // Fragments of the left operand are numbered along the rows first, fragments of the right operand along K
        // first.
        let (free, sum) = match side {
            MatmulSide::Left => (lower, upper),
            MatmulSide::Right => (upper, lower),
        };
        let first = place.warp.clone().scaled(extent as i64);
        let at = |s: &mut FusedEmitter<'e, 'ctx, 'm>, row: &AffineExpr, chunk: &AffineExpr| {
            let (row, chunk) = (s.number_of(row)?, s.number_of(chunk)?);
            Ok(self.place(s.lanes_of(row), s.lanes_of(chunk)))
        };
        match self.along {
            Along::K => {
                let row = first.plus(&within).plus(&free.scaled(8));
                let chunks = (0..self.row / self.chunk()).step_by(CHUNKS as usize);
                chunks.map(|chunk| at(s, &row, &sum.clone().shifted(chunk as i64))).collect()
            }
            Along::Free => {
                let row = within.plus(&sum.scaled(8));
                let (first, _) = s.divide(&first, self.chunk() as i64)?;
                let chunk = first.plus(&free);
                let chunks = (0..extent / self.chunk()).step_by(CHUNKS as usize);
                chunks.map(|next| at(s, &row, &chunk.clone().shifted(next as i64))).collect()
            }
        }
    }

    /// Returns the position in the source of the thread's first chunk, and all of the thread's chunks.
    fn chunks<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        matmul: &Matmul<'m>,
        side: MatmulSide,
        origin: &Origin<'_>,
        thread: &AffineExpr,
    ) -> Result<(Lanes<'e, 'ctx>, Vec<Copy<'e, 'ctx>>)> {
        let in_row = self.row / self.chunk();
        let (row, chunk) = s.divide(thread, in_row as i64)?;
        let (first_row, first_chunk) = (s.number_of(&row)?, s.number_of(&chunk)?);
        let first = self.place(s.lanes_of(first_row), s.lanes_of(first_chunk));
        let along_row = chunk.scaled(self.chunk() as i64);
        let mut copies = Vec::new();
        let mut first_from = None;
        for number in (0..self.size / self.row).step_by((THREADS / in_row) as usize) {
            let row = row.clone().shifted(number as i64);
            let (free, sum) = match self.along {
                Along::K => (row, along_row.clone()),
                Along::Free => (along_row.clone(), row),
            };
            let neighbours = if self.along == Along::Free { self.chunk() } else { 1 };
            let at = within(s, origin.free.clone().plus(&free), matmul.extent(side).saturating_sub(neighbours))?;
            let from = self.source_position(s, matmul, side, (origin, &at, &sum))?;
            let before = first_from.get_or_insert_with(|| from.clone()).clone();
            let after = s.number_of(&from.plus(&before.scaled(-1)))?;
            let sum = s.number_of(&sum)?;
            copies.push(Copy {
                after: s.lanes_of(after),
                to: first + (number * self.row) as i64,
                sum: s.lanes_of(sum),
            });
        }
        let from = s.number_of(&first_from.unwrap_or_default())?;
        Ok((s.lanes_of(from), copies))
    }

    /// Returns the position of an element in the source, given its row (or column) and its step of K relative to the
    /// origin.
    fn source_position<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        matmul: &Matmul<'m>,
        side: MatmulSide,
        (origin, free, sum): (&Origin<'_>, &AffineExpr, &AffineExpr),
    ) -> Result<AffineExpr> {
        let frees = counters(s, free, &matmul.free[side as usize])?;
        let sums = vec![AffineExpr::default(); matmul.contracting.len()];
        let index = matmul.operand_index(s, side, (origin.batch, &frees, &sums), &mut None)?;
        let operand = matmul.operands[side as usize];
        let at = position(&index, &strides_of(s.graph()[operand].shape().expect_array()?));
        let stride = matmul.k_strides[side as usize].unwrap_or(0) as i64;
        Ok(at.plus(&origin.sum.clone().plus(sum).scaled(stride)))
    }

    /// Starts the thread's copies of an iteration into the tile at element `to` of the array. `from` is the position in
    /// the source of the first chunk. `exists` returns whether a step of K, relative to the iteration's first one, is
    /// within K.
    pub fn copy(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        (array, to): (PointerValue<'ctx>, Lanes<'e, 'ctx>),
        from: Lanes<'e, 'ctx>,
        exists: &dyn Fn(Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>,
    ) -> Result<()> {
        for copy in &self.copies {
            let places = [(array, to + copy.to), (self.source, from + copy.after)];
            s.emitter.copy_async(places[0], places[1], self.scalar, exists(copy.sum))?;
        }
        Ok(())
    }

    /// `ldmatrix`: loads the fragments of four matrices from the stage that begins at element `stage` of the array.
    /// `free` is the index of their 16 rows (or columns) in the warp's, `sum` that of their chunks of K.
    pub fn load(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        (array, stage): (PointerValue<'ctx>, Lanes<'e, 'ctx>),
        (free, sum): (u64, u64),
    ) -> Result<[Lanes<'e, 'ctx>; MATRICES]> {
        let (first, down) = match self.along {
            Along::K => (sum, free),
            Along::Free => (free, sum),
        };
        // The permutation repeats after 16 rows.
        let at = stage + self.rows[first as usize] + (down * ROWS * self.row) as i64;
        s.emitter.load_matrices(array, at, self.scalar, self.along == Along::Free)
    }
}

/// Clamps a row or column to the last one. Sums of rows or columns beyond it are not stored, so that copies need no
/// test for them.
fn within(s: &mut FusedEmitter<'_, '_, '_>, at: AffineExpr, last: u64) -> Result<AffineExpr> {
    if at.bounds(&s.symbols).is_some_and(|(_, most)| most <= last as i64) {
        return Ok(at);
    }
    let number = s.number_of(&at)?;
    let clamped = s.lanes_of(number).smin(last as i64);
    Ok(s.computed(clamped, None, Some(last + 1), at.level(&s.symbols)))
}
