//! Scan of a whole fiber by one block. In each iteration a thread scans a few adjacent elements, and adds the totals of
//! the threads before it and of earlier iterations.

use inkwell::values::PointerValue;
use xla_hlo::Result;

use crate::elemental::Value;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::simt::scan::block::BlockScan;

impl<'e, 'ctx, 'm> BlockScan<'_, 'e, 'ctx> {
    /// Stores the running totals of the fiber.
    pub fn fiber(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, result: PointerValue<'ctx>) -> Result<()> {
        let plan = self.plan;
        let width = plan.width as u32;
        let neutral = self.neutral(s)?;
        let start = self.start(s)?;
        let target = self.target(s, result)?;
        let turns = s.full_range(plan.turns, 1);
        s.for_each(turns, start.raws(), &mut |s, turn, carried| {
            let first = s.number_of(&AffineExpr::symbol(turn).scaled((plan.threads * plan.width) as i64))?;
            let first = s.lanes_of(first) + self.thread * plan.width as i64;
            let sum = Value::from_raws(s.emitter, plan.ty, carried);
            let x = self.elements(s, first, neutral)?;
            let within = s.scan_register(plan.combiner, x, width)?;
            let [before, all] = self.before(s, within.slice(width - 1, 1), neutral)?;
            let before = self.pair(s, sum, before)?.splat(width);
            let running = self.pair(s, before, within)?;
            self.store(s, &target, first, running)?;
            Ok(self.pair(s, sum, all)?.raws())
        })?;
        Ok(())
    }
}
