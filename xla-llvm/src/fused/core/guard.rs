//! Guards: lanes for which a value is wanted at all. Elsewhere it may be anything, but memory is not touched for it.

use xla_hlo::{InstrId, Result};

use crate::elemental::{self, Value};
use crate::fused::core::address::widened;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::value::Guard;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Conjunction of two guards, computed at the level at which both are known.
    fn both(&mut self, a: Guard<'e, 'ctx>, b: Guard<'e, 'ctx>) -> Result<Guard<'e, 'ctx>> {
        let level = a.level.max(b.level);
        for (always, other) in [(a, b), (b, a)] {
            if always.mask.is_always() {
                return Ok(Guard { mask: other.mask, level });
            }
        }
        let width = a.mask.width().max(b.mask.width());
        let mask = self.at_level(level, |_| Ok(widened(a.mask, width) & widened(b.mask, width)))?;
        Ok(Guard { mask, level })
    }

    /// Adds a condition to those there are.
    pub(crate) fn require(&mut self, conditions: &mut Option<Guard<'e, 'ctx>>, more: Guard<'e, 'ctx>) -> Result<()> {
        *conditions = Some(match *conditions {
            Some(known) => self.both(known, more)?,
            None => more,
        });
        Ok(())
    }

    /// Adds `low <= expr <= high` where that is not certain.
    pub(crate) fn require_between(
        &mut self,
        conditions: &mut Option<Guard<'e, 'ctx>>,
        expr: &AffineExpr,
        low: i64,
        high: i64,
    ) -> Result<()> {
        let bounds = expr.bounds(&self.symbols);
        let surely = |holds: fn((i64, i64), i64) -> bool, limit| bounds.is_some_and(|b| holds(b, limit));
        let (above, below) = (surely(|b, l| b.0 >= l, low), surely(|b, l| b.1 <= l, high));
        if above && below {
            return Ok(());
        }
        let level = expr.level(&self.symbols).max(self.local_level());
        let mask = self.at_level(level, |s| {
            let lanes = s.short_lanes(expr, &[low, high, high.saturating_sub(low)])?;
            Ok(match (above, below) {
                (true, _) => lanes.le(high),
                (false, true) => lanes.ge(low),
                // One unsigned comparison does both.
                (false, false) => (lanes - low).ule(high - low),
            })
        })?;
        self.require(conditions, Guard { mask, level })
    }

    /// The value of `id` where the guard (and the one in force) holds; elsewhere anything.
    pub(crate) fn guarded_element(
        &mut self,
        id: InstrId,
        index: &Index,
        guard: Option<Guard<'e, 'ctx>>,
    ) -> Result<Value<'e, 'ctx>> {
        match guard {
            Some(guard) => self.under_guard(guard, |s| s.element(id, index)),
            None => self.element(id, index),
        }
    }

    /// Runs `f` under one more guard.
    pub(crate) fn under_guard<R>(
        &mut self,
        guard: Guard<'e, 'ctx>,
        f: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        let outer = self.guard;
        let guard = match outer {
            0 => guard,
            number => self.both(self.guards[number - 1], guard)?,
        };
        self.guards.push(guard);
        self.guard = self.guards.len();
        let result = f(self);
        self.guard = outer;
        result
    }

    /// Runs `f` for a value of `width` lanes. One that is the same in all lanes is wanted where any of them wants it;
    /// it may be made of loops with lanes of their own, to which a guard of lanes would say nothing.
    pub(crate) fn for_width<R>(&mut self, width: u32, f: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let outer = self.guard;
        if width > 1 || outer == 0 || self.guards[outer - 1].mask.width() == 1 {
            return f(self);
        }
        self.guard = match self.any_lane.get(&outer) {
            Some(&known) => known,
            None => {
                let Guard { mask, level } = self.guards[outer - 1];
                let mask = self.at_level(level, |_| Ok(mask.any()))?;
                self.guards.push(Guard { mask, level });
                self.any_lane.insert(outer, self.guards.len());
                self.guards.len()
            }
        };
        let result = f(self);
        self.guard = outer;
        result
    }

    /// The element of `operand` where the conditions hold, else `other`.
    pub(crate) fn choose(
        &mut self,
        conditions: Option<Guard<'e, 'ctx>>,
        width: u32,
        operand: InstrId,
        index: &Index,
        other: Value<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        let value = self.guarded_element(operand, index, conditions)?.splat(width);
        Ok(match conditions {
            Some(guard) => elemental::select_lanes(widened(guard.mask, width), value, other.splat(width)),
            None => value,
        })
    }
}
