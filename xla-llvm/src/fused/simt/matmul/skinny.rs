//! Skinny matmuls (GEMV): M or N is small, so that the kernel is bound by the bandwidth of reading the larger operand.
//! All threads read it, each element once.
//!
//! `few` is the side with few rows (or columns), `many` the other one. If `many` is contiguous along K, a thread group
//! takes some of its rows, and each thread some steps of K. If `many` is contiguous along its rows, each thread takes
//! some adjacent rows and some steps of K, and the block reduces the accumulators in shared memory. Decoding in
//! language models has this shape.

use std::fmt;

use inkwell::values::PointerValue;
use xla_hlo::Result;
use xla_hlo::ops::BinaryOp;

use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::matmul::{Along, Matmul, MatmulSide};
use crate::fused::core::combine::Combiner;
use crate::fused::core::convolution::{converted, zero};
use crate::fused::core::window::{raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::{Frame, WorkItems};
use crate::fused::loops::range::Range;
use crate::fused::loops::variables::counters;
use crate::fused::mode::ThreadGroup;
use crate::fused::simt::matmul::cut::{Cut, Sink};
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::device::busy_blocks;
use crate::fused::tuning::matmul::LEAST_EXTENT;
use crate::fused::tuning::row_reduce::WARPS;
use crate::fused::tuning::skinny_matmul::{
    BLOCK_SUMS, BUSY_WARPS, ENOUGH_BLOCKS, GROUP_SUMS, LEAST_BYTES, LEAST_DEPTH, LEAST_TURNS, MOST_GROUP_WARPS,
    MOST_ROWS, MOST_WARPS, SHARED_BYTES,
};
use crate::fused::tuning::threads::ACCESS_BITS;
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Register, Shuffle, WARP};
use crate::target::Target;

/// Plan of a skinny matmul.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SkinnyMatmul {
    many: MatmulSide,
    /// Number of rows of the side with few rows.
    few: u64,
    /// Number of contiguous elements of `many` per load.
    width: u64,
    by: By,
    /// Split of K over work items.
    pub cut: Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum By {
    /// Thread groups of `threads` threads; each computes `rows` rows of `many`.
    Groups { threads: u32, rows: u64 },
    /// Blocks of `warps` warps, with `across` threads along the rows of `many` and `steps` steps of K per iteration.
    Blocks { warps: u64, across: u64, steps: u64 },
}

impl fmt::Display for SkinnyMatmul {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.by {
            By::Groups { threads, rows } => write!(f, "groups of {threads} threads with {rows} rows each"),
            By::Blocks { warps, across, steps } => {
                write!(f, "blocks of {warps} warps, {across} threads along the rows, {steps} steps of K at a time")
            }
        }
    }
}

