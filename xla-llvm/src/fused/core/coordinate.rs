//! Coordinates that are computed at run time: quotients, comparisons, elements of integer arrays.

use xla_hlo::{Computation, InstrId, Result};

use crate::elemental;
use crate::fused::core::addressing::{Addressing, Interval, KnownCoordinates};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index, Symbol, Symbols};
use crate::fused::value::{Guard, SymbolValue};
use crate::lanes::Lanes;

impl<'e, 'ctx, 'm> Addressing<'m> for FusedEmitter<'e, 'ctx, 'm> {
    type Condition = Guard<'e, 'ctx>;

    fn graph(&self) -> &'m Computation {
        self.graph()
    }

    fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn known(&mut self) -> &mut KnownCoordinates {
        &mut self.known_coordinates
    }

    fn width(&self, index: &[AffineExpr]) -> u32 {
        self.width(index)
    }

    fn run_time_division(
        &mut self,
        expr: &AffineExpr,
        by: i64,
        extent: Option<u64>,
    ) -> Result<(AffineExpr, AffineExpr)> {
        let level = expr.level(&self.symbols);
        let mask = self.existing_lanes(std::slice::from_ref(expr));
        self.at_level(level, |s| {
            let lanes = s.short_lanes(expr, &[by])?;
            let quotient = lanes.udiv(by);
            let rest = (lanes - quotient * by).zext(64);
            let quotient = quotient.zext(64);
            let quotient = s.computed(quotient, mask, extent, level);
            let rest = s.computed(rest, mask, Some(by as u64), level);
            Ok((quotient, rest))
        })
    }

    fn require_in(
        &mut self,
        conditions: &mut Option<Guard<'e, 'ctx>>,
        expr: &AffineExpr,
        interval: Interval,
    ) -> Result<()> {
        let Interval { last, above, below } = interval;
        let level = expr.level(&self.symbols).max(self.local_level());
        let mask = self.at_level(level, |s| {
            let lanes = s.short_lanes(expr, &[last])?;
            Ok(match (above, below) {
                (true, _) => lanes.le(last),
                (false, true) => lanes.ge(0),
                // One unsigned comparison checks both bounds.
                (false, false) => lanes.ule(last),
            })
        })?;
        self.require(conditions, Guard { mask, level })
    }

    fn on_grid(
        &mut self,
        conditions: &mut Option<Guard<'e, 'ctx>>,
        expr: &AffineExpr,
        step: i64,
        size: usize,
    ) -> Result<AffineExpr> {
        let level = expr.level(&self.symbols);
        let mask = self.existing_lanes(std::slice::from_ref(expr));
        let (quotient, exact) = self.at_level(level, |s| {
            let number = s.number_of(expr)?;
            let lanes = s.lanes_of(number);
            let quotient = lanes.sdiv(step);
            Ok((quotient, (quotient * step).eq(lanes)))
        })?;
        self.require(conditions, Guard { mask: exact, level })?;
        Ok(self.computed(quotient, mask, Some(size as u64), level))
    }

    fn loaded_coordinate(&mut self, id: InstrId, index: &Index, room: u64) -> Result<AffineExpr> {
        let value = self.element(id, index)?;
        let level = self.level(index);
        let mask = self.existing_lanes(index);
        self.at_level(level, |s| {
            let lanes = elemental::clamped_index(value, room);
            Ok(s.computed(lanes, mask, Some(room + 1), level))
        })
    }

    fn unguarded<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let outer = (std::mem::take(&mut self.guard), std::mem::take(&mut self.branch));
        let result = f(self);
        (self.guard, self.branch) = outer;
        result
    }
}

impl<'e, 'ctx> FusedEmitter<'e, 'ctx, '_> {
    /// Returns quotient and remainder of a coordinate, and emits a run-time division where they are not affine.
    pub(crate) fn divide(&mut self, expr: &AffineExpr, by: i64) -> Result<(AffineExpr, AffineExpr)> {
        self.quotient(expr, by)
    }

    /// Returns a coordinate for a number that is computed at run time.
    pub(crate) fn computed(
        &mut self,
        lanes: Lanes<'e, 'ctx>,
        mask: Option<Lanes<'e, 'ctx>>,
        extent: Option<u64>,
        level: usize,
    ) -> AffineExpr {
        let value = if lanes.width() == 1 { SymbolValue::Uniform(lanes) } else { SymbolValue::Varying { lanes, mask } };
        AffineExpr::symbol(self.define(Symbol { extent, level }, value))
    }
}
