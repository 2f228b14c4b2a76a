//! Kernels whose every block of threads computes a tile of a matrix product.
//!
//! The operands' parts that a tile needs come through shared memory, some steps of the sum at a time, converted to what
//! sums are computed in, while the steps before are computed: each thread has a small matrix of sums in registers. What
//! comes after the product is computed where a sum is. The scheme is Volkov and Demmel's (Benchmarking GPUs to tune
//! dense linear algebra, 2008). Narrow floats stay as they are, and f32 that may be is rounded to TF32 there, once; the
//! matrix unit multiplies them, if there is one: see `mma.rs`.

use inkwell::values::PointerValue;
use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementType, Result};

use super::mma::WarpPlace;
use super::split_k::{BUSY_BLOCKS, Cut, Sink};
use super::{Along, Product, Side};
use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::core::convolution::{converted, zero};
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::{FusedEmitter, SymbolValue};
use crate::fused::kernel::{Launch, Writer, counters};
use crate::fused::loops::affine::{AffineExpr, Symbol};
use crate::fused::loops::frame::Frame;
use crate::fused::loops::nest::Range;
use crate::fused::simt::thread_group::ACCESS_BITS;
use crate::lanes::{Lanes, Scalar};
use crate::matrix_unit::Factors;
use crate::simt::Register;
use crate::target::Target;

/// Threads along each side of a tile.
const SIDE: u64 = 16;
/// Threads of a block.
pub(crate) const THREADS: u64 = SIDE * SIDE;
/// Tiles that keep a large GPU busy; with fewer, smaller ones are better.
const BUSY: u64 = 128;
/// Rows and columns of sums that a thread has at least.
const LEAST: u64 = 2;
/// Turns of the loop over the sum that a part of it has at least: fewer take less time than the launch that adds up the
/// parts, and the parts' sums of the largest tile are more bytes than what they are made of.
const LEAST_TURNS: u64 = 32;

/// The size of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiling {
    /// Rows and columns of sums that each thread has, if it has those of a small matrix; a tile has as many times
    /// [`SIDE`].
    pub each: [u64; 2],
    /// Steps of the sum that are in shared memory at a time.
    pub depth: u64,
    /// What warps multiply as matrices.
    pub unit: Option<Factors>,
    /// The parts of the sum that are other tiles.
    pub cut: Cut,
}

impl Tiling {
    /// Tiles of whole sums.
    pub fn new(product: &Product<'_>, target: &Target) -> Tiling {
        Tiling::largest(product, target).with_tiles(product, BUSY)
    }

    /// Tiles of parts of the sums. `None` where there are enough of whole ones, or sums are short.
    pub fn cut(product: &Product<'_>, target: &Target) -> Option<Tiling> {
        if Tiling::new(product, target).tiles(product) >= BUSY {
            return None;
        }
        let largest = Tiling::largest(product, target);
        let least = LEAST_TURNS * largest.depth;
        let tiling = largest.with_tiles(product, BUSY.div_ceil((product.depth() / least).max(1)));
        // The loop goes back and forth between two halves of shared memory, so that parts begin at an even turn.
        let cut = Cut::new(product.depth(), BUSY_BLOCKS / tiling.tiles(product), (2 * tiling.depth, least));
        (cut.parts > 1).then_some(Tiling { cut, ..tiling })
    }

    /// The largest tiles that the result fills.
    fn largest(product: &Product<'_>, target: &Target) -> Tiling {
        let unit = product.factors.filter(|&factors| target.has_matrix_unit(factors));
        // 32-bit registers of a sum.
        let registers = product.sum_type.byte_width() / 4;
        let (each, depth) = match (unit, registers) {
            (Some(factors), _) => ([8, 8], 2 * factors.depth()),
            (None, 0 | 1) => ([8, 8], 8),
            (None, 2) => ([8, 4], 8),
            (None, _) => ([4, 4], 8),
        };
        let mut tiling = Tiling { each, depth, unit, cut: Cut::whole(product.depth()) };
        for side in [Side::Left, Side::Right] {
            while tiling.each[side as usize] > LEAST && tiling.size(side) / 2 >= product.extent(side) {
                tiling.each[side as usize] /= 2;
            }
        }
        tiling
    }

