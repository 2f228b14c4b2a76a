//! Target profile of this machine, for the passes.

use xla_hlo::ElementType;
use xla_llvm::target::Target;
use xla_passes::{DotProfile, EpilogueProfile, FusionProfile, TargetProfile};

use crate::lowering::LIBRARY_DOT;

/// Last-level cache of a machine.
const LAST_CACHE_BYTES: usize = 32 << 20;

/// Whether memory is read from farther than the caches, by a program whose arrays take so many bytes together.
pub(crate) fn reads_main_memory(bytes: usize) -> bool {
    bytes > LAST_CACHE_BYTES
}

/// Profile of a target with `threads` threads. Cache sizes and rates are those of current server cores; they steer
/// choices between two correct programs, so rough numbers do.
pub(crate) fn profile(target: &Target, threads: usize) -> TargetProfile {
    TargetProfile {
        vector_bytes: (target.abilities().vector_bits as usize / 8).max(4),
        l1_bytes: 32 << 10,
        l2_bytes: 1 << 20,
        l3_bytes: LAST_CACHE_BYTES,
        threads,
        clock_hz: 3e9,
        memory_bandwidth: 1e10 * threads as f64,
        cache_bandwidth: 5e10 * threads as f64,
        launch_seconds: 1e-7,
        fusion: FusionProfile { epilogues: epilogues(), ..FusionProfile::reductions() },
        // The library takes many small products as fast as one: putting operands together in each run would cost.
        // Kernels and library pack right operands, which takes several times as long where they transpose.
        dot: DotProfile { right_rows: true, merge_bytes: 0, ..TargetProfile::generic().dot },
        ..TargetProfile::generic()
    }
}

/// Contractions whose sums are in registers when a kernel goes on with them.
pub(crate) fn tile_epilogues() -> EpilogueProfile {
    let types = ElementType::ALL.iter().copied().filter(|ty| ty.is_float() || ty.is_complex() || ty.bit_width() >= 32);
    EpilogueProfile::contractions(types, 2 * LIBRARY_DOT as u64)
}

/// Contractions that the library computes for certain: a kernel goes on with their result.
fn epilogues() -> EpilogueProfile {
    use ElementType::*;
    EpilogueProfile::contractions([F32, F64, C64, C128], 2 * LIBRARY_DOT as u64)
}