impl Strategy for SkinnyMatmul {
    fn names() -> &'static [&'static str] {
        &["skinny-matmul"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<SkinnyMatmul>> {
        Ok(choice.only_matmul().and_then(SkinnyMatmul::new))
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_skinny_matmul(emitter, frame, &kernel.matmul()?, *self)
    }
}

impl SkinnyMatmul {
    /// Returns the plan for whole sums. `None` if neither side is skinny, if both are, or if there is too little work
    /// to share.
    pub fn new(matmul: &Matmul<'_>) -> Option<SkinnyMatmul> {
        let has_many = [MatmulSide::Left, MatmulSide::Right].iter().any(|&side| matmul.extent(side) >= LEAST_EXTENT);
        (has_many && SkinnyMatmul::is_skinny(matmul)).then(|| SkinnyMatmul::of(matmul))
    }

    /// Returns the plan for split-K; both sides may be skinny. `None` if whole sums occupy all threads, or K is short.
    pub fn cut(matmul: &Matmul<'_>, target: &Target) -> Option<SkinnyMatmul> {
        if !SkinnyMatmul::is_skinny(matmul) {
            return None;
        }
        let skinny = SkinnyMatmul::of(matmul);
        let work_items = matmul.batches().saturating_mul(skinny.groups(matmul));
        let (wanted, group) = match skinny.by {
            By::Groups { threads, .. } => {
                (BUSY_WARPS / (work_items * u64::from(threads / WARP)), skinny.width * u64::from(threads))
            }
            By::Blocks { warps, across, steps } => {
                (busy_blocks(target) / work_items, warps * u64::from(WARP) / across * steps)
            }
        };
        let cut = Cut::new(matmul.k(), wanted, (group, LEAST_TURNS * group));
        (cut.parts > 1).then_some(SkinnyMatmul { cut, ..skinny })
    }

    /// Returns whether a side is skinny and there is enough work to share.
    pub fn is_skinny(matmul: &Matmul<'_>) -> bool {
        let is_few = |side| (1..LEAST_EXTENT).contains(&matmul.extent(side));
        let has_few = is_few(MatmulSide::Left) || is_few(MatmulSide::Right);
        matmul.is_dot() && has_few && matmul.k() >= LEAST_DEPTH && matmul.is_worthwhile()
    }

    /// Returns the plan for whole sums of a skinny matmul.
    fn of(matmul: &Matmul<'_>) -> SkinnyMatmul {
        let extents = [MatmulSide::Left, MatmulSide::Right].map(|side| matmul.extent(side));
        let many = if extents[0] >= extents[1] { MatmulSide::Left } else { MatmulSide::Right };
        let (few, rows) = (extents[many.other() as usize], extents[many as usize]);
        let cut = Cut::whole(matmul.k());
        let (near, bytes) = (matmul.neighbours[many as usize], matmul.bytes[many as usize]);
        let words = matmul.accumulator_type.byte_width() as u64 / 4;
        let mut width = (u64::from(ACCESS_BITS / 8) / bytes).max(1);
        while !near.run.is_multiple_of(width) {
            width /= 2;
        }
        match near.along {
            Along::K => SkinnyMatmul { many, few, width, by: By::groups(matmul, [few, rows], width, words), cut },
            Along::Free => {
                while width > 1 && few * width * words > BLOCK_SUMS {
                    width /= 2;
                }
                SkinnyMatmul { many, few, width, by: By::blocks(matmul, [few, rows], width, bytes), cut }
            }
        }
    }

    /// Returns the number of work items along `many`.
    fn groups(&self, matmul: &Matmul<'_>) -> u64 {
        let rows = match self.by {
            By::Groups { rows, .. } => rows,
            By::Blocks { across, .. } => across * self.width,
        };
        matmul.extent(self.many).div_ceil(rows)
    }
}

impl By {
    fn groups(matmul: &Matmul<'_>, [few, many]: [u64; 2], width: u64, words: u64) -> By {
        let most = (GROUP_SUMS / (few * words).max(1)).clamp(1, MOST_ROWS);
        let mut rows = 1 << most.ilog2();
        let warps = |rows: u64| matmul.batches().saturating_mul(many.div_ceil(rows));
        while rows > 1 && warps(rows) < BUSY_WARPS / 2 {
            rows /= 2;
        }
        let wanted = (BUSY_WARPS / warps(rows).max(1)).min(matmul.k() / (2 * width * u64::from(WARP)));
        let threads = WARP << wanted.clamp(1, MOST_GROUP_WARPS).ilog2();
        By::Groups { threads, rows }
    }

    fn blocks(matmul: &Matmul<'_>, [few, many]: [u64; 2], width: u64, bytes: u64) -> By {
        let mut across = u64::from(WARP);
        let blocks = |across: u64| matmul.batches().saturating_mul(many.div_ceil(across * width));
        while across * width * bytes > LEAST_BYTES && across > 1 && blocks(across) < ENOUGH_BLOCKS {
            across /= 2;
        }
        let last = matmul.contracting.last().copied().unwrap_or(1);
        let steps = if few <= 2 { 4 } else { 2 };
        let steps = if last.is_multiple_of(steps) { steps } else { 1 };
        let sums = few * width * across * matmul.accumulator_type.byte_width() as u64;
        let members = |warps: u64| warps * u64::from(WARP) / across;
        let mut warps = MOST_WARPS;
        while warps > 1 && (warps * sums > SHARED_BYTES || members(warps) * steps * 2 > matmul.k()) {
            warps /= 2;
        }
        By::Blocks { warps, across, steps }
    }
}

/// Callback that adds the products at an index of K to a thread's accumulators.
type Add<'a, 'e, 'ctx, 'm> =
    dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, &AffineExpr, &mut [Value<'e, 'ctx>]) -> Result<()> + 'a;

