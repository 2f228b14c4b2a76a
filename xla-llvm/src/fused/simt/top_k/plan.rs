//! Launches of a top-k, and their sizes.

use xla_hlo::ops::Op;
use xla_hlo::{ElementKind, ElementType, Error, Result};

use super::pick;
use super::select::Selection;
use crate::emitter::Emitter;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::kernel_plan::launch::{PlanArgument, PlanCommand};
use crate::fused::source::KernelSource;
use crate::fused::tuning::device::busy_blocks;
use crate::fused::tuning::top_k::{FEW, LEAST_CHUNK, MOST};
use crate::target::Target;
use xla_passes::analysis::element_order::Key;

/// Maximum number of elements per row: positions have 32 bits.
const LONGEST: usize = i32::MAX as usize;

/// Plan of the kernels of a `topk`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopKPlan {
    pub(super) element_type: ElementType,
    /// Key of an element; the lesser the key, the better the element.
    pub(super) key: Key,
    pub(super) largest: bool,
    pub(super) count: u64,
    pub(super) rows: u64,
    pub(super) length: u64,
    /// Number of elements per chunk, and of chunks per row.
    pub(super) chunk: u64,
    pub(super) chunks: u64,
}

/// Launch of a top-k. The words are addresses of the operand, of the results' values and positions, and of the chunks'
/// items. A launch omits the arrays that it does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopKPhase {
    /// Stores the results of whole rows.
    Rows,
    /// Stores the best elements of each chunk as items.
    Chunks,
    /// Stores the results from the chunks' items.
    Merge,
}

impl TopKPhase {
    /// Returns the number of 64-bit words that the kernel takes.
    fn words(self) -> usize {
        match self {
            TopKPhase::Rows => 3,
            TopKPhase::Chunks => 2,
            TopKPhase::Merge => 4,
        }
    }
}

impl TopKPlan {
    /// Maximum `k` that kernels support.
    pub const MOST: usize = MOST as usize;

    /// Returns whether kernels support an element type, which must have a total order.
    pub fn takes(ty: ElementType) -> bool {
        Key::total_order(ty).is_some()
    }

    /// Returns the width in bits of an item, which has an element's key in the high bits and its position in the low
    /// ones.
    pub(super) fn item_bits(&self) -> u32 {
        if self.key.bits <= 32 { 64 } else { 128 }
    }

    /// Returns whether a thread group picks the elements one at a time.
    pub(super) fn picks(&self) -> bool {
        let kind = self.element_type.kind();
        let is_plain = match kind {
            ElementKind::Signed | ElementKind::Unsigned => [8, 16, 32].contains(&self.element_type.bit_width()),
            ElementKind::Float => [ElementType::F16, ElementType::BF16, ElementType::F32].contains(&self.element_type),
            ElementKind::Pred | ElementKind::Complex => false,
        };
        is_plain && self.count <= FEW && self.chunks == 1
    }
}

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

    fn describe(&self, _: TopKPhase) -> String {
        "top-k".to_string()
    }

    fn emit(&self, source: &KernelSource<'_>, phase: TopKPhase, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let kernel = emitter.simt_kernel(name, phase.words(), 0)?;
        let place = (source.module, source.computation);
        let launch = match (phase, &kernel.pointers[..]) {
            _ if self.rows == 0 => Launch { work_items: 0, block: None },
            (TopKPhase::Rows, pointers) if self.picks() => pick::emit(self, place, emitter, pointers)?,
            _ => Selection::new(self, phase, &kernel.pointers)?.emit(place, emitter)?,
        };
        let work = (self.rows * self.length) as f64 * 8.0;
        Kernel::end(emitter, name, launch, (work, self.describe(phase)))
    }
}

/// Returns the error for a kernel whose arrays do not fit the launch.
pub(super) fn lacks_addresses() -> Error {
    Error::internal("top-k kernel has unexpected pointers")
}
