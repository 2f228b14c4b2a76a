//! Software-pipelined loop over K: copies of later stages overlap with the products of the current one.

use inkwell::values::PointerValue;
use xla_hlo::{ElementType, Error, Result};

use super::part::{MultistagePart, Origin, ThreadPlace};
use crate::elemental::Value;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::core::convolution::zero;
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::range::Range;
use crate::fused::simt::matmul::tiling::Tiling;
use crate::fused::tuning::matmul_stages::WARPS_ALONG;
use crate::fused::value::SymbolValue;
use crate::lanes::{Lanes, Scalar};
use crate::mma::{COLUMNS, MATRICES, OperandType, ROWS};
use crate::simt::WARP;

/// Output tile, and a thread's position in it.
pub(in crate::fused::simt::matmul) struct Multistage<'e, 'ctx> {
    tiling: Tiling,
    unit: OperandType,
    /// K of the matmul.
    depth: u64,
    part: AffineExpr,
    parts: [MultistagePart<'e, 'ctx>; 2],
    /// All stages in shared memory; each has the left operand's tile, then the right one's.
    array: PointerValue<'ctx>,
    stages: u64,
    /// First row and first column of the thread's sums.
    first: [AffineExpr; 2],
}

impl<'e, 'ctx> Multistage<'e, 'ctx> {
    /// Returns the tile with the given batch, split-K part, and tile row and column.
    pub fn new<'m>(
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (matmul, tiling): (&Matmul<'m>, Tiling),
        (batch, part): (&[AffineExpr], &AffineExpr),
        tile: [&AffineExpr; 2],
        thread: &AffineExpr,
    ) -> Result<Self> {
        let unit = tiling.unit.ok_or_else(|| Error::internal("multistage matmul has no tensor core type"))?;
        let (warp, lane) = s.divide(thread, i64::from(WARP))?;
        let (down, across) = s.divide(&warp, WARPS_ALONG as i64)?;
        let sum = part.clone().scaled(tiling.cut.size as i64);
        let mut of_side = |side: MatmulSide, warp: &AffineExpr| {
            let free = tile[side as usize].clone().scaled(tiling.size(side) as i64);
            let place = ThreadPlace { thread, lane: &lane, warp };
            MultistagePart::new(s, matmul, tiling, side, &Origin { batch, free, sum: sum.clone() }, &place)
        };
        let mut parts = [of_side(MatmulSide::Left, &down)?, of_side(MatmulSide::Right, &across)?];
        parts[1].first = parts[0].size;
        let stages = tiling.stages();
        let array = s.emitter.shared_array(parts[0].scalar, stages * (parts[0].size + parts[1].size))?;
        let (group, member) = s.divide(&lane, 4)?;
        let first = |side: MatmulSide, warp: &AffineExpr, own: AffineExpr| {
            let size = tiling.size(side) as i64;
            tile[side as usize].clone().scaled(size).plus(&warp.clone().scaled(size / WARPS_ALONG as i64)).plus(&own)
        };
        let first = [first(MatmulSide::Left, &down, group), first(MatmulSide::Right, &across, member.scaled(2))];
        Ok(Multistage { tiling, unit, depth: matmul.k(), part: part.clone(), parts, array, stages, first })
    }

    /// Returns the number of 16-row (or 16-column) groups of a warp's sums.
    fn groups(&self, side: MatmulSide) -> u64 {
        self.tiling.size(side) / (WARPS_ALONG * ROWS)
    }

    /// Returns the number of elements per stage.
    fn stage(&self) -> u64 {
        self.parts[0].size + self.parts[1].size
    }

    /// Returns the thread's sums as adjacent elements of a row, with the row and the first column of each.
    pub fn results(&self, s: &mut FusedEmitter<'e, 'ctx, '_>) -> Result<Vec<([AffineExpr; 2], Value<'e, 'ctx>)>> {
        let sums = self.sums(s)?;
        let across = 2 * self.groups(MatmulSide::Right) as usize;
        let mut results = Vec::new();
        for (number, pair) in sums.chunks_exact(2).enumerate() {
            let (matrix, half) = (number / 2, number as u64 % 2);
            let (down, right) = ((matrix / across) as u64, (matrix % across) as u64);
            let row = self.first[0].clone().shifted((down * ROWS + half * ROWS / 2) as i64);
            let column = self.first[1].clone().shifted((right * COLUMNS) as i64);
            let both = pair[0].lanes().concat(pair[1].lanes());
            results.push(([row, column], Value::new(ElementType::F32, both)));
        }
        Ok(results)
    }

