//! Target profile of this machine, for the passes.

use std::collections::{BTreeMap, BTreeSet};

use xla_hlo::ElementType;
use xla_llvm::target::Target;
use xla_passes::{AttentionProfile, DotProfile, EpilogueProfile, FusionProfile, HeadSizes, TargetProfile};

use crate::lowering::LIBRARY_DOT;

/// Assumed size of the last-level cache, in bytes.
const LAST_CACHE_BYTES: usize = 32 << 20;

/// Minimum number of queries of a head for attention as one kernel, which packs all keys and values.
const LEAST_QUERIES: usize = 8;
/// Minimum number of keys of a head for attention as one kernel: separate kernels took the same time with 128.
const LEAST_KEYS: usize = 128;
/// Maximum number of keys of an attention that is one kernel even if it has too few queries for all threads.
const FEW_KEYS: usize = 1024;
/// Number of queries that share packed keys and values in one work item of an attention.
const QUERIES: usize = 256;
/// Maximum number of elements of a query or a value: a block of packed keys and values stays in the L2 cache.
const MOST_HEAD: usize = 256;

/// Whether a program whose arrays take `bytes` bytes reads from main memory, because they exceed the caches.
pub(crate) fn reads_main_memory(bytes: usize) -> bool {
    bytes > LAST_CACHE_BYTES
}

/// Returns the profile of a target with `threads` threads; `excess_precision` permits that 16-bit floats are rounded at
/// other points than the program states. Cache sizes and rates are those of current server cores. They only select
/// between correct programs, so rough values are enough.
pub(crate) fn profile(target: &Target, threads: usize, excess_precision: bool) -> TargetProfile {
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
        fusion: FusionProfile {
            epilogues: epilogues(),
            attention: attention(excess_precision),
            ..FusionProfile::reductions()
        },
        // The library computes many small matrix products as fast as a merged one, so concatenating operands in each
        // run would only cost time. Kernels and the library pack right operands, which takes several times as long if
        // packing transposes.
        dot: DotProfile { right_rows: true, merge_bytes: 0, ..TargetProfile::generic().dot },
        ..TargetProfile::generic()
    }
}

/// Returns the attentions that one kernel computes by blocks of keys, without scores in memory.
fn attention(excess_precision: bool) -> AttentionProfile {
    let sizes = HeadSizes { step: 1, most: MOST_HEAD };
    AttentionProfile {
        types: BTreeSet::from([ElementType::F32, ElementType::BF16, ElementType::F16]),
        full_precision: true,
        any_head_order: true,
        head_sizes: BTreeMap::from([(2, sizes), (4, sizes)]),
        sum_head_sizes: BTreeMap::new(),
        least_queries: LEAST_QUERIES,
        least_keys: LEAST_KEYS,
        few_queries: 0,
        tile: QUERIES,
        few_keys: FEW_KEYS,
        excess_precision,
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
