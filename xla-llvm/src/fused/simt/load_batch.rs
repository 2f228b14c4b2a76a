//! Loops of a thread group over elements, in batches of a few iterations. All elements of a batch are loaded before any
//! is reduced or stored, so that several loads of a thread are in flight at once.
//!
//! Iterations that every thread executes are not predicated. A partial iteration, which only some threads execute,
//! comes last.

use inkwell::values::BasicValueEnum;
use xla_hlo::Result;

use crate::fused::core::address::Number;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Symbol, SymbolId};
use crate::fused::loops::nest::CarriedValues;
use crate::fused::mode::ThreadGroup;
use crate::fused::tuning::load_batch::{BITS, LEAST, MOST, MOST_CODE};
use crate::fused::value::SymbolValue;
use crate::lanes::Lanes;

/// Elements of a thread in a loop of its group.
#[derive(Clone, Copy)]
pub(crate) struct LoadBatch<'e, 'ctx> {
    /// First element of the thread.
    pub first: Lanes<'e, 'ctx>,
    /// Upper bound of the threads' first elements, including the lanes of an iteration.
    pub extent: u64,
    /// Number of adjacent elements per iteration.
    pub width: u32,
    /// Stride between iterations.
    pub step: u64,
    /// Number of iterations that every thread executes.
    pub count: u64,
    /// Mask of the threads that execute the partial iteration; `None` if there is none.
    pub last: Option<Lanes<'e, 'ctx>>,
    /// Upper bound of all elements.
    pub end: u64,
}

/// Body of a loop in batches: takes the positions of a batch's iterations and the carried values, and returns the next
/// carried values.
type TurnsBody<'a, 'e, 'ctx, 'm> =
    dyn FnMut(&mut FusedEmitter<'e, 'ctx, 'm>, &[AffineExpr], &Carried<'ctx>) -> Result<CarriedValues<'ctx>> + 'a;

/// Carried values from earlier iterations.
type Carried<'ctx> = [BasicValueEnum<'ctx>];

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Distributes `0..extent` over a group's threads in iterations of `width` adjacent elements per thread.
    pub(crate) fn load_batch(&self, group: ThreadGroup<'e, 'ctx>, extent: u64, width: u32) -> LoadBatch<'e, 'ctx> {
        let step = u64::from(width * group.threads);
        let first = group.member * i64::from(width);
        let rest = extent % step;
        let last = (rest > 0).then(|| first.ult(rest as i64));
        LoadBatch { first, extent: step, width, step, count: extent / step, last, end: extent }
    }

    /// Emits `body` for all iterations, in batches of `together`.
    pub(crate) fn for_turns(
        &mut self,
        turns: LoadBatch<'e, 'ctx>,
        together: u64,
        carried: CarriedValues<'ctx>,
        body: &mut TurnsBody<'_, 'e, 'ctx, 'm>,
    ) -> Result<CarriedValues<'ctx>> {
        // A separate level, since positions differ between the threads of the group.
        self.nested_level(|s| {
            let first = s.turn_symbol(turns, turns.first, turns.extent);
            let place = |turn: AffineExpr| AffineExpr::symbol(first).plus(&turn.scaled(turns.step as i64));
            let batches = if turns.count < 2 * together { 0 } else { turns.count / together };
            let mut carried = carried;
            if batches > 0 {
                let range = s.full_range(batches, 1);
                carried = s.for_each(range, carried, &mut |s, batch, carried| {
                    let begin = AffineExpr::symbol(batch).scaled(together as i64);
                    let places: Vec<_> = (0..together as i64).map(|turn| place(begin.clone().shifted(turn))).collect();
                    body(s, &places, carried)
                })?;
            }
            let places: Vec<_> =
                (batches * together..turns.count).map(|turn| place(AffineExpr::constant(turn as i64))).collect();
            if !places.is_empty() {
                carried = body(s, &places, &carried)?;
            }
            let Some(exists) = turns.last else { return Ok(carried) };
            s.when(exists, &carried, |s| {
                let place = turns.first + (turns.count * turns.step) as i64;
                let last = s.turn_symbol(turns, place, turns.end);
                body(s, &[AffineExpr::symbol(last)], &carried)
            })
        })
    }

    /// Returns the number of iterations per batch, for `width` elements of `bits` bits per iteration.
    pub(crate) fn loads_in_flight(&mut self, width: u32, bits: u32) -> u64 {
        let of_turn = u64::from(width);
        let instructions = self.mode.threads().map_or(1, |mode| mode.instructions.max(1));
        let mut together = (BITS / (of_turn * u64::from(bits))).clamp(LEAST, MOST);
        while together > 1 && together * of_turn * instructions > MOST_CODE {
            together /= 2;
        }
        together
    }

    /// Defines a symbol with the value of a position, like the counter of a loop.
    pub(crate) fn symbol_of(&mut self, place: &AffineExpr, extent: u64) -> Result<SymbolId> {
        let value = match self.number_of(place)? {
            Number::Uniform(number) => SymbolValue::Uniform(number),
            Number::Strided { base, width, .. } => SymbolValue::Lane { base, width, mask: None },
            Number::Varying(lanes) => SymbolValue::Varying { lanes, mask: None },
        };
        let level = place.level(&self.symbols);
        Ok(self.define(Symbol { extent: Some(extent), level }, value))
    }

    fn turn_symbol(&mut self, turns: LoadBatch<'e, 'ctx>, base: Lanes<'e, 'ctx>, extent: u64) -> SymbolId {
        let value = match turns.width {
            1 => SymbolValue::Uniform(base),
            width => SymbolValue::Lane { base, width, mask: None },
        };
        let level = self.depth();
        self.define(Symbol { extent: Some(extent), level }, value)
    }
}
