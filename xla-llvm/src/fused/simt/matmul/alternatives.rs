//! Alternative tilings of a matmul, for autotuning.
//!
//! The default tiling is chosen by rule, from the sizes and the target alone. The speed on a device also depends on
//! caches, occupancy, and how well the last wave of tiles fills the device.

use std::fmt;

use xla_hlo::ElementType;

use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::kernel_plan::launch::LaunchPlan;
use crate::fused::kernel_plan::single::SingleKernel;
use crate::fused::simt::matmul::skinny::SkinnyMatmul;
use crate::fused::simt::matmul::split_k::SplitK;
use crate::fused::simt::matmul::tiling::Tiling;
use crate::fused::source::KernelSource;
use crate::fused::tuning::matmul::{LEAST_TUNED, MOST_KERNELS};
use crate::mma::OperandType;
use crate::target::Target;

/// Candidates of a kernel whose default strategy is a tiled matmul.
#[derive(Clone, Debug, PartialEq)]
pub struct MatmulAlternatives {
    /// The candidates except the default, the most promising first; at least one.
    pub ways: Vec<TiledMatmul>,
    /// K: number of products in each sum.
    pub terms: u64,
    /// Whether all candidates round f32 to TF32.
    pub rounds_to_tf32: bool,
    /// Readable description of the kernel and of all candidates, the default included; also the key of this list.
    pub name: String,
}

/// Strategy for a matmul in tiles.
#[derive(Clone, Debug, PartialEq)]
pub enum TiledMatmul {
    /// One kernel that computes whole sums.
    Whole(SingleKernel),
    /// Two kernels (split-K): the first computes partial sums, the second adds them up.
    Parts(SplitK),
}

impl MatmulAlternatives {
    /// Returns the candidates for a kernel. `None` for a target without threads, if the default is not tiled, if the
    /// matmul is too small for a measurable difference, or if the results cannot show whether sums differ by more than
    /// rounding.
    pub fn new(source: &KernelSource<'_>, target: &Target) -> Option<MatmulAlternatives> {
        target.simt()?;
        let kernel = FusedKernel::of_elements(source)?;
        let matmul = kernel.only_matmul().filter(|matmul| work(matmul) >= LEAST_TUNED)?;
        if !shows_rounding(&kernel, &matmul) {
            return None;
        }
        let usual = usual(&kernel, &matmul, target)?;
        let mut left = MOST_KERNELS - TiledMatmul::new(&matmul, usual).kernels();
        let mut ways = Vec::new();
        for tiling in usual.others(&matmul, target) {
            let way = TiledMatmul::new(&matmul, tiling);
            if let Some(rest) = left.checked_sub(way.kernels()) {
                left = rest;
                ways.push(way);
            }
        }
        let all = [usual].into_iter().map(|tiling| TiledMatmul::new(&matmul, tiling)).chain(ways.iter().cloned());
        let all: Vec<String> = all.map(|way| way.to_string()).collect();
        let [m, n] = [MatmulSide::Left, MatmulSide::Right].map(|side| matmul.extent(side));
        let (element, k, batches) = (matmul.element_type, matmul.k(), matmul.batches());
        let name = format!("{element} {m}x{n}x{k} x{batches} in {} ({:016x})", all.join("; "), source.fingerprint());
        let rounds_to_tf32 = usual.unit == Some(OperandType::Tf32);
        (!ways.is_empty()).then_some(MatmulAlternatives { ways, terms: k, rounds_to_tf32, name })
    }
}

impl TiledMatmul {
    fn new(matmul: &Matmul<'_>, tiling: Tiling) -> TiledMatmul {
        match tiling.cut.parts {
            1 => TiledMatmul::Whole(SingleKernel { tiling: Some(tiling) }),
            _ => TiledMatmul::Parts(SplitK::of_tiles(matmul, tiling)),
        }
    }

    /// Returns the launches for a source, which must be the kernel that the alternatives were chosen for.
    pub fn launch_plan<'m>(&self, source: &KernelSource<'m>) -> LaunchPlan<'m> {
        match self {
            TiledMatmul::Whole(plan) => LaunchPlan::new(plan, source),
            TiledMatmul::Parts(plan) => LaunchPlan::new(plan, source),
        }
    }

    fn kernels(&self) -> usize {
        match self {
            TiledMatmul::Whole(_) => 1,
            TiledMatmul::Parts(_) => SplitK::PHASES.len(),
        }
    }

    fn tiling(&self) -> Option<Tiling> {
        match self {
            TiledMatmul::Whole(plan) => plan.tiling,
            TiledMatmul::Parts(plan) => plan.tiling(),
        }
    }
}

/// Describes the tiling and, for split-K, the parts.
impl fmt::Display for TiledMatmul {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(tiling) = self.tiling() else { return Ok(()) };
        write!(f, "{tiling}")?;
        match tiling.cut.parts {
            1 => Ok(()),
            parts => write!(f, ", {parts} parts of {} steps", tiling.cut.size),
        }
    }
}

/// Returns the tiling that [`SplitK`] or the kernel's default strategy uses, if it is a tiled one.
fn usual(kernel: &FusedKernel<'_, '_>, matmul: &Matmul<'_>, target: &Target) -> Option<Tiling> {
    if !matmul.fills_tiles() || SkinnyMatmul::is_skinny(matmul) || kernel.fibers(target).ok()?.is_some() {
        return None;
    }
    Some(Tiling::cut(matmul, target).unwrap_or_else(|| Tiling::new(matmul, target)))
}

/// Returns whether the results differ by no more than the sums they are computed from. Results that are rounded to
/// integers or come from comparisons may differ more.
fn shows_rounding(kernel: &FusedKernel<'_, '_>, matmul: &Matmul<'_>) -> bool {
    let is_rounded = |element: ElementType| element.is_float() || element.is_complex();
    !is_rounded(matmul.element_type) || kernel.outputs.iter().all(|output| is_rounded(output.shape.element_type()))
}

/// Returns the total number of products.
fn work(matmul: &Matmul<'_>) -> u64 {
    matmul.results().saturating_mul(matmul.k())
}
