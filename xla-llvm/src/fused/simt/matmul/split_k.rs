//! Split-K: K of a matmul with few results and a long K is split into parts over blocks, and a second launch adds up
//! the partial sums.
//!
//! The prologue (operations before the matmul) runs in the first launch, the epilogue in the second one. Without
//! atomics, both launches add in a deterministic order.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{Error, Result};

use crate::elemental::{self};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::core::convolution::zero;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::kernel_plan::command::{PlanArgument, PlanCommand};
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::Frame;
use crate::fused::loops::variables::counters;
use crate::fused::simt::matmul::cut::Cut;
use crate::fused::simt::matmul::skinny::SkinnyMatmul;
use crate::fused::simt::matmul::tiling::Tiling;
use crate::fused::source::KernelSource;
use crate::fused::tuning::split_k::{LEAST_PARTS, MANY_THREADS, MOST_MEMBERS};
use crate::simt::WARP;
use crate::target::Target;

/// Plan of a split-K matmul.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SplitK {
    parts: Parts,
    cut: Cut,
    results: u64,
    /// Size of a sum in bytes.
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Parts {
    Tiles(Tiling),
    Skinny(SkinnyMatmul),
}

/// Launch of a split-K matmul.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SplitKPhase {
    /// Computes the partial sums of each part of K. The words are addresses of the inputs, then of scratch memory.
    Parts,
    /// Adds up the partial sums and computes the epilogue. The words are addresses of the inputs and the results, then
    /// of scratch memory.
    Results,
}

impl KernelPlan for SplitK {
    type Phase = SplitKPhase;

    const NAME: &'static str = "split-k";
    const READS_SOURCE: bool = true;

    /// Returns the plan for a kernel with a matmul of few results and a long K.
    fn new(source: &KernelSource<'_>, target: &Target) -> Option<SplitK> {
        let kernel = FusedKernel::of_elements(source)?;
        let matmul = target.simt().and_then(|_| kernel.only_matmul())?;
        let (parts, cut) = match SkinnyMatmul::cut(&matmul, target) {
            Some(skinny) => (Parts::Skinny(skinny), skinny.cut),
            None if matmul.fills_tiles() && !SkinnyMatmul::is_skinny(&matmul) => {
                let tiling = Tiling::cut(&matmul, target)?;
                (Parts::Tiles(tiling), tiling.cut)
            }
            None => return None,
        };
        Some(SplitK::of(&matmul, parts, cut))
    }

    fn phases(&self) -> Vec<SplitKPhase> {
        SplitK::PHASES.to_vec()
    }

    fn commands(&self, source: &KernelSource<'_>) -> Vec<PlanCommand<SplitKPhase>> {
        let arrays = |phase| self.words(phase, source) - 1;
        SplitK::PHASES.map(|phase| PlanCommand::launch(phase, PlanArgument::arrays(arrays(phase), Some(0)))).into()
    }

    fn scratch_bytes(&self) -> Vec<usize> {
        vec![(self.cut.parts * self.results * self.bytes) as usize]
    }

    fn describe(&self, phase: SplitKPhase) -> String {
        format!("split-k {phase:?}: {} parts of {} steps", self.cut.parts, self.cut.size)
    }

    fn emit(&self, source: &KernelSource<'_>, phase: SplitKPhase, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let maps = match phase {
            SplitKPhase::Parts => self.tiling().map_or(0, Tiling::maps),
            SplitKPhase::Results => 0,
        };
        let frame = Frame::open_with_maps(emitter, name, [self.words(phase, source), maps])?;
        let kernel = FusedKernel::new(source)?;
        let matmul = kernel.matmul()?;
        let launch = match (phase, self.parts) {
            (SplitKPhase::Parts, Parts::Tiles(tiling)) => kernel.emit_matmul(emitter, frame, &matmul, tiling)?,
            (SplitKPhase::Parts, Parts::Skinny(skinny)) => {
                kernel.emit_skinny_matmul(emitter, frame, &matmul, skinny)?
            }
            (SplitKPhase::Results, _) => self.emit_results(&kernel, emitter, frame, &matmul)?,
        };
        Kernel::end(emitter, name, launch, self.describe(phase))
    }
}

impl SplitK {
    /// The launches in order.
    pub(crate) const PHASES: [SplitKPhase; 2] = [SplitKPhase::Parts, SplitKPhase::Results];

    /// Returns the plan whose first launch uses a tiling.
    pub(crate) fn of_tiles(matmul: &Matmul<'_>, tiling: Tiling) -> SplitK {
        SplitK::of(matmul, Parts::Tiles(tiling), tiling.cut)
    }

    fn of(matmul: &Matmul<'_>, parts: Parts, cut: Cut) -> SplitK {
        SplitK { parts, cut, results: matmul.results(), bytes: matmul.accumulator_type.byte_width() as u64 }
    }

    /// Returns the tiling of the first launch, unless it is a skinny matmul.
    pub(crate) fn tiling(&self) -> Option<Tiling> {
        match self.parts {
            Parts::Tiles(tiling) => Some(tiling),
            Parts::Skinny(_) => None,
        }
    }

    /// Returns the number of 64-bit words that a launch takes.
    fn words(&self, phase: SplitKPhase, source: &KernelSource<'_>) -> usize {
        match phase {
            SplitKPhase::Parts => source.inputs.len() + 1,
            SplitKPhase::Results => source.pointer_count() + 1,
        }
    }

    /// Returns the number of threads that add up the partial sums of one result.
    fn members(&self) -> u32 {
        let wanted = (MANY_THREADS / self.results).min(self.cut.parts / LEAST_PARTS).clamp(1, MOST_MEMBERS);
        1 << wanted.ilog2()
    }

    /// Emits the body of [`SplitKPhase::Results`]; a block computes [`WARP`] adjacent results.
    fn emit_results<'ctx, 'm>(
        &self,
        kernel: &FusedKernel<'_, 'm>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        matmul: &Matmul<'m>,
    ) -> Result<Launch> {
        let scratch = frame.pointers.last().copied();
        let scratch =
            scratch.ok_or_else(|| Error::internal("split-K matmul has no scratch memory for its partial sums"))?;
        let mut s = kernel.bind(emitter, frame.pointers)?;
        let (group, column) = s.enter_column(self.members())?;
        // Threads beyond the last result compute the last one again: all threads of a block must reach the barrier.
        let number = column.smin(self.results as i64 - 1);
        let zero = zero(emitter, matmul.accumulator_type);
        let sum = s.reduced_by_group(group, BinaryOp::Add, zero, &[self.cut.parts], &mut |s, at| {
            let part = s.number_of(&at[0].clone().scaled(self.results as i64))?;
            let at = s.lanes_of(part) + number;
            Ok(elemental::load(emitter, scratch, at, matmul.accumulator_type, 1, None))
        })?;
        s.when(group.member.eq(0) & column.ult(self.results as i64), &[], |s| {
            s.item_level = s.depth();
            // A new symbol, so that computations that depend on it are not hoisted above the branch.
            let result = AffineExpr::symbol(s.uniform_symbol(number, Some(self.results)));
            let [rows, columns] = [MatmulSide::Left, MatmulSide::Right].map(|side| matmul.extent(side));
            let at = counters(s, &result, &[matmul.batches(), rows, columns])?;
            let batch = counters(s, &at[0], &matmul.batch)?;
            kernel.store_results(s, (matmul, &batch), &at[1..], sum).map(|()| Vec::new())
        })?;
        Ok(Launch { work_items: self.results.div_ceil(WARP.into()), block: Some(WARP * self.members()) })
    }
}