/// Share of a matmul that a work item computes.
struct Work<'a, 'm> {
    matmul: &'a Matmul<'m>,
    skinny: SkinnyMatmul,
    batch: Vec<AffineExpr>,
    /// Number of the split-K part.
    part: AffineExpr,
}

impl<'m> FusedKernel<'_, 'm> {
    /// Emits the body of a skinny matmul kernel, or of the first launch of split-K.
    pub(crate) fn emit_skinny_matmul<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        matmul: &Matmul<'m>,
        skinny: SkinnyMatmul,
    ) -> Result<Launch> {
        let scratch = frame.pointers.last().copied();
        let mut s = self.bind(emitter, frame.pointers)?;
        let goal = (matmul, scratch);
        match skinny.by {
            By::Groups { threads, rows } => self.emit_skinny_groups(&mut s, goal, skinny, (threads, rows)),
            By::Blocks { warps, across, steps } => {
                self.emit_skinny_blocks(&mut s, goal, skinny, [warps, across, steps])
            }
        }
    }

    /// Emits the kernel with one work item per thread group; each computes some rows of `many`.
    fn emit_skinny_groups<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (matmul, scratch): (&Matmul<'m>, Option<PointerValue<'ctx>>),
        skinny: SkinnyMatmul,
        (threads, rows): (u32, u64),
    ) -> Result<Launch> {
        let groups = skinny.groups(matmul);
        let parts = skinny.cut.parts * matmul.batches();
        let work_items = parts * groups;
        s.for_work_items(WorkItems::Group { threads }, work_items, &mut |s, item| {
            let group = s.enter_group(threads)?;
            let at = counters(s, &AffineExpr::symbol(item), &[parts, groups])?;
            let work = Work::new(s, matmul, skinny, &at[0])?;
            let sink = Sink::new(matmul, &work.batch, skinny.cut, (&at[0], scratch))?;
            let first = at[1].clone().scaled(rows as i64);
            let sums = work.sums_of_group(s, group, &first, rows)?;
            let sums = s.combined(group, Combiner::Each(BinaryOp::Add), sums)?;
            // Each sum is stored by a different thread, which also computes its epilogue.
            s.when(group.member.ult(sums.len() as i64), &[], |s| {
                let mut sum = sums[0];
                for (number, &other) in (0..).zip(&sums).skip(1) {
                    sum = elemental::select_lanes(group.member.eq(number), other, sum);
                }
                let place = s.uniform_symbol(group.member, Some(sums.len() as u64));
                let (few, row) = s.divide(&AffineExpr::symbol(place), rows as i64)?;
                self.store_sums(s, &sink, work.at(&few, &first.plus(&row)), sum)?;
                Ok(Vec::new())
            })?;
            Ok(())
        })?;
        Ok(match threads {
            WARP => Launch { work_items: work_items.div_ceil(WARPS.into()), block: Some(WARP * WARPS) },
            threads => Launch { work_items, block: Some(threads) },
        })
    }

    /// Emits the kernel with one work item per block; each thread computes adjacent rows of `many`.
    fn emit_skinny_blocks<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (matmul, scratch): (&Matmul<'m>, Option<PointerValue<'ctx>>),
        skinny: SkinnyMatmul,
        [warps, across, steps]: [u64; 3],
    ) -> Result<Launch> {
        let rows = across * skinny.width;
        let groups = skinny.groups(matmul);
        let parts = skinny.cut.parts * matmul.batches();
        let work_items = parts * groups;
        let [block, thread] = [Register::Block, Register::Thread].map(|register| s.emitter.register(register));
        let (block, thread) = (block?.zext(64), thread?.zext(64));
        let item = s.uniform_symbol(block, Some(work_items));
        let at = counters(s, &AffineExpr::symbol(item), &[parts, groups])?;
        let work = Work::new(s, matmul, skinny, &at[0])?;
        let sink = Sink::new(matmul, &work.batch, skinny.cut, (&at[0], scratch))?;
        let first = at[1].clone().scaled(rows as i64);
        let threads = warps * u64::from(WARP);
        let place = s.uniform_symbol(thread, Some(threads));
        let (member, own) = s.divide(&AffineExpr::symbol(place), across as i64)?;
        let own = own.scaled(skinny.width as i64);
        let members = (member, threads / across);
        let mut sums = work.sums_of_thread(s, members, &first.clone().plus(&own), steps)?;
        let mut distance = across as u32;
        while distance < WARP {
            sums = sums.iter().map(|&sum| s.plus_shuffled(sum, distance)).collect::<Result<_>>()?;
            distance *= 2;
        }
        let shared = work.put_together(s, &sums, [warps, across], thread)?;
        let range = Range {
            start: thread,
            end: s.number((skinny.few * rows) as i64),
            extent: Some(skinny.few * rows),
            width: 1,
            step: threads,
            whole: true,
        };
        s.for_each(range, Vec::new(), &mut |s, number, _| {
            let sum = work.take_together(s, &shared, &AffineExpr::symbol(number), [warps, skinny.few * rows])?;
            let (few, row) = s.divide(&AffineExpr::symbol(number), rows as i64)?;
            self.store_sums(s, &sink, work.at(&few, &first.clone().plus(&row)), sum)?;
            Ok(Vec::new())
        })?;
        Ok(Launch { work_items, block: Some(threads as u32) })
    }
}

