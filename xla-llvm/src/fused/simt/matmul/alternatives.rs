//! Other tiles for a matmul than the usual ones, for those who can measure which are the fastest.
//!
//! The usual ones are chosen by rule, from sizes and the target alone. What a device does with them depends on more:
//! caches, how many blocks it holds at a time, how the last tiles fill it.

use std::fmt;

use xla_hlo::{ElementType, Result};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::emit::emit_by;
use crate::fused::kernel::Kernel;
use crate::fused::simt::matmul::skinny::SkinnyMatmul;
use crate::fused::simt::matmul::split_k::SplitK;
use crate::fused::simt::matmul::tiling::Tiling;
use crate::fused::source::KernelSource;
use crate::fused::strategy::Strategy;
use crate::fused::tuning::matmul::{LEAST_TUNED, MOST_KERNELS};
use crate::mma::OperandType;
use crate::target::Target;

/// Ways to compute a kernel whose matmul goes in tiles, beside the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatmulAlternatives {
    /// The ways, the likelier first; at least one.
    pub ways: Vec<TiledMatmul>,
    /// K: products that are added up for each result.
    pub terms: u64,
    /// Whether all of them round f32 to TF32.
    pub rounds_to_tf32: bool,
    /// The kernel and all ways, the usual one too, for people, and to tell this list from any other.
    pub name: String,
}

/// A way to compute a matmul in tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TiledMatmul {
    /// One kernel.
    Whole(WholeSums),
    /// Two kernels: partial sums, then their sums.
    Parts(SplitK),
}

/// Tiles of whole sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WholeSums(Tiling);

impl MatmulAlternatives {
    /// The alternatives for a kernel. `None` where the usual way is not one in tiles, or the matmul is too small for a
    /// difference to be seen, where results do not tell whether sums differ by more than rounding, and for a target
    /// without threads.
    pub fn new(source: &KernelSource<'_>, target: &Target) -> Option<MatmulAlternatives> {
        target.simt()?;
        let kernel = FusedKernel::new(source).ok().filter(|kernel| !kernel.dims.contains(&0))?;
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
        let all = [usual].into_iter().map(|tiling| TiledMatmul::new(&matmul, tiling)).chain(ways.iter().copied());
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
            1 => TiledMatmul::Whole(WholeSums(tiling)),
            _ => TiledMatmul::Parts(SplitK::of_tiles(matmul, tiling)),
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
            TiledMatmul::Whole(WholeSums(tiling)) => Some(*tiling),
            TiledMatmul::Parts(plan) => plan.tiling(),
        }
    }
}

/// Tiles, and the parts of the sum if it has some.
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

impl WholeSums {
    /// Writes the function of the kernel into the emitter's module, for the kernel that these tiles are for.
    pub fn emit(&self, source: &KernelSource<'_>, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        emit_by(Strategy::Matmul(self.0), emitter, source, name)
    }
}

/// The tiles that [`SplitK`] or the kernel's own strategy would have, if it is one of tiles.
fn usual(kernel: &FusedKernel<'_, '_>, matmul: &Matmul<'_>, target: &Target) -> Option<Tiling> {
    if !matmul.fills_tiles() || SkinnyMatmul::is_skinny(matmul) || kernel.fibers(target).ok()?.is_some() {
        return None;
    }
    Some(Tiling::cut(matmul, target).unwrap_or_else(|| Tiling::new(matmul, target)))
}

/// Whether results are as near to each other as the sums that they are made of: those that are rounded to integers, or
/// compared, may not be.
fn shows_rounding(kernel: &FusedKernel<'_, '_>, matmul: &Matmul<'_>) -> bool {
    let is_rounded = |element: ElementType| element.is_float() || element.is_complex();
    !is_rounded(matmul.element_type) || kernel.outputs.iter().all(|output| is_rounded(output.shape.element_type()))
}

/// Products in all.
fn work(matmul: &Matmul<'_>) -> u64 {
    matmul.results().saturating_mul(matmul.k())
}
