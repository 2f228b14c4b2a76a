//! Kernels whose every block of threads computes a tile of a matrix product.
//!
//! The operands' parts that a tile needs come through shared memory, some steps of the sum at a time, converted to what sums are
//! computed in, while the steps before are computed: each thread has a small matrix of sums in registers. What comes after the product
//! is computed where a sum is. The scheme is Volkov and Demmel's (Benchmarking GPUs to tune dense linear algebra, 2008).

use inkwell::values::PointerValue;
use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementType, Result};

use super::convolution::{converted, zero};
use super::frame::Frame;
use super::index::{Coord, Symbol};
use super::kernel::{Launch, Writer, counters};
use super::product::{Along, Product, Side};
use super::team::ACCESS_BITS;
use super::window::{raws_of, values_of};
use super::{FusedEmitter, SymbolValue};
use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::simt::Register;

/// Threads along each side of a tile.
const SIDE: u64 = 16;
/// Threads of a block.
const THREADS: u64 = SIDE * SIDE;
/// Tiles that keep a large GPU busy; with fewer, smaller ones are better.
const BUSY: u64 = 128;
/// Rows and columns of sums that a thread has at least.
const LEAST: u64 = 2;

/// The size of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tiling {
    /// Rows and columns of sums that each thread has.
    each: [u64; 2],
    /// Steps of the sum that are in shared memory at a time.
    depth: u64,
}

impl Tiling {
    fn new(product: &Product<'_>) -> Tiling {
        // 32-bit registers of a sum.
        let registers = product.sum_type.byte_width() / 4;
        let mut tiling = match registers {
            0 | 1 => Tiling { each: [8, 8], depth: 16 },
            2 => Tiling { each: [8, 4], depth: 8 },
            _ => Tiling { each: [4, 4], depth: 8 },
        };
        for side in [Side::Left, Side::Right] {
            while tiling.each[side as usize] > LEAST && tiling.size(side) / 2 >= product.extent(side) {
                tiling.each[side as usize] /= 2;
            }
        }
        while tiling.tiles(product) < BUSY && tiling.each != [LEAST; 2] {
            let side = if tiling.each[0] >= tiling.each[1] { 0 } else { 1 };
            tiling.each[side] /= 2;
        }
        tiling
    }

    /// Rows or columns of a tile.
    fn size(self, side: Side) -> u64 {
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

/// The sums of a thread and where they come from.
struct Tile<'e, 'ctx, 'a, 'm> {
    product: &'a Product<'m>,
    tiling: Tiling,
    batch: Vec<Coord>,
    parts: [Part<'e, 'ctx>; 2],
}

/// An operand's part in shared memory, `[depth, rows or columns]`, twice.
struct Part<'e, 'ctx> {
    side: Side,
    /// The tile's first row or column.
    first: Coord,
    /// Neighbours that a thread brings at a time, and which way they lie.
    width: u64,
    along: Along,
    /// Where the thread's first neighbours are in the tile.
    free: Coord,
    sum: Coord,
    /// How often a thread brings neighbours, and how far apart (rows or columns, sums).
    turns: u64,
    step: (u64, u64),
    /// One for each register of an element, with the elements from one step of the sum to the next.
    arrays: Vec<(PointerValue<'ctx>, Scalar)>,
    pitch: u64,
    /// The place of the thread's first neighbours.
    place: Lanes<'e, 'ctx>,
    /// Elements that are read at a time, and the first of this thread.
    lanes: u64,
    read: Lanes<'e, 'ctx>,
}

impl<'m> Writer<'_, 'm> {
    /// Writes the function's body.
    pub(super) fn emit_product<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        product: &Product<'m>,
    ) -> Result<Launch> {
        let tiling = Tiling::new(product);
        let units = tiling.tiles(product);
        let mut s = self.bind(emitter, frame.pointers)?;
        s.set_rows(0);
        let [block, thread] = [Register::Block, Register::Thread].map(|register| emitter.register(register));
        let unit = s.uniform_symbol(block?.zext(64), Some(units));
        let [rows, columns] = [Side::Left, Side::Right].map(|side| tiling.along(product, side));
        // Neighbouring blocks have the same columns, so that these are in the cache.
        let at = counters(&mut s, &Coord::symbol(unit), &[product.batches(), columns, rows])?;
        let batch = counters(&mut s, &at[0], &product.batch)?;
        let thread = Coord::symbol(s.uniform_symbol(thread?.zext(64), Some(THREADS)));
        let (down, across) = s.divide(&thread, SIDE as i64)?;
        let left = Part::new(&mut s, product, tiling, Side::Left, &at[2], (&thread, &down))?;
        let right = Part::new(&mut s, product, tiling, Side::Right, &at[1], (&thread, &across))?;
        let tile = Tile { product, tiling, batch, parts: [left, right] };
        let sums = tile.sums(&mut s)?;
        self.store_tile(&mut s, &tile, [&down, &across], &sums)?;
        Ok(Launch { units, block: Some(THREADS as u32) })
    }

    /// What is computed of the sums, to the results.
    fn store_tile<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        tile: &Tile<'e, 'ctx, '_, 'm>,
        thread: [&Coord; 2],
        sums: &[Value<'e, 'ctx>],
    ) -> Result<()> {
        let [left, right] = &tile.parts;
        let last = tile.product.free[1].last().copied().unwrap_or(1);
        let together = if last.is_multiple_of(right.lanes) { right.lanes } else { 1 };
        let vectors = tile.tiling.each[1] / right.lanes;
        for row in 0..tile.tiling.each[0] {
            let row_at = left.own(thread[0], row);
            for column in (0..tile.tiling.each[1]).step_by(together as usize) {
                let sum = sums[(row * vectors + column / right.lanes) as usize];
                let sum = sum.slice((column % right.lanes) as u32, together as u32);
                self.store_sums(s, tile, [&row_at, &right.own(thread[1], column)], sum)?;
            }
        }
        Ok(())
    }

