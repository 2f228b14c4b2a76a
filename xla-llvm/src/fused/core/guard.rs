//! Guards: masks of the lanes that need a value. In other lanes the value is arbitrary, and memory is not accessed.

use xla_hlo::{InstrId, Result};

use crate::elemental::{self, Value};
use crate::fused::core::address::widened;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::Index;
use crate::fused::value::Guard;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Returns the conjunction of two guards, computed at the outermost level that knows both.
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

    /// Adds a condition to the existing ones.
    pub(crate) fn require(&mut self, conditions: &mut Option<Guard<'e, 'ctx>>, more: Guard<'e, 'ctx>) -> Result<()> {
        *conditions = Some(match *conditions {
            Some(known) => self.both(known, more)?,
            None => more,
        });
        Ok(())
    }

    /// Computes the value of `id` under the current guard and an additional one; it is arbitrary in other lanes.
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

    /// Runs `f` under an additional guard.
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

    /// Runs `f` for a value of `width` lanes. A value that is uniform across lanes is needed if any lane needs it, so
    /// its guard is scalar: the value may be computed by loops with lanes of their own, and a mask of the outer
    /// lanes does not apply to those.
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

    /// Selects the element of `operand` in the lanes that satisfy the conditions, and `other` in the rest.
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
