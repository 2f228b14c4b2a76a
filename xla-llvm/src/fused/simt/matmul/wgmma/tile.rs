//! Warp-specialized main loop over K of an output tile.

use xla_hlo::{ElementType, Error, Result};

use super::fit;
use crate::elemental::{self, Value};
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::range::Range;
use crate::fused::simt::matmul::cut::Sink;
use crate::fused::simt::matmul::tiling::Tiling;
use crate::fused::simt::pipeline::{Pipeline, Stage, Stages};
use crate::fused::simt::tma_operand::{TmaOperand, TmaTile, short};
use crate::lanes::Lanes;
use crate::mma::{COLUMNS, GROUP_ROWS, LeftFactor, OperandType, ROWS};
use crate::simt::{Shuffle, WARP};

/// Output tile, and a thread's position in it.
pub(in crate::fused::simt::matmul) struct WgmmaTile<'e, 'ctx> {
    tiling: Tiling,
    unit: OperandType,
    operands: [TmaOperand<'e, 'ctx>; 2],
    /// Iterations of the loop over K: the first one, and the end.
    bounds: [Lanes<'e, 'ctx>; 2],
    /// Number of iterations of the whole K.
    iterations: u64,
    /// First row and first column of the tile.
    first: [AffineExpr; 2],
    /// Stages, each with the left operand's tile, then the right one's.
    pipeline: Pipeline<'e, 'ctx>,
    thread_expr: AffineExpr,
}

/// The mbarrier of both tiles of a stage.
const OPERANDS: usize = 0;

impl<'e, 'ctx> WgmmaTile<'e, 'ctx> {
    /// Returns the tile with the given batch, split-K part, and tile row and column.
    pub fn new<'m>(
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (matmul, tiling): (&Matmul<'m>, Tiling),
        (batch, part): (&[AffineExpr], &AffineExpr),
        tile: [&AffineExpr; 2],
        thread: &AffineExpr,
    ) -> Result<Self> {
        let unit = tiling.unit.ok_or_else(|| Error::internal("wgmma matmul has no tensor core type"))?;
        let mut operand = |side: MatmulSide| {
            let missing =
                || Error::internal(format!("operand {} of a matmul cannot be copied with TMA", side as usize));
            let layout = matmul.bulk[side as usize].as_ref().ok_or_else(missing)?;
            let tile = TmaTile::new(layout, tiling.size(side), tiling.depth).ok_or_else(missing)?;
            TmaOperand::new(s, (matmul, side), tile, batch)
        };
        let operands = [operand(MatmulSide::Left)?, operand(MatmulSide::Right)?];
        let bounds = tiling.cut.bounds(s, part, (matmul.k(), tiling.depth))?;
        let first = [MatmulSide::Left, MatmulSide::Right]
            .map(|side| tile[side as usize].clone().scaled(tiling.size(side) as i64));
        let (count, bytes) = (tiling.stages(), stage_bytes(&operands));
        let stages = Stages { count, full: 1, once: false, bytes: count * bytes };
        let pipeline = Pipeline::new(s.emitter, fit::groups(tiling.size(MatmulSide::Left)), stages)?;
        let iterations = matmul.k().div_ceil(tiling.depth);
        Ok(WgmmaTile { tiling, unit, operands, bounds, iterations, first, pipeline, thread_expr: thread.clone() })
    }