    /// Emits the loop over K, and returns the thread's sums, four per matrix.
    fn sums(&self, s: &mut FusedEmitter<'e, 'ctx, '_>) -> Result<Vec<Value<'e, 'ctx>>> {
        let count = 8 * self.groups(MatmulSide::Left) * self.groups(MatmulSide::Right);
        let turns = self.depth.div_ceil(self.tiling.depth);
        let bounds = self.tiling.cut.bounds(s, &self.part, (self.depth, self.tiling.depth))?;
        for ahead in 0..self.stages - 1 {
            self.copy(s, ahead, (bounds[0], ahead, bounds[1]), [self.parts[0].from, self.parts[1].from])?;
        }
        let start = vec![zero(s.emitter, ElementType::F32); count as usize];
        let types = vec![ElementType::F32; start.len()];
        let mut carried = self.parts.iter().map(|part| part.from.raw()).collect::<Vec<_>>();
        carried.extend(raws_of(&start));
        // For whole sums the number of iterations is a constant. Split-K parts are multiples of the number of stages,
        // except the last one, which is padded with iterations of zeros.
        let rest = if self.tiling.cut.parts == 1 { turns % self.stages } else { 0 };
        let range = Range {
            start: bounds[0],
            end: bounds[1] - rest as i64,
            step: self.stages,
            ..s.full_range(turns.next_multiple_of(self.stages), 1)
        };
        let raws = s.for_each(range, carried, &mut |s, turn, carried| {
            let SymbolValue::Uniform(turn) = s.symbol_value(turn) else { return Ok(carried.to_vec()) };
            s.emitter.keep_loop()?;
            let (places, sums) = carried.split_at(2);
            let mut sums = values_of(s, &types, sums);
            let from = [0, 1].map(|side| s.emitter.lanes(places[side]));
            self.turn_of_stages(s, (turn, bounds[1]), from, &mut sums)?;
            let from = [0, 1].map(|side| from[side] + self.stages as i64 * self.parts[side].advance);
            let mut carried = vec![from[0].raw(), from[1].raw()];
            carried.extend(raws_of(&sums));
            Ok(carried)
        })?;
        let mut sums = values_of(s, &types, &raws[2..]);
        if rest > 0 {
            s.emitter.wait_for_copies(0)?;
            s.emitter.barrier()?;
            (0..rest).try_for_each(|stage| self.multiply(s, stage, &mut sums))?;
        }
        Ok(sums)
    }

    /// Adds the products of all stages, starting at iteration `turn`, and starts the copies that refill them.
    fn turn_of_stages(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        (turn, end): (Lanes<'e, 'ctx>, Lanes<'e, 'ctx>),
        from: [Lanes<'e, 'ctx>; 2],
        sums: &mut [Value<'e, 'ctx>],
    ) -> Result<()> {
        let ahead = self.stages - 1;
        for stage in 0..self.stages {
            // The copies of this stage are complete, and all threads are done with the previous stage.
            s.emitter.wait_for_copies(ahead - 1)?;
            s.emitter.barrier()?;
            self.copy(s, (stage + ahead) % self.stages, (turn, stage + ahead, end), from)?;
            self.multiply(s, stage, sums)?;
        }
        Ok(())
    }

    /// Starts the copies of iteration `turn + after` into a stage, as one copy group. `from` are the positions in the
    /// sources of iteration `turn`.
    fn copy(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        stage: u64,
        (turn, after, end): (Lanes<'e, 'ctx>, u64, Lanes<'e, 'ctx>),
        from: [Lanes<'e, 'ctx>; 2],
    ) -> Result<()> {
        let (depth, turn) = (self.tiling.depth, turn + after as i64);
        let whole = self.depth.is_multiple_of(depth).then(|| turn.lt(end));
        let exists = |sum| whole.unwrap_or_else(|| (turn * depth as i64 + sum).lt(self.depth as i64));
        for (part, from) in self.parts.iter().zip(from) {
            let to = s.number((stage * self.stage() + part.first) as i64);
            part.copy(s, (self.array, to), from + after as i64 * part.advance, &exists)?;
        }
        s.emitter.end_copy_group()
    }

    /// Adds the products of a stage.
    fn multiply(&self, s: &FusedEmitter<'e, 'ctx, '_>, stage: u64, sums: &mut [Value<'e, 'ctx>]) -> Result<()> {
        let [left, right] = &self.parts;
        for step in 0..self.tiling.depth / self.unit.depth() {
            let load = |part: &MultistagePart<'e, 'ctx>, side| -> Result<Vec<_>> {
                let first = s.number((stage * self.stage() + part.first) as i64);
                let groups = 0..self.groups(side);
                groups.map(|group| self.factors(s, part.load(s, (self.array, first), (group, step))?)).collect()
            };
            let lefts = load(left, MatmulSide::Left)?;
            let rights = load(right, MatmulSide::Right)?;
            let rights: Vec<_> = rights.into_iter().flat_map(|[a, b, c, d]| [[a, b], [c, d]]).collect();
            for (number, sums) in sums.chunks_exact_mut(4).enumerate() {
                let (row, column) = (number / rights.len(), number % rights.len());
                let before = [0, 1, 2, 3].map(|i| sums[i].lanes());
                let after = s.emitter.multiply_matrices(self.unit, lefts[row], rights[column], before)?;
                for (sum, after) in sums.iter_mut().zip(after) {
                    *sum = Value::new(ElementType::F32, after);
                }
            }
        }
        Ok(())
    }

    /// Returns the fragments in the operand type of the tensor core: f32 is rounded to TF32 here.
    fn factors(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        fragments: [Lanes<'e, 'ctx>; MATRICES],
    ) -> Result<[Lanes<'e, 'ctx>; MATRICES]> {
        if self.unit != OperandType::Tf32 {
            return Ok(fragments);
        }
        let mut factors = fragments;
        for factor in &mut factors {
            *factor = s.emitter.round_to_tf32(factor.cast_bits(Scalar::F32))?.cast_bits(Scalar::Int(32));
        }
        Ok(factors)
    }
}