    /// The same for neighbouring sums of a row, if they are in the result.
    fn store_sums<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        tile: &Tile<'e, 'ctx, '_, 'm>,
        at: [&Coord; 2],
        sum: Value<'e, 'ctx>,
    ) -> Result<()> {
        let product = tile.product;
        let extents = [Side::Left, Side::Right].map(|side| product.extent(side));
        let mut inside = None;
        for (at, extent) in at.into_iter().zip(extents) {
            s.require_between(&mut inside, at, 0, extent as i64 - 1)?;
        }
        let inside = inside.map_or(s.number(0).eq(0), |guard| guard.mask);
        s.when(inside, &[], |s| {
            // New symbols: what depends on them must not be computed in front of the test.
            let mut coords = Vec::with_capacity(2);
            for (at, extent) in at.into_iter().zip(extents) {
                let number = s.number_of(at)?;
                coords.push(Coord::symbol(s.uniform_symbol(s.lanes_of(number), Some(extent))));
            }
            let rows = counters(s, &coords[0], &product.free[0])?;
            let mut columns = counters(s, &coords[1], &product.free[1])?;
            s.as_lanes(&mut columns, sum.width().into(), &product.free[1])?;
            let index = product.result_index(&tile.batch, &rows, &columns);
            let value = converted(s.emitter, sum, product.element_type)?;
            let result = s.graph()[product.id].shape().expect_array()?.element_type();
            let value = converted(s.emitter, value, result)?;
            s.values.insert((product.id, index.clone(), 0), vec![value]);
            self.store_all(s, &index).map(|()| Vec::new())
        })?;
        Ok(())
    }
}

impl<'e, 'ctx> Part<'e, 'ctx> {
    fn new(
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        product: &Product<'_>,
        tiling: Tiling,
        side: Side,
        tile: &Coord,
        (thread, own): (&Coord, &Coord),
    ) -> Result<Self> {
        let (size, depth, near) = (tiling.size(side), tiling.depth, product.neighbours[side as usize]);
        let bytes = s.graph()[product.operands[side as usize]].shape().expect_array()?.element_type().byte_width();
        let longest = if near.along == Along::Sums { depth } else { size };
        let mut width = (u64::from(ACCESS_BITS / 8) / bytes as u64).clamp(1, longest);
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
        let part_bytes = product.sum_type.real_part().byte_width() as u64;
        let lanes = (u64::from(ACCESS_BITS / 8) / part_bytes).min(tiling.each[side as usize]);
        // Rows of one step begin at other banks than those of the next, each at a multiple of the widest access.
        let pitch = size + u64::from(ACCESS_BITS / 8) / part_bytes;
        let mut arrays = Vec::new();
        for raw in zero(s.emitter, product.sum_type).raws() {
            let scalar = s.emitter.lanes(raw).scalar();
            arrays.push((s.emitter.shared_array(scalar, 2 * depth * pitch)?, scalar));
        }
        let place = s.number_of(&sum.clone().scaled(pitch as i64).plus(&free))?;
        let read = s.number_of(&own.clone().scaled(lanes as i64))?;
        let (place, read) = (s.lanes_of(place), s.lanes_of(read));
        let (first, turns) = (tile.clone().scaled(size as i64), size * depth / width / THREADS);
        Ok(Part { side, first, width, along: near.along, free, sum, turns, step, arrays, pitch, place, lanes, read })
    }