    /// Emits the whole kernel, from the initialisation of the mbarriers to the results.
    pub fn emit<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        kernel: &FusedKernel<'_, 'm>,
        sink: &Sink<'_, 'ctx, 'm>,
    ) -> Result<()> {
        let first = [short(s, &self.first[0])?, short(s, &self.first[1])?];
        let consume = |s: &mut FusedEmitter<'e, 'ctx, 'm>| {
            for ([row, column], sum) in self.results(s)? {
                kernel.store_vector(s, sink, [&row, &column], sum)?;
            }
            Ok(())
        };
        self.pipeline.emit(s, |s| self.fill(s, first), consume)
    }

    fn range(&self, s: &FusedEmitter<'e, 'ctx, '_>) -> Range<'e, 'ctx> {
        Range { start: self.bounds[0], end: self.bounds[1], ..s.full_range(self.iterations, 1) }
    }

    /// Emits the producer loop of one thread.
    fn fill(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, first: [Lanes<'e, 'ctx>; 2]) -> Result<()> {
        let [left, right] = &self.operands;
        self.pipeline.produce(s, self.range(s), |s, iteration, stage| {
            let sum = (iteration.number * self.tiling.depth as i64).trunc(32);
            let to = stage.number * stage_bytes(&self.operands) as i64;
            let after = to + left.tile.all_bytes() as i64;
            let tiles = [(left, to, [first[0], sum]), (right, after, [first[1], sum])];
            self.pipeline.load(s, (OPERANDS, stage), &tiles)
        })
    }

    /// Returns the thread's sums as four adjacent elements of a row, with the row and the first column of each.
    ///
    /// In a row of two adjacent matrices, a thread and its neighbour each hold two of the same four columns of both.
    /// They exchange values, so that the first thread has four columns of the left matrix and the second one four of
    /// the right matrix. The stores of the four threads of a row are then coalesced.
    fn results<'m>(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<Vec<([AffineExpr; 2], Value<'e, 'ctx>)>> {
        let sums = self.sums(s)?;
        let (warp, lane) = s.divide(&self.thread_expr, i64::from(WARP))?;
        let (group, member) = s.divide(&lane, 4)?;
        let (pair, second) = s.divide(&member, 2)?;
        let is_second = (self.pipeline.thread & 1).ne(0);
        // Consecutive warps, also across groups, have consecutive rows.
        let row = self.first[0].clone().plus(&warp.scaled(ROWS as i64)).plus(&group);
        let column = self.first[1].clone().plus(&second.scaled(COLUMNS as i64)).plus(&pair.scaled(4));
        let mut results = Vec::new();
        for (number, both) in (0..).zip(sums.chunks_exact(8)) {
            for half in [0, 1] {
                let [left, right] = [0, 4].map(|matrix| [both[matrix + 2 * half], both[matrix + 2 * half + 1]]);
                let mut four = Vec::with_capacity(4);
                for (left, right) in left.into_iter().zip(right) {
                    let other = s.emitter.shuffle(is_second.select(left, right), Shuffle::Xor(1))?;
                    four.push([is_second.select(other, left), is_second.select(right, other)]);
                }
                let [even, odd] = [&four[0], &four[1]];
                let four = even[0].concat(odd[0]).concat(even[1].concat(odd[1]));
                let at = [
                    row.clone().shifted(half as i64 * ROWS as i64 / 2),
                    column.clone().shifted(2 * number * COLUMNS as i64),
                ];
                results.push((at, Value::new(ElementType::F32, four)));
            }
        }
        Ok(results)
    }

    /// Emits the consumer loop over K, and returns the thread's sums, four per matrix.
    fn sums<'m>(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<Vec<Lanes<'e, 'ctx>>> {
        let zero = elemental::constant(s.emitter, ElementType::F32, xla_hlo::Scalar::Float(0.0)).lanes();
        let sums = vec![zero.raw(); self.tiling.size(MatmulSide::Right) as usize / 2];
        let range = self.range(s);
        let raws = self.pipeline.for_each_stage(s, range, sums, &mut |s, iteration, stage, sums| {
            let mut sums: Vec<_> = sums.iter().map(|&raw| s.emitter.lanes(raw)).collect();
            self.pipeline.wait(s, OPERANDS, stage)?;
            self.multiply(s, stage, &mut sums)?;
            // The `wgmma` operations of the previous iteration are complete, so that its stage can be released.
            s.emitter.wait_for_group_products(1, &mut sums)?;
            self.pipeline.release_previous(s, stage, iteration.number.ne(self.bounds[0]))?;
            Ok(sums.iter().map(|sum| sum.raw()).collect())
        })?;
        let mut sums: Vec<_> = raws.iter().map(|&raw| s.emitter.lanes(raw)).collect();
        s.emitter.wait_for_group_products(0, &mut sums)?;
        Ok(sums)
    }

    /// Starts to add the products of a stage.
    fn multiply(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        stage: Stage<'e, 'ctx>,
        sums: &mut [Lanes<'e, 'ctx>],
    ) -> Result<()> {
        let [left, right] = self.operands.each_ref().map(|operand| operand.tile);
        let at = stage.number * stage_bytes(&self.operands) as i64;
        let rows = self.pipeline.group() * left.form.of_free(GROUP_ROWS) as i64;
        let left_factor = LeftFactor::Shared(left.factor(self.pipeline.array, at + rows));
        let right_factor = right.factor(self.pipeline.array, at + left.all_bytes() as i64);
        s.emitter.begin_group_products()?;
        for step in 0..self.tiling.depth / self.unit.depth() {
            s.emitter.multiply_by_group(self.unit, (&left_factor, &right_factor), step, sums)?;
        }
        s.emitter.end_group_products()
    }
}

/// Returns the size in bytes of a stage.
fn stage_bytes(operands: &[TmaOperand<'_, '_>; 2]) -> u64 {
    operands.iter().map(|operand| operand.tile.all_bytes()).sum()
}
