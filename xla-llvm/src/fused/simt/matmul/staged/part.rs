//! An operand's part in shared memory: which chunks a thread copies, and which rows of matrices it loads.

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

/// Rows (or columns) of four matrices that are loaded together, and steps of K in chunks.
const ROWS: u64 = 16;
const CHUNKS: u64 = 2;

/// A place in the matmul of a block: batch, the first row or column, and the first step of K.
pub(super) struct Origin<'a> {
    pub batch: &'a [AffineExpr],
    pub free: AffineExpr,
    pub sum: AffineExpr,
}

/// Numbers of a thread: in its block, in its warp, and of its warp along the operand's side.
pub(super) struct ThreadPlace<'a> {
    pub thread: &'a AffineExpr,
    pub lane: &'a AffineExpr,
    pub warp: &'a AffineExpr,
}

/// An operand's part in shared memory.
pub(super) struct StagedPart<'e, 'ctx> {
    pub scalar: Scalar,
    along: Along,
    /// Elements of a row.
    row: u64,
    /// Its place in a stage, and elements that it has there.
    pub first: u64,
    pub size: u64,
    source: PointerValue<'ctx>,
    /// The place in the source of the thread's first chunk, and elements of the source from one turn to the next.
    pub from: Lanes<'e, 'ctx>,
    pub advance: i64,
    copies: Vec<Copy<'e, 'ctx>>,
    /// Rows of the lane's first matrices, one for each chunk along a row.
    rows: Vec<Lanes<'e, 'ctx>>,
}

/// A chunk that a thread copies.
struct Copy<'e, 'ctx> {
    /// Elements after the thread's first chunk in the source.
    after: Lanes<'e, 'ctx>,
    /// Its place in the stage.
    to: Lanes<'e, 'ctx>,
    /// The step of K, from the first one of the turn on.
    sum: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> StagedPart<'e, 'ctx> {
    pub fn new<'m>(
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        matmul: &Matmul<'m>,
        tiling: Tiling,
        side: MatmulSide,
        origin: &Origin<'_>,
        place: &ThreadPlace<'_>,
    ) -> Result<Self> {
        let operand = matmul.operands[side as usize];
        let missing = || Error::internal("an operand that is copied is not in memory");
        let source = s.sources.get(&operand).ok_or_else(missing)?.base;
        let stride = matmul.k_strides[side as usize].ok_or_else(missing)?;
        let bytes = matmul.bytes[side as usize];
        let (size, along) = (tiling.size(side), matmul.neighbours[side as usize].along);
        let row = if along == Along::K { tiling.depth } else { size };
        let part = StagedPart {
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
        Ok(StagedPart { from, copies, rows, ..part })
    }

    /// Elements of a chunk.
    fn chunk(&self) -> u64 {
        8 * COPY_BYTES / u64::from(self.scalar.bits())
    }

    /// The element of a stage where a chunk begins.
    fn place(&self, row: Lanes<'e, 'ctx>, chunk: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let chunk = chunk ^ self.permutation(row);
        row * self.row as i64 + chunk * self.chunk() as i64
    }

    /// The bits that are flipped in the numbers of a row's chunks: eight chunks go through all banks. They are the same
    /// for rows that are eight apart.
    fn permutation(&self, row: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        match self.row / self.chunk() {
            4 => row.lshr(1) & 3,
            _ => row & 7,
        }
    }

    /// Places of the lane's row of the warp's first four matrices: both halves of 16 rows or columns, and two chunks of
    /// K.
    fn matrix_rows<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (side, extent): (MatmulSide, u64),
        place: &ThreadPlace<'_>,
    ) -> Result<Vec<Lanes<'e, 'ctx>>> {
        let (matrix, within) = s.divide(place.lane, 8)?;
        let (upper, lower) = s.divide(&matrix, (MATRICES / 2) as i64)?;
        // The fragments of the left operand go down first, those of the right one along K.
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

    /// The place in the source of the thread's first chunk, and all of them.
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

    /// The place in the source of an element, given its row or column and its step from the origin's on.
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

    /// Begins the thread's copies into the array at an element, of the turn whose first chunk is at `from`. `exists`
    /// says whether there is a step that far from the turn's first one.
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

    /// Fragments of four matrices in a stage that begins at an element of the array, by the number of their 16 rows or
    /// columns in the warp's, and of their chunks of K.
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
        // Sixteen rows further the permutation is the same.
        let at = stage + self.rows[first as usize] + (down * ROWS * self.row) as i64;
        s.emitter.load_matrices(array, at, self.scalar, self.along == Along::Free)
    }
}

/// A row or column, or the last one for those beyond it: their sums are not stored, and copies need no test for them.
fn within(s: &mut FusedEmitter<'_, '_, '_>, at: AffineExpr, last: u64) -> Result<AffineExpr> {
    if at.bounds(&s.symbols).is_some_and(|(_, most)| most <= last as i64) {
        return Ok(at);
    }
    let number = s.number_of(&at)?;
    let clamped = s.lanes_of(number).smin(last as i64);
    Ok(s.computed(clamped, None, Some(last + 1), at.level(&s.symbols)))
}
