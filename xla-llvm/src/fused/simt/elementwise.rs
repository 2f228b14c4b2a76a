//! Kernels whose every thread computes a few neighbouring elements.

use xla_hlo::Result;

use super::thread_group::ACCESS_BITS;
use crate::emitter::Emitter;
use crate::fused::emitter::SymbolValue;
use crate::fused::kernel::{Writer, all_variables, counters, outer_variables};
use crate::fused::loops::affine::{AffineExpr, Symbol};
use crate::fused::loops::frame::Frame;
use crate::fused::loops::plan::LoopPlan;

/// Threads below which each element gets one of its own: the machine has as many at hand.
const FEW_THREADS: u64 = 1 << 16;

impl Writer<'_, '_> {
    /// Writes the function's body for a target with threads; gives how many there are.
    pub(crate) fn emit_threads<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        plan: &LoopPlan,
    ) -> Result<u64> {
        let mut loops = plan.loops();
        let inner = loops.pop().unwrap_or(1);
        let width = self.thread_width(plan, inner);
        let pieces = inner / width;
        let units = loops.iter().product::<u64>() * pieces;
        let mut fused = self.bind(emitter, frame.pointers)?;
        fused.for_units(frame.units, units, &mut |s, unit| {
            let (row, piece) = s.divide(&AffineExpr::symbol(unit), pieces as i64)?;
            let counters = counters(s, &row, &loops)?;
            let outer = outer_variables(s, plan, &counters)?;
            let first = piece.scaled(width as i64);
            let number = s.number_of(&first)?;
            let base = s.lanes_of(number);
            let level = s.depth();
            let value = match width {
                1 => SymbolValue::Uniform(base),
                _ => SymbolValue::Lane { base, width: width as u32, mask: None },
            };
            let lane = (inner > 1).then(|| s.define(Symbol { extent: Some(inner), level }, value));
            let symbols = all_variables(s, plan, &outer, lane);
            self.store_all(s, &plan.index(&symbols))
        })?;
        Ok(units)
    }

    /// Neighbouring elements that one thread computes: one access to memory of the widest type.
    fn thread_width(&self, plan: &LoopPlan, inner: u64) -> u64 {
        let elements: u64 = plan.loops().iter().product();
        let mut width = u64::from(ACCESS_BITS / self.widest_bits().clamp(8, ACCESS_BITS));
        if self.has_reductions() || plan.across().is_some() {
            return 1;
        }
        while width > 1 && (!inner.is_multiple_of(width) || elements / width < FEW_THREADS) {
            width /= 2;
        }
        width
    }
}