impl<'a, 'm> Work<'a, 'm> {
    /// Returns the share of a work item with a combined part and batch number.
    fn new(
        s: &mut FusedEmitter<'_, '_, 'm>,
        matmul: &'a Matmul<'m>,
        skinny: SkinnyMatmul,
        number: &AffineExpr,
    ) -> Result<Work<'a, 'm>> {
        let (part, batch) = skinny.cut.divide(s, number, matmul.batches())?;
        Ok(Work { matmul, skinny, batch: counters(s, &batch, &matmul.batch)?, part })
    }

    /// Returns the row and the column of a sum.
    fn at(&self, few: &AffineExpr, many: &AffineExpr) -> [AffineExpr; 2] {
        match self.skinny.many {
            MatmulSide::Left => [many.clone(), few.clone()],
            MatmulSide::Right => [few.clone(), many.clone()],
        }
    }

    /// Loads elements of an operand, converted to the accumulator type.
    fn read<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        side: MatmulSide,
        (free, sums): (&[AffineExpr], &[AffineExpr]),
        width: u64,
    ) -> Result<Value<'e, 'ctx>> {
        let index = self.matmul.operand_index(s, side, (&self.batch, free, sums), &mut None)?;
        let value = s.element(self.matmul.operands[side as usize], &index)?.splat(width as u32);
        let value = converted(s.emitter, value, self.matmul.element_type)?;
        converted(s.emitter, value, self.matmul.accumulator_type)
    }

    /// Loads all rows of the side with few rows, at consecutive steps of K.
    fn read_few<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        sums: &[AffineExpr],
        steps: u64,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let side = self.skinny.many.other();
        let mut sums = sums.to_vec();
        s.as_lanes(&mut sums, steps, &self.matmul.contracting)?;
        let mut values = Vec::with_capacity(self.skinny.few as usize);
        for row in 0..self.skinny.few {
            let free = counters(s, &AffineExpr::constant(row as i64), &self.matmul.free[side as usize])?;
            values.push(self.read(s, side, (&free, &sums), steps)?);
        }
        Ok(values)
    }

    /// Computes a thread's sums of the products of the group's `rows` rows of `many`, starting at `first`, and all rows
    /// of the other side. The rows of the other side are the outer dimension.
    fn sums_of_group<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        group: ThreadGroup<'e, 'ctx>,
        first: &AffineExpr,
        rows: u64,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let (matmul, width, side) = (self.matmul, self.skinny.width, self.skinny.many);
        let mut free = Vec::with_capacity(rows as usize);
        for row in 0..rows {
            let row = self.existing(s, &first.clone().shifted(row as i64), 1)?;
            free.push(counters(s, &row, &matmul.free[side as usize])?);
        }
        let range = self.range(s, group.member * width as i64, width * u64::from(group.threads))?;
        self.summed(s, range, (self.skinny.few * rows, 1), &mut |s, place, sums| {
            let at = counters(s, place, &matmul.contracting)?;
            let mut lanes = at.clone();
            s.as_lanes(&mut lanes, width, &matmul.contracting)?;
            let many = free.iter().map(|free| self.read(s, side, (free, &lanes), width)).collect::<Result<Vec<_>>>()?;
            let few = self.read_few(s, &at, width)?;
            for (few, sums) in few.iter().zip(sums.chunks_mut(many.len())) {
                for (many, sum) in many.iter().zip(sums) {
                    for lane in 0..width as u32 {
                        *sum = s.plus_product(*sum, few.slice(lane, 1), many.slice(lane, 1))?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Computes a thread's sums of the products of adjacent rows of `many`, starting at `first`, and all rows of the
    /// other side. The thread takes every `members`-th chunk of `steps` steps of K.
    fn sums_of_thread<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (member, members): (AffineExpr, u64),
        first: &AffineExpr,
        steps: u64,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let (matmul, width, side) = (self.matmul, self.skinny.width, self.skinny.many);
        let first = self.existing(s, first, width)?;
        let mut free = counters(s, &first, &matmul.free[side as usize])?;
        s.as_lanes(&mut free, width, &matmul.free[side as usize])?;
        let member = s.number_of(&member.scaled(steps as i64))?;
        let member = s.lanes_of(member);
        let range = self.range(s, member, members * steps)?;
        self.summed(s, range, (self.skinny.few, width), &mut |s, place, sums| {
            let at = counters(s, place, &matmul.contracting)?;
            let mut many = Vec::with_capacity(steps as usize);
            for step in 0..steps {
                let mut at = at.clone();
                if let Some(last) = at.last_mut() {
                    *last = last.clone().shifted(step as i64);
                }
                many.push(self.read(s, side, (&free, &at), width)?);
            }
            for (few, sum) in self.read_few(s, &at, steps)?.iter().zip(sums) {
                for (lane, &many) in (0..).zip(&many) {
                    *sum = s.plus_product(*sum, few.slice(lane, 1).splat(many.width()), many)?;
                }
            }
            Ok(())
        })
    }

    /// Returns the range over K of the thread within its part, from `first` on with stride `step`.
    fn range<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        first: Lanes<'e, 'ctx>,
        step: u64,
    ) -> Result<Range<'e, 'ctx>> {
        let depth = self.matmul.k();
        let [begin, end] = self.skinny.cut.bounds(s, &self.part, (depth, 1))?;
        let start = if self.skinny.cut.parts == 1 { first } else { begin + first };
        Ok(Range { start, end, extent: Some(depth), width: 1, step, whole: true })
    }

    /// Emits a loop over K that adds to accumulators, and returns these.
    fn summed<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        range: Range<'e, 'ctx>,
        (count, lanes): (u64, u64),
        add: &mut Add<'_, 'e, 'ctx, 'm>,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let ty = self.matmul.accumulator_type;
        let start = vec![zero(s.emitter, ty).splat(lanes as u32); count as usize];
        let types = vec![ty; start.len()];
        let raws = s.for_each(range, raws_of(&start), &mut |s, place, carried| {
            let mut sums = values_of(s, &types, carried);
            add(s, &AffineExpr::symbol(place), &mut sums)?;
            Ok(raws_of(&sums))
        })?;
        Ok(values_of(s, &types, &raws))
    }

    /// Clamps the first of `count` adjacent rows of `many`, so that all of them exist.
    fn existing<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        row: &AffineExpr,
        count: u64,
    ) -> Result<AffineExpr> {
        let last = self.matmul.extent(self.skinny.many) as i64 - count as i64;
        if row.bounds(&s.symbols).is_some_and(|(_, high)| high <= last) {
            return Ok(row.clone());
        }
        let number = s.number_of(row)?;
        let group = s.lanes_of(number).smin(last).udiv(count as i64);
        let level = s.depth();
        Ok(s.computed(group, None, Some(last as u64 / count + 1), level).scaled(count as i64))
    }

    /// Stores the accumulators of each warp to shared memory, as `[warps, few, rows of many]`.
    fn put_together<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        sums: &[Value<'e, 'ctx>],
        [warps, across]: [u64; 2],
        thread: Lanes<'e, 'ctx>,
    ) -> Result<Vec<(PointerValue<'ctx>, Scalar)>> {
        let (few, rows) = (self.skinny.few, across * self.skinny.width);
        let parts =
            zero(s.emitter, self.matmul.accumulator_type).raws().into_iter().map(|raw| s.emitter.lanes(raw).scalar());
        let shared = parts.map(|part| Ok((s.emitter.shared_array(part, warps * few * rows)?, part)));
        let shared = shared.collect::<Result<Vec<_>>>()?;
        let (warp, lane) = (thread.lshr(i64::from(WARP.ilog2())), thread & i64::from(WARP - 1));
        s.when(lane.ult(across as i64), &[], |s| {
            let first = warp * (few * rows) as i64 + lane * self.skinny.width as i64;
            for (row, sum) in (0..).zip(sums) {
                for (raw, &(array, _)) in sum.raws().into_iter().zip(&shared) {
                    s.emitter.store_lanes(s.emitter.lanes(raw), array, first + row * rows as i64, None);
                }
            }
            Ok(Vec::new())
        })?;
        s.emitter.barrier()?;
        Ok(shared)
    }

    /// Reduces a sum over the warps' accumulators in shared memory.
    fn take_together<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        shared: &[(PointerValue<'ctx>, Scalar)],
        number: &AffineExpr,
        [warps, sums]: [u64; 2],
    ) -> Result<Value<'e, 'ctx>> {
        let number = s.number_of(number)?;
        let number = s.lanes_of(number);
        let load = |warp: u64| {
            let at = number + (warp * sums) as i64;
            let parts = shared.iter().map(|&(array, scalar)| s.emitter.load_lanes(array, at, scalar, 1, None).raw());
            Value::from_raws(s.emitter, self.matmul.accumulator_type, &parts.collect::<Vec<_>>())
        };
        (1..warps).try_fold(load(0), |sum, warp| elemental::binary(s.emitter, BinaryOp::Add, sum, load(warp)))
    }
}

