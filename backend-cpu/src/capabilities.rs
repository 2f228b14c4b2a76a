//! Target profile of this machine, for the passes.

use xla_hlo::ElementType;
use xla_llvm::target::Target;
use xla_passes::{DotProfile, EpilogueProfile, FusionProfile, TargetProfile};

use crate::lowering::LIBRARY_DOT;

/// Assumed size of the last-level cache, in bytes.
const LAST_CACHE_BYTES: usize = 32 << 20;

/// Whether a program whose arrays take `bytes` bytes reads from main memory, because they exceed the caches.
pub(crate) fn reads_main_memory(bytes: usize) -> bool {
    bytes > LAST_CACHE_BYTES
}

/// Returns the profile of a target with `threads` threads. Cache sizes and rates are those of current server cores.
/// They only select between correct programs, so rough values are enough.
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
        // The library computes many small matrix products as fast as a merged one, so concatenating operands in each
        // run would only cost time. Kernels and the library pack right operands, which takes several times as long if
        // packing transposes.
        dot: DotProfile { right_rows: true, merge_bytes: 0, ..TargetProfile::generic().dot },
        ..TargetProfile::generic()
    }
}

/// Contractions with accumulators in registers, whose kernels can fuse an epilogue.
pub(crate) fn tile_epilogues() -> EpilogueProfile {
    let types = ElementType::ALL.iter().copied().filter(|ty| ty.is_float() || ty.is_complex() || ty.bit_width() >= 32);
    EpilogueProfile::contractions(types, 2 * LIBRARY_DOT as u64)
}

/// Contractions that the library always computes; a separate kernel runs the epilogue on their result.
fn epilogues() -> EpilogueProfile {
    use ElementType::*;
    EpilogueProfile::contractions([F32, F64, C64, C128], 2 * LIBRARY_DOT as u64)
}