    /// Tiles as small as they must be that there are so many.
    fn with_tiles(mut self, product: &Product<'_>, least: u64) -> Tiling {
        while self.tiles(product) < least && self.each != [LEAST; 2] {
            let side = if self.each[0] >= self.each[1] { 0 } else { 1 };
            self.each[side] /= 2;
        }
        self
    }

    /// Rows or columns of a tile.
    pub fn size(self, side: Side) -> u64 {
        self.each[side as usize] * SIDE
    }

    /// Tiles along a side of the result.
    fn along(self, product: &Product<'_>, side: Side) -> u64 {
        product.extent(side).div_ceil(self.size(side))
    }

    fn tiles(self, product: &Product<'_>) -> u64 {
        let [rows, columns] = [Side::Left, Side::Right].map(|side| self.along(product, side));
        product.batches().saturating_mul(rows).saturating_mul(columns)
    }
}

/// Adds products to a thread's sums.
type Add<'a, 'e, 'ctx, 'm> =
    dyn FnMut(&FusedEmitter<'e, 'ctx, 'm>, [Lanes<'e, 'ctx>; 2], &mut [Value<'e, 'ctx>]) -> Result<()> + 'a;

/// The sums of a thread and where they come from.
pub(crate) struct Tile<'e, 'ctx, 'a, 'm> {
    pub product: &'a Product<'m>,
    pub tiling: Tiling,
    batch: Vec<AffineExpr>,
    /// The number of the part of the sum.
    part: AffineExpr,
    pub parts: [Part<'e, 'ctx>; 2],
}

/// An operand's part in shared memory, twice.
pub(crate) struct Part<'e, 'ctx> {
    pub side: Side,
    /// The type that elements have there.
    kept: ElementType,
    /// Whether they are rounded to TF32.
    rounds: bool,
    /// The tile's first row or column.
    pub first: AffineExpr,
    /// Neighbours that a thread brings at a time, and which way they lie.
    width: u64,
    pub along: Along,
    /// Where the thread's first neighbours are in the tile.
    free: AffineExpr,
    sum: AffineExpr,
    /// How often a thread brings neighbours, and how far apart (rows or columns, sums).
    turns: u64,
    step: (u64, u64),
    /// One for each part of an element.
    pub arrays: Vec<(PointerValue<'ctx>, Scalar)>,
    /// Elements from one row or column to the next, and from one step of the sum to the next.
    pub stride: (u64, u64),
    /// Elements from one half to the other.
    half: u64,
    /// The place of the thread's first neighbours.
    place: Lanes<'e, 'ctx>,
    /// Elements that are read at a time, and the first of this thread.
    pub lanes: u64,
    pub read: Lanes<'e, 'ctx>,
}

impl<'m> Writer<'_, 'm> {
    /// Writes the function's body.
    pub(crate) fn emit_product<'e, 'ctx>(
        &self,
        emitter: &'e Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        product: &Product<'m>,
        tiling: Tiling,
    ) -> Result<Launch> {
        let units = tiling.tiles(product) * tiling.cut.parts;
        let scratch = frame.pointers.last().copied();
        let mut s = self.bind(emitter, frame.pointers)?;
        s.set_rows(0);
        let [block, thread] = [Register::Block, Register::Thread].map(|register| emitter.register(register));
        let unit = s.uniform_symbol(block?.zext(64), Some(units));
        let [rows, columns] = [Side::Left, Side::Right].map(|side| tiling.along(product, side));
        // Neighbouring blocks have the same columns, so that these are in the cache.
        let at = counters(&mut s, &AffineExpr::symbol(unit), &[tiling.cut.parts * product.batches(), columns, rows])?;
        let (part, batch) = tiling.cut.divide(&mut s, &at[0], product.batches())?;
        let batch = counters(&mut s, &batch, &product.batch)?;
        let thread = AffineExpr::symbol(s.uniform_symbol(thread?.zext(64), Some(THREADS)));
        let warp = tiling.unit.map(|unit| Ok((unit, WarpPlace::new(&mut s, tiling, &thread)?))).transpose()?;
        let own = match &warp {
            Some((_, place)) => (place.row.clone(), place.column.clone()),
            None => s.divide(&thread, SIDE as i64)?,
        };
        let left = Part::new(&mut s, product, tiling, Side::Left, &at[2], (&thread, &own.0))?;
        let right = Part::new(&mut s, product, tiling, Side::Right, &at[1], (&thread, &own.1))?;
        let tile = Tile { product, tiling, batch, part, parts: [left, right] };
        let results = match &warp {
            None => {
                let add = &mut |s: &FusedEmitter<'e, 'ctx, 'm>, halves, sums: &mut [_]| tile.add(s, halves, sums);
                let sums = tile.sums(&mut s, tile.vectors(), add)?;
                tile.places([&own.0, &own.1]).into_iter().zip(sums).collect()
            }
            Some((unit, place)) => {
                let read = tile.pieces(&mut s, place)?;
                let add = &mut |s: &FusedEmitter<'e, 'ctx, 'm>, halves, sums: &mut [_]| {
                    tile.multiply_by_warps(s, *unit, (read, halves), sums)
                };
                let sums = tile.sums(&mut s, tile.warp_vectors(), add)?;
                tile.warp_results(place, &sums)
            }
        };
        let sink = Sink::new(product, &tile.batch, tiling.cut, (&at[0], scratch))?;
        for ([row, column], sum) in &results {
            self.store_vector(&mut s, &sink, [row, column], *sum)?;
        }
        Ok(Launch { units, block: Some(THREADS as u32) })
    }

    /// What is computed of neighbouring sums of a row, to the results: together where the result has as many
    /// neighbours, or none of them.
    fn store_vector<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        sink: &Sink<'_, 'ctx, 'm>,
        [row, column]: [&AffineExpr; 2],
        sum: Value<'e, 'ctx>,
    ) -> Result<()> {
        let last = sink.product.free[1].last().copied().unwrap_or(1);
        let together = if last.is_multiple_of(sum.width().into()) { sum.width() } else { 1 };
        for first in (0..sum.width()).step_by(together as usize) {
            let at = [row.clone(), column.clone().shifted(first.into())];
            self.store_sums(s, sink, at, sum.slice(first, together))?;
        }
        Ok(())
    }

    /// The same for neighbouring sums of a row, of which the row and the first column are given, if they are in the
    /// result.
    pub(crate) fn store_sums<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        sink: &Sink<'_, 'ctx, 'm>,
        at: [AffineExpr; 2],
        sum: Value<'e, 'ctx>,
    ) -> Result<()> {
        let extents = [Side::Left, Side::Right].map(|side| sink.product.extent(side));
        let mut inside = None;
        for (at, extent) in at.iter().zip(extents) {
            s.require_between(&mut inside, at, 0, extent as i64 - 1)?;
        }
        let inside = inside.map_or(s.number(0).eq(0), |guard| guard.mask);
        s.when(inside, &[], |s| {
            // New symbols: what depends on them must not be computed in front of the test.
            let mut exprs = Vec::with_capacity(2);
            for (at, extent) in at.iter().zip(extents) {
                let number = s.number_of(at)?;
                exprs.push(AffineExpr::symbol(s.uniform_symbol(s.lanes_of(number), Some(extent))));
            }
            match &sink.part {
                Some(part) => part.store(s, sink.product, &exprs, sum)?,
                None => self.store_results(s, (sink.product, sink.batch), &exprs, sum)?,
            }
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// What is computed of neighbouring sums of a row, of which the row and the first column are given, to the results.
    pub(crate) fn store_results<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (product, batch): (&Product<'m>, &[AffineExpr]),
        at: &[AffineExpr],
        sum: Value<'e, 'ctx>,
    ) -> Result<()> {
        let rows = counters(s, &at[0], &product.free[0])?;
        let mut columns = counters(s, &at[1], &product.free[1])?;
        s.as_lanes(&mut columns, sum.width().into(), &product.free[1])?;
        let index = product.result_index(batch, &rows, &columns);
        let value = converted(s.emitter, sum, product.element_type)?;
        let result = s.graph()[product.id].shape().expect_array()?.element_type();
        let value = converted(s.emitter, value, result)?;
        s.values.insert((product.id, index.clone(), 0), vec![value]);
        self.store_all(s, &index)
    }
}

impl<'e, 'ctx> Part<'e, 'ctx> {
    fn new(
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        product: &Product<'_>,
        tiling: Tiling,
        side: Side,
        tile: &AffineExpr,
        (thread, own): (&AffineExpr, &AffineExpr),
    ) -> Result<Self> {
        let (size, depth, near) = (tiling.size(side), tiling.depth, product.neighbours[side as usize]);
        let ty = s.graph()[product.operands[side as usize]].shape().expect_array()?.element_type();
        let kept = tiling.unit.map_or(product.sum_type, Factors::element_type);
        let rounds = tiling.unit == Some(Factors::Tf32);
        let longest = if near.along == Along::Sums { depth } else { size };
        let mut width = (u64::from(ACCESS_BITS / 8) / ty.byte_width() as u64).clamp(1, longest);
        while width > 1 && !(near.run.is_multiple_of(width) && size * depth / width >= THREADS) {
            width /= 2;
        }
        let (slow, fast) = s.divide(thread, (longest / width) as i64)?;
        let slower = THREADS / (longest / width);
        let fast = fast.scaled(width as i64);
        let (free, sum, step) = match near.along {
            Along::Sums => (slow, fast, (slower, 0)),
            Along::Free => (fast, slow, (0, slower)),
        };
        let scalars = [Some(zero(s.emitter, kept).stored_lanes()), zero(s.emitter, kept).imaginary()];
        let scalars: Vec<Scalar> = scalars.into_iter().flatten().map(Lanes::scalar).collect();
        let access = u64::from(ACCESS_BITS / scalars.first().map_or(8, |scalar| scalar.bits()));
        // Rows of an array begin at other banks than those next to them, each at a multiple of the widest access. The
        // matrix unit takes pairs along the sum, which then lie together where they come so: pairs of TF32 are as long
        // as two of the others.
        let (stride, half) = match tiling.unit {
            Some(unit) if near.along == Along::Sums => {
                let length = depth + access * (2 / unit.in_a_piece());
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

    /// The row or column of a thread's sum: it has `lanes` neighbours, then those that far from them.
    fn own(&self, thread: &AffineExpr, number: u64) -> AffineExpr {
        let (group, lane) = (number / self.lanes, number % self.lanes);
        let within = thread.clone().scaled(self.lanes as i64).shifted((group * SIDE * self.lanes + lane) as i64);
        self.first.clone().plus(&within)
    }

    /// Elements, as sums are computed in, of the steps of that number.
    fn bring<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        tile: &Tile<'e, 'ctx, '_, 'm>,
        number: &AffineExpr,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let product = tile.product;
        let operand = product.operands[self.side as usize];
        let ty = s.graph()[operand].shape().expect_array()?.element_type();
        let free_dims = &product.free[self.side as usize];
        let mut values = Vec::with_capacity(self.turns as usize);
        for turn in 0..self.turns {
            let free = self.first.clone().plus(&self.free).shifted((turn * self.step.0) as i64);
            let sum = number.clone().scaled(tile.tiling.depth as i64).plus(&self.sum);
            let sum = sum.shifted((turn * self.step.1) as i64);
            let mut condition = None;
            s.require_between(&mut condition, &free, 0, product.extent(self.side) as i64 - 1)?;
            s.require_between(&mut condition, &sum, 0, product.depth() as i64 - 1)?;
            let mut frees = counters(s, &free, free_dims)?;
            let mut sums = counters(s, &sum, &product.sums)?;
            match self.along {
                Along::Free => s.as_lanes(&mut frees, self.width, free_dims)?,
                Along::Sums => s.as_lanes(&mut sums, self.width, &product.sums)?,
            }
            let index = product.operand_index(s, self.side, (&tile.batch, &frees, &sums), &mut condition)?;
            let zero = zero(s.emitter, ty);
            let value = s.choose(condition, self.width as u32, operand, &index, zero)?.splat(self.width as u32);
            let value = match self.kept == ty {
                true => value,
                false => converted(s.emitter, value, product.element_type)?,
            };
            values.push(converted(s.emitter, value, self.kept)?);
        }
        Ok(values)
    }

    /// Puts what was brought into one half of shared memory, which begins at an element.
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
                let piece = if step == 1 { (ACCESS_BITS / scalar.bits()).min(lanes.width()) } else { 1 };
                for first in (0..lanes.width()).step_by(piece as usize) {
                    let at = place + (u64::from(first) * step) as i64;
                    s.emitter.store_aligned_lanes(lanes.slice(first, piece), array, at);
                }
            }
        }
        Ok(())
    }

    /// The elements of one step that the thread computes with.
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
    /// Vectors of sums of a thread that has a small matrix: how many, and of how many columns.
    fn vectors(&self) -> (u64, u64) {
        let lanes = self.parts[1].lanes;
        (self.tiling.each[0] * (self.tiling.each[1] / lanes), lanes)
    }

    /// The row and the first column of each of them.
    fn places(&self, thread: [&AffineExpr; 2]) -> Vec<[AffineExpr; 2]> {
        let [left, right] = &self.parts;
        let columns = || (0..self.tiling.each[1]).step_by(right.lanes as usize);
        let row = |row| columns().map(move |column| [left.own(thread[0], row), right.own(thread[1], column)]);
        (0..self.tiling.each[0]).flat_map(row).collect()
    }

    /// The thread's sums, so many vectors of so many columns; `add` adds the products of the steps in one half of
    /// shared memory, given where it begins in each operand's.
    fn sums(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (vectors, lanes): (u64, u64),
        add: &mut Add<'_, 'e, 'ctx, 'm>,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let (ty, [left, right]) = (self.product.sum_type, &self.parts);
        let steps = self.product.depth().div_ceil(self.tiling.depth);
        let [begin, end] = self.tiling.cut.bounds(s, &self.part, (self.product.depth(), self.tiling.depth))?;
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
            // The last one is brought twice, rather than a branch around it.
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

    /// Adds the products of the steps in one half of shared memory.
    fn add(
        &self,
        s: &FusedEmitter<'e, 'ctx, 'm>,
        halves: [Lanes<'e, 'ctx>; 2],
        sums: &mut [Value<'e, 'ctx>],
    ) -> Result<()> {
        let ([left, right], ty) = (&self.parts, self.product.sum_type);
        for step in 0..self.tiling.depth {
            let rows = left.take(s, (halves[0], step), (ty, self.tiling.each[0]));
            let columns = right.take(s, (halves[1], step), (ty, self.tiling.each[1]));
            let rows = rows.iter().flat_map(|rows| (0..rows.width()).map(|lane| rows.slice(lane, 1)));
            for (row, sums) in rows.zip(sums.chunks_mut(columns.len())) {
                for (&column, sum) in columns.iter().zip(sums) {
                    let product = elemental::binary(s.emitter, BinaryOp::Multiply, row.splat(column.width()), column)?;
                    *sum = elemental::binary(s.emitter, BinaryOp::Add, *sum, product)?;
                }
            }
        }
        Ok(())
    }
}

impl<'e, 'ctx> FusedEmitter<'e, 'ctx, '_> {
    /// Makes the last of some coordinates one of so many lanes, of which it is the first.
    pub(crate) fn as_lanes(&mut self, exprs: &mut [AffineExpr], width: u64, extents: &[u64]) -> Result<()> {
        let (Some(last), Some(&extent), true) = (exprs.last_mut(), extents.last(), width > 1) else { return Ok(()) };
        let number = self.number_of(last)?;
        let value = SymbolValue::Lane { base: self.lanes_of(number), width: width as u32, mask: None };
        let level = last.level(&self.symbols);
        *last = AffineExpr::symbol(self.define(Symbol { extent: Some(extent), level }, value));
        Ok(())
    }
}
