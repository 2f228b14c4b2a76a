//! Top-k: the best elements of rows, in order.
//!
//! ```text
//! plan.rs       sizes of the launches
//! pick.rs       very small k: a thread group picks the elements one at a time
//! select.rs     larger k: a block finds the k-th element by radix selection, then sorts the best ones
//! sorted.rs     items in shared memory, and their sort
//! ```

mod pick;
pub(crate) mod plan;
mod select;
mod sorted;

use xla_hlo::Result;
use xla_hlo::ops::Op;

use crate::emitter::Emitter;
use crate::fused::kernel::Kernel;
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::kernel_plan::command::{PlanArgument, PlanCommand};
use crate::fused::source::KernelSource;
use crate::fused::tuning::device::busy_blocks;
use crate::fused::tuning::top_k::LEAST_CHUNK;
use crate::target::Target;
use plan::{LONGEST, TopKPhase, TopKPlan};
use select::Selection;
use xla_passes::analysis::element_order::Key;

impl KernelPlan for TopKPlan {
    type Phase = TopKPhase;

    const NAME: &'static str = "top-k";
    const READS_SOURCE: bool = false;

    /// Returns the plan of a top-k. `None` for element types that are not [supported](TopKPlan::takes), and for `k`
    /// above the [maximum](TopKPlan::MOST).
    fn new(source: &KernelSource<'_>, target: &Target) -> Option<TopKPlan> {
        let Op::TopK(op) = source.instruction().op() else { return None };
        let operand = *source.input_shapes()?.first()?;
        let ty = operand.element_type();
        let key = Key::total_order(ty)?;
        let (&length, outer) = operand.dims().split_last()?;
        let rows = outer.iter().try_fold(1usize, |rows, &extent| rows.checked_mul(extent))?;
        if !operand.is_static() || length > LONGEST || op.k > length || op.k > TopKPlan::MOST {
            return None;
        }
        let (rows, length) = (if op.k == 0 { 0 } else { rows as u64 }, length as u64);
        let wanted = busy_blocks(target).checked_div(rows).unwrap_or(1).min(length / LEAST_CHUNK).max(1);
        let chunk = length.div_ceil(wanted);
        Some(TopKPlan {
            element_type: ty,
            key: if op.largest { key.reversed() } else { key },
            largest: op.largest,
            count: op.k as u64,
            rows,
            length,
            chunk,
            chunks: length.checked_div(chunk).map_or(1, |_| length.div_ceil(chunk)),
        })
    }

    fn phases(&self) -> Vec<TopKPhase> {
        if self.chunks > 1 { vec![TopKPhase::Chunks, TopKPhase::Merge] } else { vec![TopKPhase::Rows] }
    }

    fn commands(&self, _: &KernelSource<'_>) -> Vec<PlanCommand<TopKPhase>> {
        let launch = |phase| match phase {
            TopKPhase::Rows => PlanCommand::launch(phase, PlanArgument::arrays(3, None)),
            TopKPhase::Chunks => PlanCommand::launch(phase, PlanArgument::arrays(1, Some(0))),
            TopKPhase::Merge => PlanCommand::launch(phase, PlanArgument::arrays(3, Some(0))),
        };
        self.phases().into_iter().map(launch).collect()
    }

    /// Returns the size in bytes of the chunks' items, if there is more than one chunk.
    fn scratch_bytes(&self) -> Vec<usize> {
        let bytes = self.rows * self.chunks * self.count * u64::from(self.item_bits() / 8);
        (self.chunks > 1).then_some(bytes as usize).into_iter().collect()
    }

    fn emit(&self, source: &KernelSource<'_>, phase: TopKPhase, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let kernel = emitter.simt_kernel(name, phase.words(), 0)?;
        let place = (source.module, source.computation);
        let launch = match (phase, &kernel.pointers[..]) {
            (TopKPhase::Rows, pointers) if self.picks() => pick::emit(self, place, emitter, pointers)?,
            _ => Selection::new(self, phase, &kernel.pointers)?.emit(place, emitter)?,
        };
        Kernel::end(emitter, name, launch, self.describe(phase))
    }
}
