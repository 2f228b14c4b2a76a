//! Plan of a scan by blocks: one block per fiber, or one per tile of a fiber.

use xla_hlo::ops::{BinaryOp, Cumulative, Op, combiner_identity, simple_combiner};
use xla_hlo::{ElementType, Error, Result};

use crate::emitter::Emitter;
use crate::fused::core::address::compute_bits;
use crate::fused::kernel::Kernel;
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::kernel_plan::command::{PlanArgument, PlanCommand};
use crate::fused::simt::scan::state::ScanState;
use crate::fused::source::KernelSource;
use crate::fused::tuning::device::busy_blocks;
use crate::fused::tuning::scan::{LEAST_FIBER, LEAST_TILED, MANY_FIBERS, MOST_TURNS, TILE_BITS};
use crate::fused::tuning::threads::{ACCESS_BITS, MOST_INSTRUCTIONS};
use crate::target::Target;

/// Minimum and maximum number of threads per block.
const THREADS: [u64; 2] = [64, 256];

/// Plan of a scan by blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPlan {
    pub(super) combiner: BinaryOp,
    pub(super) ty: ElementType,
    /// Scanned dimension.
    pub(super) dimension: usize,
    pub(super) from_end: bool,
    /// Dimensions of the array.
    pub(super) dims: Vec<usize>,
    /// Number of threads per block.
    pub(super) threads: u64,
    /// Number of adjacent elements per thread and iteration.
    pub(super) width: u64,
    /// Number of iterations of a block.
    pub(super) turns: u64,
    /// Number of tiles per fiber, one block each; 1 if a block scans the whole fiber.
    pub(super) tiles: u64,
}

/// Launch of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanPhase {
    /// Clears the state words of the blocks. The word is their address.
    Clear,
    /// Stores the running totals. The words are addresses of the inputs, of the result, and of the state words, if
    /// there are some.
    Scan,
}

impl KernelPlan for ScanPlan {
    type Phase = ScanPhase;

    const NAME: &'static str = "scan";
    const READS_SOURCE: bool = true;

    /// Returns the plan for a kernel whose root is a scan. `None` for others, and if a kernel with one thread per fiber
    /// is faster.
    fn new(source: &KernelSource<'_>, target: &Target) -> Option<ScanPlan> {
        let graph = &source.module[source.computation];
        let root = &graph[source.root];
        let Op::ReduceWindow(op) = root.op() else { return None };
        if !source.has_strategy() {
            return None;
        }
        let combiner = simple_combiner(&source.module[op.computation])?;
        let array = root.shape().as_array()?;
        let dims = array.dims().to_vec();
        let ty = array.element_type();
        combiner_identity(combiner, ty)?;
        let Cumulative { dimension, from_end, .. } = op.window.cumulative(&dims)?;
        let size = dims[dimension] as u64;
        let elements = array.element_count() as u64;
        let fibers = elements.checked_div(size)?;
        let innermost = dims[dimension + 1..].iter().all(|&d| d == 1);
        if size < LEAST_FIBER || fibers == 0 || (!innermost && fibers >= MANY_FIBERS) {
            return None;
        }
        let mut width = u64::from(ACCESS_BITS / compute_bits(ty).clamp(32, ACCESS_BITS));
        while width > 1 && !(innermost && size.is_multiple_of(width)) {
            width /= 2;
        }
        let threads = (size / width).next_power_of_two().clamp(THREADS[0], THREADS[1]);
        let whole = size.div_ceil(threads * width);
        let plan = ScanPlan { combiner, ty, dimension, from_end, dims, threads, width, turns: whole, tiles: 1 };
        let is_tiled = size >= LEAST_TILED && fibers < busy_blocks(target);
        Some(if is_tiled { plan.in_tiles(graph.ids().count() as u64, busy_blocks(target)) } else { plan })
    }

    fn phases(&self) -> Vec<ScanPhase> {
        if self.tiles > 1 { vec![ScanPhase::Clear, ScanPhase::Scan] } else { vec![ScanPhase::Scan] }
    }

    fn commands(&self, source: &KernelSource<'_>) -> Vec<PlanCommand<ScanPhase>> {
        let state = self.state().map(|_| 0);
        let launch = |phase| match phase {
            ScanPhase::Clear => PlanCommand::launch(phase, PlanArgument::arrays(0, state)),
            ScanPhase::Scan => PlanCommand::launch(phase, PlanArgument::arrays(source.inputs.len() + 1, state)),
        };
        self.phases().into_iter().map(launch).collect()
    }

    /// Returns the size in bytes of the state words, if blocks communicate.
    fn scratch_bytes(&self) -> Vec<usize> {
        self.state().map(|state| state.bytes() as usize).into_iter().collect()
    }

    fn describe(&self, phase: ScanPhase) -> String {
        let text = match phase {
            ScanPhase::Clear => "clears the state words of a scan",
            ScanPhase::Scan if self.tiles > 1 => "scan by tiles",
            ScanPhase::Scan => "scan by fibers",
        };
        text.to_string()
    }

    fn emit(&self, source: &KernelSource<'_>, phase: ScanPhase, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        match (phase, self.state()) {
            (ScanPhase::Scan, _) => self.emit_scan(source, emitter, name),
            (ScanPhase::Clear, Some(state)) => self.emit_clear(state, source, emitter, name),
            (ScanPhase::Clear, None) => Err(Error::internal("scan has no state to clear")),
        }
    }
}

impl ScanPlan {
    /// Splits fibers into tiles. A tile has the number of iterations whose elements a thread can hold in registers, or
    /// fewer if there were too few blocks for the device.
    fn in_tiles(mut self, instructions: u64, busy: u64) -> ScanPlan {
        let bits = self.width * u64::from(compute_bits(self.ty).max(32)) * if self.ty.is_complex() { 2 } else { 1 };
        let (size, turn) = (self.size(), self.threads * self.width);
        let tiles = |turns: u64| size.div_ceil(turn * turns);
        let mut turns = (TILE_BITS / bits).clamp(1, MOST_TURNS);
        while turns > 1
            && (self.fibers() * tiles(turns) < busy || instructions * self.width * turns > MOST_INSTRUCTIONS)
        {
            turns /= 2;
        }
        (self.turns, self.tiles) = (turns, tiles(turns));
        self
    }

    pub(super) fn state(&self) -> Option<ScanState> {
        (self.tiles > 1).then(|| ScanState::new(self.ty, self.threads, [self.fibers(), self.tiles]))
    }

    pub(super) fn size(&self) -> u64 {
        self.dims[self.dimension] as u64
    }

    pub(super) fn fibers(&self) -> u64 {
        self.dims.iter().map(|&d| d as u64).product::<u64>() / self.size()
    }

    pub(super) fn blocks(&self) -> u64 {
        self.fibers() * self.tiles
    }

    /// Returns the dimensions that are not scanned, with their sizes.
    pub(super) fn independent(&self) -> impl Iterator<Item = (usize, u64)> {
        let sizes = self.dims.iter().map(|&size| size as u64).enumerate();
        sizes.filter(|&(dimension, _)| dimension != self.dimension)
    }
}
