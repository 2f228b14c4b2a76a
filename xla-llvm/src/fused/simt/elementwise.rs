//! Elementwise kernels: every thread computes a few adjacent elements.

use std::collections::HashSet;
use std::fmt;

use xla_hlo::{InstrId, Result};
use xla_passes::analysis::kernel_needs::peak_registers;

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::{AffineExpr, Symbol};
use crate::fused::loops::frame::Frame;
use crate::fused::loops::plan::LoopPlan;
use crate::fused::loops::variables::{all_variables, counters, outer_variables};
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::device::few_threads;
use crate::fused::tuning::threads::{LARGE, MOST_INSTRUCTIONS, MOST_REGISTERS};
use crate::fused::value::SymbolValue;
use crate::target::Target;

/// Loops of a kernel whose iterations run in separate threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadLoops {
    plan: LoopPlan,
    /// Number of adjacent elements per thread.
    width: u64,
}

impl fmt::Display for ThreadLoops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} elements a thread", self.plan, self.width)
    }
}

impl Strategy for ThreadLoops {
    fn names() -> &'static [&'static str] {
        &["thread-loops"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<ThreadLoops>> {
        Ok(Some(choice.kernel.thread_loops(choice.loop_plan()?.clone(), choice.target())))
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_thread_loops(emitter, frame, self).map(Launch::alone)
    }
}

impl FusedKernel<'_, '_> {
    /// Returns the loops of a plan, with the number of elements per thread.
    pub(crate) fn thread_loops(&self, plan: LoopPlan, target: &Target) -> ThreadLoops {
        let width = self.thread_width(&plan, target);
        ThreadLoops { plan, width }
    }

    /// Emits the body of the function, and returns the number of threads.
    pub(crate) fn emit_thread_loops<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        ThreadLoops { plan, width }: &ThreadLoops,
    ) -> Result<u64> {
        let (mut loops, width) = (plan.loops(), *width);
        if self.computed().len() as u64 * width > LARGE {
            emitter.allow_all_registers();
        }
        let inner = loops.pop().unwrap_or(1);
        let chunks = inner / width;
        let work_items = loops.iter().product::<u64>() * chunks;
        let mut fused = self.bind(emitter, frame.pointers)?;
        fused.for_work_items(frame.work_items, work_items, &mut |s, item| {
            let (row, chunk) = s.divide(&AffineExpr::symbol(item), chunks as i64)?;
            let counters = counters(s, &row, &loops)?;
            let outer = outer_variables(s, plan, &counters)?;
            let first = chunk.scaled(width as i64);
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
        Ok(work_items)
    }

    /// Returns the number of adjacent elements that one thread computes: one memory access, or two for wider types.
    fn thread_width(&self, plan: &LoopPlan, target: &Target) -> u64 {
        let loops = plan.loops();
        let (elements, inner): (u64, u64) = (loops.iter().product(), loops.last().copied().unwrap_or(1));
        let mut width = u64::from(self.access_width());
        if self.has_reductions() || plan.across().is_some() {
            return 1;
        }
        let (instructions, registers) = self.needs_of_an_element();
        let is_too_much = |width| instructions * width > MOST_INSTRUCTIONS || registers * width > MOST_REGISTERS;
        while width > 1
            && (!inner.is_multiple_of(width) || elements / width < few_threads(target) || is_too_much(width))
        {
            width /= 2;
        }
        width
    }

    /// Returns the number of instructions that compute an element, and the peak number of registers for live values.
    fn needs_of_an_element(&self) -> (u64, u64) {
        let computed: HashSet<InstrId> = self.computed().into_iter().collect();
        let order: Vec<InstrId> = self.graph().post_order().into_iter().filter(|id| computed.contains(id)).collect();
        (computed.len() as u64, peak_registers(self.graph(), &order) as u64)
    }
}
