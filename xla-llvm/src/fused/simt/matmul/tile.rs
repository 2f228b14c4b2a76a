//! Tile of a matmul whose operands are double-buffered in shared memory; each thread accumulates a small matrix of
//! sums.

use inkwell::values::PointerValue;
use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementType, Result};

use crate::elemental::{self, Value};
use crate::fused::contraction::matmul::{Along, Matmul, MatmulSide};
use crate::fused::core::addressing::Addressing;
use crate::fused::core::convolution::{converted, zero};
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::range::Range;
use crate::fused::loops::variables::counters;
use crate::fused::simt::matmul::tiling::{THREADS, Tiling};
use crate::fused::tuning::matmul::SIDE;
use crate::fused::tuning::threads::ACCESS_BITS;
use crate::fused::value::SymbolValue;
use crate::lanes::{Lanes, Scalar};
use crate::mma::OperandType;

/// Callback that adds the products of a buffer to a thread's accumulators.
type Add<'a, 'e, 'ctx, 'm> =
    dyn FnMut(&FusedEmitter<'e, 'ctx, 'm>, [Lanes<'e, 'ctx>; 2], &mut [Value<'e, 'ctx>]) -> Result<()> + 'a;

/// Tile of a matmul, as seen by a thread, with the parts of both operands.
pub(crate) struct Tile<'e, 'ctx, 'a, 'm> {
    pub matmul: &'a Matmul<'m>,
    pub tiling: Tiling,
    pub batch: Vec<AffineExpr>,
    /// Number of the split-K part.
    pub part: AffineExpr,
    pub parts: [Part<'e, 'ctx>; 2],
}

/// Tile of an operand in shared memory, double-buffered.
pub(crate) struct Part<'e, 'ctx> {
    pub side: MatmulSide,
    /// Element type in shared memory.
    kept: ElementType,
    /// Whether elements are rounded to TF32.
    rounds: bool,
    /// First row or column of the tile.
    pub first: AffineExpr,
    /// Number of contiguous elements per load (`width`), and their direction (`along`).
    width: u64,
    pub along: Along,
    /// Position in the tile of the thread's first load: row or column (`free`), and step of K (`sum`).
    free: AffineExpr,
    sum: AffineExpr,
    /// Number of loads per thread (`turns`), and the distance between them (`step`: rows or columns, steps of K).
    turns: u64,
    step: (u64, u64),
    /// One array for each component of an element (real and imaginary).
    pub arrays: Vec<(PointerValue<'ctx>, Scalar)>,
    /// Strides in elements: between rows or columns, and between steps of K.
    pub stride: (u64, u64),
    /// Number of elements per buffer.
    half: u64,
    /// Position in the buffer of the thread's first store.
    place: Lanes<'e, 'ctx>,
    /// Number of elements per read from shared memory (`lanes`), and the position of this thread's first one (`read`).
    pub lanes: u64,
    pub read: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Part<'e, 'ctx> {
    pub fn new(
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        matmul: &Matmul<'_>,
        tiling: Tiling,
        side: MatmulSide,
        tile: &AffineExpr,
        (thread, own): (&AffineExpr, &AffineExpr),
    ) -> Result<Self> {
        let (size, depth, near) = (tiling.size(side), tiling.depth, matmul.neighbours[side as usize]);
        let ty = s.graph()[matmul.operands[side as usize]].shape().expect_array()?.element_type();
        let kept = tiling.unit.map_or(matmul.accumulator_type, OperandType::element_type);
        let rounds = tiling.unit == Some(OperandType::Tf32);
        let longest = if near.along == Along::K { depth } else { size };
        let mut width = (u64::from(ACCESS_BITS / 8) / ty.byte_width() as u64).clamp(1, longest);
        while width > 1 && !(near.run.is_multiple_of(width) && size * depth / width >= THREADS) {
            width /= 2;
        }
        let (slow, fast) = s.divide(thread, (longest / width) as i64)?;
        let slower = THREADS / (longest / width);
        let fast = fast.scaled(width as i64);
        let (free, sum, step) = match near.along {
            Along::K => (slow, fast, (slower, 0)),
            Along::Free => (fast, slow, (0, slower)),
        };
        let scalars = [Some(zero(s.emitter, kept).stored_lanes()), zero(s.emitter, kept).imaginary()];
        let scalars: Vec<Scalar> = scalars.into_iter().flatten().map(Lanes::scalar).collect();
        let access = u64::from(ACCESS_BITS / scalars.first().map_or(8, |scalar| scalar.bits()));
        // Padding: adjacent rows of an array start in different banks, each aligned to the widest access. The tensor
        // core takes pairs along K, which are contiguous here if they are in the operand. Pairs of TF32 are twice as
        // long as pairs of 16-bit floats.
        let (stride, half) = match tiling.unit {
            Some(unit) if near.along == Along::K => {
                let length = depth + access * (2 / unit.in_a_fragment());
                ((length, 1), size * length)
            }
            Some(_) | None => ((1, size + access), depth * (size + access)),
        };
        let mut arrays = Vec::new();
        for scalar in scalars {
            arrays.push((s.emitter.shared_array(scalar, 2 * half)?, scalar));
        }
        let lanes = access.min(tiling.each[side as usize]);
        let place = free.clone().scaled(stride.0 as i64).plus(&sum.clone().scaled(stride.1 as i64));
        let (place, read) = (s.number_of(&place)?, s.number_of(&own.clone().scaled(lanes as i64))?);
        let (place, read) = (s.lanes_of(place), s.lanes_of(read));
        let (first, turns) = (tile.clone().scaled(size as i64), size * depth / width / THREADS);
        let along = near.along;
        Ok(Part {
            side,
            kept,
            rounds,
            first,
            width,
            along,
            free,
            sum,
            turns,
            step,
            arrays,
            stride,
            half,
            place,
            lanes,
            read,
        })
    }

    /// Returns the row or column of a thread's sum with index `number`. The thread has groups of `lanes` adjacent ones;
    /// the stride between groups is `SIDE * lanes`.
    fn own(&self, thread: &AffineExpr, number: u64) -> AffineExpr {
        let (group, lane) = (number / self.lanes, number % self.lanes);
        let within = thread.clone().scaled(self.lanes as i64).shifted((group * SIDE * self.lanes + lane) as i64);
        self.first.clone().plus(&within)
    }

    /// Loads the thread's elements of block `number` of K, converted to the type in shared memory.
    fn bring<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        tile: &Tile<'e, 'ctx, '_, 'm>,
        number: &AffineExpr,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let matmul = tile.matmul;
        let operand = matmul.operands[self.side as usize];
        let ty = s.graph()[operand].shape().expect_array()?.element_type();
        let free_dims = &matmul.free[self.side as usize];
        let mut values = Vec::with_capacity(self.turns as usize);
        for turn in 0..self.turns {
            let free = self.first.clone().plus(&self.free).shifted((turn * self.step.0) as i64);
            let sum = number.clone().scaled(tile.tiling.depth as i64).plus(&self.sum);
            let sum = sum.shifted((turn * self.step.1) as i64);
            let mut condition = None;
            s.require_up_to(&mut condition, &free, matmul.extent(self.side) as i64 - 1)?;
            s.require_up_to(&mut condition, &sum, matmul.k() as i64 - 1)?;
            let mut frees = counters(s, &free, free_dims)?;
            let mut sums = counters(s, &sum, &matmul.contracting)?;
            match self.along {
                Along::Free => s.as_lanes(&mut frees, self.width, free_dims)?,
                Along::K => s.as_lanes(&mut sums, self.width, &matmul.contracting)?,
            }
            let index = matmul.operand_index(s, self.side, (&tile.batch, &frees, &sums), &mut condition)?;
            let zero = zero(s.emitter, ty);
            let value = s.choose(condition, self.width as u32, operand, &index, zero)?.splat(self.width as u32);
            let value = match self.kept == ty {
                true => value,
                false => converted(s.emitter, value, matmul.element_type)?,
            };
            values.push(converted(s.emitter, value, self.kept)?);
        }
        Ok(values)
    }

    /// Stores loaded values into the buffer of shared memory that begins at element `half`.
    fn put(&self, s: &FusedEmitter<'e, 'ctx, '_>, half: Lanes<'e, 'ctx>, values: &[Value<'e, 'ctx>]) -> Result<()> {
        for (turn, &value) in (0..).zip(values) {
            let value = match self.rounds {
                true => Value::new(self.kept, s.emitter.round_to_tf32(value.lanes())?),
                false => value,
            };
            let shift = turn * (self.step.0 * self.stride.0 + self.step.1 * self.stride.1);
            let place = half + self.place + shift as i64;
            let parts = [Some(value.stored_lanes()), value.imaginary()];
            for (lanes, &(array, scalar)) in parts.into_iter().flatten().zip(&self.arrays) {
                let step = if self.along == Along::Free { self.stride.0 } else { self.stride.1 };
                let vector = if step == 1 { (ACCESS_BITS / scalar.bits()).min(lanes.width()) } else { 1 };
                for first in (0..lanes.width()).step_by(vector as usize) {
                    let at = place + (u64::from(first) * step) as i64;
                    s.emitter.store_aligned_lanes(lanes.slice(first, vector), array, at);
                }
            }
        }
        Ok(())
    }

    /// Loads the thread's elements of one step of K from shared memory.
    fn take(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        (half, step): (Lanes<'e, 'ctx>, u64),
        (ty, count): (ElementType, u64),
    ) -> Vec<Value<'e, 'ctx>> {
        let group = |number: u64| {
            let at = half + self.read + (step * self.stride.1 + number * SIDE * self.lanes) as i64;
            let load = |&(array, scalar): &(PointerValue<'ctx>, Scalar)| {
                s.emitter.load_aligned_lanes(array, at, scalar, self.lanes as u32).raw()
            };
            Value::from_raws(s.emitter, ty, &self.arrays.iter().map(load).collect::<Vec<_>>())
        };
        (0..count / self.lanes).map(group).collect()
    }
}

impl<'e, 'ctx, 'm> Tile<'e, 'ctx, '_, 'm> {
    /// Returns the number of vectors of a thread's small matrix of sums, and their columns.
    pub fn vectors(&self) -> (u64, u64) {
        let lanes = self.parts[1].lanes;
        (self.tiling.each[0] * (self.tiling.each[1] / lanes), lanes)
    }

    /// Returns the row and the first column of each vector of a thread's sums.
    pub fn places(&self, thread: [&AffineExpr; 2]) -> Vec<[AffineExpr; 2]> {
        let [left, right] = &self.parts;
        let columns = || (0..self.tiling.each[1]).step_by(right.lanes as usize);
        let row = |row| columns().map(move |column| [left.own(thread[0], row), right.own(thread[1], column)]);
        (0..self.tiling.each[0]).flat_map(row).collect()
    }

    /// Emits the double-buffered loop over K, and returns the thread's accumulators: `vectors` vectors of `lanes`
    /// columns. `add` adds the products of the steps in one buffer, given the buffer's offset in the array of each
    /// operand.
    pub fn sums(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (vectors, lanes): (u64, u64),
        add: &mut Add<'_, 'e, 'ctx, 'm>,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let (ty, [left, right]) = (self.matmul.accumulator_type, &self.parts);
        let steps = self.matmul.k().div_ceil(self.tiling.depth);
        let [begin, end] = self.tiling.cut.bounds(s, &self.part, (self.matmul.k(), self.tiling.depth))?;
        let first = self.part.clone().scaled((self.tiling.cut.size / self.tiling.depth) as i64);
        for part in &self.parts {
            let values = part.bring(s, self, &first)?;
            part.put(s, s.number(0), &values)?;
        }
        s.emitter.barrier()?;
        let start = vec![zero(s.emitter, ty).splat(lanes as u32); vectors as usize];
        let types = vec![ty; start.len()];
        let range = Range { start: begin, end, ..s.full_range(steps, 1) };
        let raws = s.for_each(range, raws_of(&start), &mut |s, step, carried| {
            let mut sums = values_of(s, &types, carried);
            let SymbolValue::Uniform(step) = s.symbol_value(step) else { return Ok(carried.to_vec()) };
            // The last block of K is loaded twice, which avoids a branch.
            let next = (step + 1).smin(end - 1);
            let next = s.computed(next, None, Some(steps), s.depth());
            let brought = [left.bring(s, self, &next)?, right.bring(s, self, &next)?];
            let odd = step & 1;
            add(s, [odd * left.half as i64, odd * right.half as i64], &mut sums)?;
            for (part, values) in self.parts.iter().zip(&brought) {
                part.put(s, (odd ^ 1) * part.half as i64, values)?;
            }
            s.emitter.barrier()?;
            Ok(raws_of(&sums))
        })?;
        Ok(values_of(s, &types, &raws))
    }

    /// Adds the products of the steps of K in one buffer of shared memory.
    pub fn add(
        &self,
        s: &FusedEmitter<'e, 'ctx, 'm>,
        halves: [Lanes<'e, 'ctx>; 2],
        sums: &mut [Value<'e, 'ctx>],
    ) -> Result<()> {
        let ([left, right], ty) = (&self.parts, self.matmul.accumulator_type);
        for step in 0..self.tiling.depth {
            let rows = left.take(s, (halves[0], step), (ty, self.tiling.each[0]));
            let columns = right.take(s, (halves[1], step), (ty, self.tiling.each[1]));
            let rows = rows.iter().flat_map(|rows| (0..rows.width()).map(|lane| rows.slice(lane, 1)));
            for (row, sums) in rows.zip(sums.chunks_mut(columns.len())) {
                for (&column, sum) in columns.iter().zip(sums) {
                    let matmul = elemental::binary(s.emitter, BinaryOp::Multiply, row.splat(column.width()), column)?;
                    *sum = elemental::binary(s.emitter, BinaryOp::Add, *sum, matmul)?;
                }
            }
        }
        Ok(())
    }
}
