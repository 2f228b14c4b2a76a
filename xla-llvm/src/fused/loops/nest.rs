//! Loop nest that is being emitted: levels with open blocks, loops with carried values, code hoisted as far out as
//! possible.
//!
//! A level is a point in the nest whose basic block is still open: inner loops are written into blocks of their own,
//! and linked when they are complete. Code that is needed inside but depends on outer symbols only is therefore
//! appended to the outer level's block, in front of the loop: no loop-invariant code is emitted in a loop.

use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValueEnum, PhiValue};
use xla_hlo::{Error, Result};

use crate::fused::emitter::{FusedEmitter, Level};
use crate::fused::loops::affine::{Symbol, SymbolId};
use crate::fused::loops::range::Range;
use crate::fused::value::SymbolValue;
use crate::lanes::Lanes;

/// Body of a loop: maps the loop's symbol and the carried values of this iteration to those of the next one.
pub(crate) type Body<'a, 'e, 'ctx, 'm> =
    dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, SymbolId, &[BasicValueEnum<'ctx>]) -> Result<CarriedValues<'ctx>> + 'a;

/// Values that a loop carries from one iteration to the next.
pub(crate) type CarriedValues<'ctx> = Vec<BasicValueEnum<'ctx>>;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Returns the deepest level.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    pub(crate) fn current_block(&self) -> Result<BasicBlock<'ctx>> {
        self.emitter
            .builder()
            .get_insert_block()
            .ok_or_else(|| Error::internal("code is emitted outside of a function"))
    }

    pub(crate) fn enter_level(&mut self, block: BasicBlock<'ctx>) -> Result<()> {
        self.remember_block()?;
        self.levels.push(Level { block });
        self.emitter.builder().position_at_end(block);
        Ok(())
    }

    fn remember_block(&mut self) -> Result<()> {
        let block = self.current_block()?;
        if let Some(level) = self.levels.last_mut() {
            level.block = block;
        }
        Ok(())
    }

    /// Leaves the deepest level and positions the builder in the block of the enclosing one.
    fn leave_level(&mut self) {
        self.levels.pop();
        if let Some(level) = self.levels.last() {
            self.emitter.builder().position_at_end(level.block);
        }
    }

    /// Runs `f` as if the nest ended at `level`, so that its code is placed there.
    pub(crate) fn at_level<R>(&mut self, level: usize, f: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        if level >= self.depth() {
            return f(self);
        }
        self.remember_block()?;
        let suspended = self.levels.split_off(level + 1);
        // Loops in the hoisted code are not inside of the current loop.
        let height = self.emitter.nest_height.get();
        self.emitter.builder().position_at_end(self.levels[level].block);
        let result = f(self);
        self.emitter.nest_height.set(height);
        self.remember_block()?;
        self.levels.extend(suspended);
        if let Some(level) = self.levels.last() {
            self.emitter.builder().position_at_end(level.block);
        }
        result
    }

    /// Returns a 64-bit scalar constant.
    pub(crate) fn number(&self, value: i64) -> Lanes<'e, 'ctx> {
        self.emitter.splat_constant(self.emitter.int_type(64).const_int(value as u64, true).into(), 1)
    }

    /// Returns the range `0..extent`.
    pub(crate) fn full_range(&self, extent: u64, width: u32) -> Range<'e, 'ctx> {
        Range {
            start: self.number(0),
            end: self.number(extent as i64),
            extent: Some(extent),
            width,
            step: width.into(),
            whole: extent.is_multiple_of(u64::from(width)),
        }
    }

    /// Emits a loop with carried values, and an epilogue for the remainder, which has fewer lanes than a vector. The
    /// epilogue is one masked iteration with the mask in the symbol, or a scalar loop if masked accesses would be
    /// branches per lane and nothing is carried in lanes.
    pub(crate) fn for_each(
        &mut self,
        range: Range<'e, 'ctx>,
        carried: Vec<BasicValueEnum<'ctx>>,
        body: &mut Body<'_, 'e, 'ctx, 'm>,
    ) -> Result<Vec<BasicValueEnum<'ctx>>> {
        if range.whole || range.width == 1 {
            return self.whole_iterations(range, carried, body);
        }
        let width = i64::from(range.width);
        let count = range.end - range.start;
        let partial = count.urem(width);
        let middle = range.end - partial;
        let by_lane = carried.is_empty() && constant(count).is_none() && self.masks_are_branches();
        let carried = self.whole_iterations(Range { end: middle, ..range }, carried, body)?;
        if by_lane {
            return self.whole_iterations(Range { start: middle, width: 1, step: 1, ..range }, carried, body);
        }
        self.partial_turn(Range { start: middle, ..range }, carried, body)
    }

    /// Emits a loop without carried values whose iterations all have a mask, so that a large body is emitted once.
    /// Returns `false` if [`FusedEmitter::for_each`] would emit it once, or if masked accesses are branches.
    pub(crate) fn for_each_masked(
        &mut self,
        range: Range<'e, 'ctx>,
        body: &mut Body<'_, 'e, 'ctx, 'm>,
    ) -> Result<bool> {
        let width = i64::from(range.width);
        let count = constant(range.end - range.start);
        if range.whole || width == 1 || count.is_some_and(|count| count < width) || self.masks_are_branches() {
            return Ok(false);
        }
        self.whole_iterations(Range { width: 1, ..range }, Vec::new(), &mut |s, first, _| {
            let base = s.uniform_value(first)?;
            let left = (range.end - base).smin(width).trunc(32).splat(range.width);
            let mask = s.emitter.lane_numbers(32, range.width).ult(left);
            let level = s.depth();
            let value = SymbolValue::Lane { base, width: range.width, mask: Some(mask) };
            let symbol = s.define(Symbol { extent: range.extent, level }, value);
            body(s, symbol, &[])
        })?;
        Ok(true)
    }

    /// Whether a masked access becomes a branch per lane, in a kernel that does not transpose tiles.
    fn masks_are_branches(&mut self) -> bool {
        let has_tile = self.mode.vector().is_none_or(|mode| mode.tile.is_some());
        !has_tile && !self.emitter.target().abilities().masked_memory
    }

    fn whole_iterations(
        &mut self,
        range: Range<'e, 'ctx>,
        carried: Vec<BasicValueEnum<'ctx>>,
        body: &mut Body<'_, 'e, 'ctx, 'm>,
    ) -> Result<Vec<BasicValueEnum<'ctx>>> {
        let known = constant(range.start).zip(constant(range.end));
        if known.is_some_and(|(start, end)| start >= end) {
            return Ok(carried);
        }
        let block = self.new_block("loop")?;
        self.enter_level(block)?;
        let counter = self.phi(self.number(0).raw())?;
        let phis = carried.iter().map(|&value| self.phi(value)).collect::<Result<Vec<_>>>()?;
        let value = self.emitter.lanes(counter.as_basic_value());
        let level = self.depth();
        let symbol = self.define(
            Symbol { extent: range.extent, level },
            if range.width == 1 {
                SymbolValue::Uniform(value)
            } else {
                SymbolValue::Lane { base: value, width: range.width, mask: None }
            },
        );
        let inputs: Vec<BasicValueEnum<'ctx>> = phis.iter().map(|phi| phi.as_basic_value()).collect();
        let open = self.emitter.begin_loop();
        let outputs = body(self, symbol, &inputs)?;
        let counters = self.emitter.end_loop(open, carried.len());
        let next = (value + range.step as i64).as_counter(counters);
        let again = next.lt(range.end);
        let latch = self.current_block()?;
        let exit = self.new_block("exit")?;
        self.branch(again, block, exit)?;
        self.leave_level();

        // Continue in front of the loop, in a block that may have grown in the meantime.
        let front = self.current_block()?;
        if known.is_some() {
            self.jump(block)?;
        } else {
            self.branch(range.start.lt(range.end), block, exit)?;
        }
        counter.add_incoming(&[(&range.start.raw(), front), (&next.raw(), latch)]);
        for ((phi, first), again) in phis.iter().zip(&carried).zip(&outputs) {
            phi.add_incoming(&[(first, front), (again, latch)]);
        }
        self.emitter.builder().position_at_end(exit);
        if known.is_some() {
            return Ok(outputs);
        }
        let mut results = Vec::with_capacity(outputs.len());
        for (first, last) in carried.iter().zip(&outputs) {
            let phi = self.phi(*first)?;
            phi.add_incoming(&[(first, front), (last, latch)]);
            results.push(phi.as_basic_value());
        }
        Ok(results)
    }

    /// Emits the lanes from `start` to `end`, fewer than a vector, under a mask.
    fn partial_turn(
        &mut self,
        range: Range<'e, 'ctx>,
        carried: Vec<BasicValueEnum<'ctx>>,
        body: &mut Body<'_, 'e, 'ctx, 'm>,
    ) -> Result<Vec<BasicValueEnum<'ctx>>> {
        self.when(range.start.lt(range.end), &carried, |s| {
            let left = (range.end - range.start).trunc(32).splat(range.width);
            let mask = s.emitter.lane_numbers(32, range.width).ult(left);
            let level = s.depth();
            let value = SymbolValue::Lane { base: range.start, width: range.width, mask: Some(mask) };
            let symbol = s.define(Symbol { extent: range.extent, level }, value);
            body(s, symbol, &carried)
        })
    }

    /// Runs `body` at a level of its own inside of the deepest one.
    pub(crate) fn nested_level<R>(&mut self, body: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let block = self.new_block("level")?;
        self.enter_level(block)?;
        let result = body(self)?;
        let exit = self.new_block("exit")?;
        self.jump(exit)?;
        self.leave_level();
        self.jump(block)?;
        self.emitter.builder().position_at_end(exit);
        Ok(result)
    }

    /// Emits `body` under a scalar condition and returns its results; the carried values if the condition does not
    /// hold.
    pub(crate) fn when(
        &mut self,
        condition: Lanes<'e, 'ctx>,
        carried: &[BasicValueEnum<'ctx>],
        body: impl FnOnce(&mut Self) -> Result<Vec<BasicValueEnum<'ctx>>>,
    ) -> Result<Vec<BasicValueEnum<'ctx>>> {
        let block = self.new_block("then")?;
        self.enter_level(block)?;
        let outputs = body(self)?;
        let last = self.current_block()?;
        let exit = self.new_block("exit")?;
        self.jump(exit)?;
        self.leave_level();
        let front = self.current_block()?;
        self.branch(condition, block, exit)?;
        self.emitter.builder().position_at_end(exit);
        let mut results = Vec::with_capacity(outputs.len());
        for (before, after) in carried.iter().zip(outputs) {
            let phi = self.phi(*before)?;
            phi.add_incoming(&[(before, front), (&after, last)]);
            results.push(phi.as_basic_value());
        }
        Ok(results)
    }

    /// Emits both bodies and returns the results of `first` if a scalar condition holds, otherwise those of `second`.
    pub(crate) fn either(
        &mut self,
        condition: Lanes<'e, 'ctx>,
        first: impl FnOnce(&mut Self) -> Result<CarriedValues<'ctx>>,
        second: impl FnOnce(&mut Self) -> Result<CarriedValues<'ctx>>,
    ) -> Result<CarriedValues<'ctx>> {
        let exit = self.new_block("exit")?;
        let (then, values, then_end) = self.branch_to(exit, "then", first)?;
        let (other, others, other_end) = self.branch_to(exit, "otherwise", second)?;
        self.branch(condition, then, other)?;
        self.emitter.builder().position_at_end(exit);
        let mut results = Vec::with_capacity(values.len());
        for (value, other) in values.iter().zip(&others) {
            let phi = self.phi(*value)?;
            phi.add_incoming(&[(value, then_end), (other, other_end)]);
            results.push(phi.as_basic_value());
        }
        Ok(results)
    }

    /// Emits a block that ends with a jump to `exit`; returns its first block, the results of `body`, and its last
    /// block.
    fn branch_to(
        &mut self,
        exit: BasicBlock<'ctx>,
        name: &str,
        body: impl FnOnce(&mut Self) -> Result<CarriedValues<'ctx>>,
    ) -> Result<(BasicBlock<'ctx>, CarriedValues<'ctx>, BasicBlock<'ctx>)> {
        let block = self.new_block(name)?;
        self.enter_level(block)?;
        let values = body(self)?;
        let end = self.current_block()?;
        self.jump(exit)?;
        self.leave_level();
        Ok((block, values, end))
    }

    fn new_block(&self, name: &str) -> Result<BasicBlock<'ctx>> {
        self.emitter.block(name).ok_or_else(|| Error::internal("code is emitted outside of a function"))
    }

    fn phi(&self, like: BasicValueEnum<'ctx>) -> Result<PhiValue<'ctx>> {
        self.emitter.builder().build_phi(like.get_type(), "").map_err(refused)
    }

    fn jump(&self, to: BasicBlock<'ctx>) -> Result<()> {
        self.emitter.builder().build_unconditional_branch(to).map(|_| ()).map_err(refused)
    }

    fn branch(&self, condition: Lanes<'e, 'ctx>, then: BasicBlock<'ctx>, other: BasicBlock<'ctx>) -> Result<()> {
        let BasicValueEnum::IntValue(bit) = condition.raw() else {
            return Err(Error::internal("a branch needs a scalar condition"));
        };
        self.emitter.builder().build_conditional_branch(bit, then, other).map(|_| ()).map_err(refused)
    }
}

fn refused(reason: inkwell::builder::BuilderError) -> Error {
    Error::internal(format!("LLVM refuses an instruction: {reason}"))
}

/// Returns the value of a constant 64-bit scalar.
fn constant(lanes: Lanes<'_, '_>) -> Option<i64> {
    match lanes.raw() {
        BasicValueEnum::IntValue(int) => int.get_sign_extended_constant(),
        _ => None,
    }
}
