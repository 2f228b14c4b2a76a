//! Plan of a scan by blocks: a block for each fiber, or one for each tile of some turns.

use xla_hlo::ElementType;
use xla_hlo::ops::{BinaryOp, Cumulative, Op, combiner_identity, simple_combiner};

use crate::fused::core::address::compute_bits;
use crate::fused::simt::scan::state::ScanState;
use crate::fused::source::KernelSource;
use crate::fused::tuning::device::busy_blocks;
use crate::fused::tuning::scan::{LEAST_FIBER, LEAST_TILED, MANY_FIBERS, MOST_TURNS, TILE_BITS};
use crate::fused::tuning::threads::{ACCESS_BITS, MOST_INSTRUCTIONS};
use crate::target::Target;

/// Threads of the largest and the smallest block.
const THREADS: [u64; 2] = [64, 256];

/// Plan of a scan by blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPlan {
    pub(super) combiner: BinaryOp,
    pub(super) ty: ElementType,
    /// The dimension that is scanned.
    pub(super) dimension: usize,
    pub(super) from_end: bool,
    /// Sizes of the array.
    pub(super) dims: Vec<usize>,
    /// Threads of a block.
    pub(super) threads: u64,
    /// Neighbouring elements of a thread.
    pub(super) width: u64,
    /// Turns of a block, in each of which a thread has that many elements.
    pub(super) turns: u64,
    /// Tiles of a fiber, with a block each; one where its block goes along the whole fiber.
    pub(super) tiles: u64,
}

/// Phase of a launch of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanPhase {
    /// Clears the words by which blocks tell each other: their address.
    Clear,
    /// Stores the running totals: addresses of the source's inputs, of the result, and of those words, if there are
    /// some.
    Scan,
}

impl ScanPlan {
    /// The plan for a kernel whose root is a scan. `None` for others, and where each thread had better scan fibers of
    /// its own.
    pub fn new(source: &KernelSource<'_>, target: &Target) -> Option<ScanPlan> {
        let graph = &source.module[source.computation];
        let root = &graph[source.root];
        let Op::ReduceWindow(op) = root.op() else { return None };
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

    /// The same with tiles of as many turns as a thread holds the elements of, fewer where the machine would not be
    /// busy.
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

    /// The launches.
    pub fn phases(&self) -> &'static [ScanPhase] {
        if self.tiles > 1 { &[ScanPhase::Clear, ScanPhase::Scan] } else { &[ScanPhase::Scan] }
    }

    /// Bytes of the words by which blocks tell each other, if they do.
    pub fn state_bytes(&self) -> Option<usize> {
        self.state().map(|state| state.bytes() as usize)
    }

    pub(super) fn state(&self) -> Option<ScanState> {
        (self.tiles > 1).then(|| ScanState::new(self.ty, self.threads, [self.fibers(), self.tiles]))
    }

    /// Number of 64-bit words that a kernel takes.
    pub fn words(&self, phase: ScanPhase, source: &KernelSource<'_>) -> usize {
        match phase {
            ScanPhase::Clear => 1,
            ScanPhase::Scan => source.inputs.len() + 1 + usize::from(self.tiles > 1),
        }
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

    /// Dimensions that are not scanned, with their sizes.
    pub(super) fn independent(&self) -> impl Iterator<Item = (usize, u64)> {
        let sizes = self.dims.iter().map(|&size| size as u64).enumerate();
        sizes.filter(|&(dimension, _)| dimension != self.dimension)
    }
}