impl<'e, 'ctx> FusedEmitter<'e, 'ctx, '_> {
    fn plus_product(&self, sum: Value<'e, 'ctx>, x: Value<'e, 'ctx>, y: Value<'e, 'ctx>) -> Result<Value<'e, 'ctx>> {
        let matmul = elemental::binary(self.emitter, BinaryOp::Multiply, x, y)?;
        elemental::binary(self.emitter, BinaryOp::Add, sum, matmul)
    }

    /// Adds the value of the thread at a distance in the warp, lane by lane.
    pub(crate) fn plus_shuffled(&self, value: Value<'e, 'ctx>, distance: u32) -> Result<Value<'e, 'ctx>> {
        let moved = |raw| {
            let lanes = self.emitter.lanes(raw);
            let lane = |number| self.emitter.shuffle(lanes.lane(number), Shuffle::Xor(distance));
            let mut parts = (0..lanes.width()).map(lane).collect::<Result<Vec<_>>>()?;
            while parts.len() > 1 {
                let both = |pair: &[Lanes<'e, 'ctx>]| match pair[0].width() {
                    1 => pair[0].interleave(pair[1]),
                    _ => pair[0].concat(pair[1]),
                };
                parts = parts.chunks_exact(2).map(both).collect();
            }
            Ok(parts[0])
        };
        let parts = value.raws().into_iter().map(|raw| moved(raw).map(Lanes::raw)).collect::<Result<Vec<_>>>()?;
        let other = Value::from_raws(self.emitter, value.element_type(), &parts);
        elemental::binary(self.emitter, BinaryOp::Add, value, other)
    }
}