    /// The row or column of a thread's sum: it has `lanes` neighbours, then those that far from them.
    fn own(&self, thread: &Coord, number: u64) -> Coord {
        let (group, lane) = (number / self.lanes, number % self.lanes);
        let within = thread.clone().scaled(self.lanes as i64).shifted((group * SIDE * self.lanes + lane) as i64);
        self.first.clone().plus(&within)
    }

    /// Elements, as sums are computed in, of the steps of that number.
    fn bring<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        tile: &Tile<'e, 'ctx, '_, 'm>,
        number: &Coord,
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
            let value = converted(s.emitter, value, product.element_type)?;
            values.push(converted(s.emitter, value, product.sum_type)?);
        }
        Ok(values)
    }

    /// Puts what was brought into one half of shared memory, which begins at an element.
    fn put(&self, s: &FusedEmitter<'e, 'ctx, '_>, half: Lanes<'e, 'ctx>, values: &[Value<'e, 'ctx>]) {
        for (turn, value) in (0..).zip(values) {
            let place = half + self.place + (turn * (self.step.0 + self.step.1 * self.pitch)) as i64;
            for (raw, &(array, scalar)) in value.raws().into_iter().zip(&self.arrays) {
                let lanes = s.emitter.lanes(raw);
                let (piece, step) = match self.along {
                    Along::Free => ((ACCESS_BITS / scalar.bits()).min(lanes.width()), 1),
                    Along::Sums => (1, self.pitch),
                };
                for first in (0..lanes.width()).step_by(piece as usize) {
                    let at = place + (u64::from(first) * step) as i64;
                    s.emitter.store_aligned_lanes(lanes.slice(first, piece), array, at);
                }
            }
        }
    }

    /// The elements of one step that the thread computes with.
    fn take(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        (half, step): (Lanes<'e, 'ctx>, u64),
        (ty, count): (ElementType, u64),
    ) -> Vec<Value<'e, 'ctx>> {
        let group = |number: u64| {
            let at = half + self.read + (step * self.pitch + number * SIDE * self.lanes) as i64;
            let load = |&(array, scalar): &(PointerValue<'ctx>, Scalar)| {
                s.emitter.load_aligned_lanes(array, at, scalar, self.lanes as u32).raw()
            };
            Value::from_raws(s.emitter, ty, &self.arrays.iter().map(load).collect::<Vec<_>>())
        };
        (0..count / self.lanes).map(group).collect()
    }
}

impl<'e, 'ctx, 'm> Tile<'e, 'ctx, '_, 'm> {
    /// The thread's sums: for each row, vectors of columns.
    fn sums(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>) -> Result<Vec<Value<'e, 'ctx>>> {
        let (ty, [left, right]) = (self.product.sum_type, &self.parts);
        let steps = self.product.depth().div_ceil(self.tiling.depth);
        for part in &self.parts {
            let values = part.bring(s, self, &Coord::default())?;
            part.put(s, s.number(0), &values);
        }
        s.emitter.barrier()?;
        let vectors = self.tiling.each[0] * (self.tiling.each[1] / right.lanes);
        let start = vec![zero(s.emitter, ty).splat(right.lanes as u32); vectors as usize];
        let types = vec![ty; start.len()];
        let range = s.full_range(steps, 1);
        let raws = s.for_each(range, raws_of(&start), &mut |s, step, carried| {
            let mut sums = values_of(s, &types, carried);
            let SymbolValue::Uniform(step) = s.symbol_value(step) else { return Ok(carried.to_vec()) };
            // The last one is brought twice, rather than a branch around it.
            let next = (step + 1).smin(steps as i64 - 1);
            let next = s.computed(next, None, Some(steps), s.depth());
            let brought = [left.bring(s, self, &next)?, right.bring(s, self, &next)?];
            let odd = step & 1;
            let half = |part: &Part<'e, 'ctx>, odd: Lanes<'e, 'ctx>| odd * (self.tiling.depth * part.pitch) as i64;
            self.add(s, [half(left, odd), half(right, odd)], &mut sums)?;
            for (part, values) in self.parts.iter().zip(&brought) {
                part.put(s, half(part, odd ^ 1), values);
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
    fn as_lanes(&mut self, coords: &mut [Coord], width: u64, extents: &[u64]) -> Result<()> {
        let (Some(last), Some(&extent), true) = (coords.last_mut(), extents.last(), width > 1) else { return Ok(()) };
        let number = self.number_of(last)?;
        let value = SymbolValue::Lane { base: self.lanes_of(number), width: width as u32, mask: None };
        let level = last.level(&self.symbols);
        *last = Coord::symbol(self.define(Symbol { extent: Some(extent), level }, value));
        Ok(())
    }
}
