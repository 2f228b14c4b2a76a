//! Target profile of a GPU, for the passes.

use std::collections::{BTreeMap, BTreeSet};

use xla_hlo::{ElementType, Opcode};
use xla_llvm::fused::{
    ATTENTION_DECODE_QUERIES, ATTENTION_HEADS, ATTENTION_ROWS, SCORE_SUM_HEADS, SmallMatrixPlan, TopKPlan,
};
use xla_passes::{
    AttentionProfile, DotProfile, EpilogueProfile, FilterOrder, FusionProfile, HeadSizes, LayoutProfile, TargetProfile,
    TopKProfile,
};

use crate::gpu_profile::GpuProfile;

/// Arithmetic of a contraction from which on its epilogue goes into its kernel; smaller ones go with others' kernels.
const LEAST_FLOPS: u64 = 1 << 19;

/// Instructions of a fusion, and code: LLVM and ptxas take a second for as many, three for functions of f64.
const MOST_INSTRUCTIONS: usize = 4096;
const MOST_CODE: u64 = 8192;

/// Registers for values of a fusion, of the 255 that a thread may have; the rest are for addresses and for values
/// within an operation.
const MOST_LIVE_REGISTERS: usize = 208;

/// Queries of a head, and keys, from which on an attention has a kernel of its own: a quarter of a tile.
const LEAST_QUERIES: usize = 16;
const LEAST_KEYS: usize = 64;
/// Keys that a block goes through in the time that three launches take.
const FEW_KEYS: usize = 1024;

/// Bytes that a multiprocessor reads from the second-level cache a cycle: 5,120 for the 108 of an A100, says NVIDIA's
/// paper of its architecture.
const CACHE_BYTES: f64 = 48.0;

/// The profile of a GPU. Rates steer choices between two correct programs, so rough numbers do.
pub(crate) fn profile(gpu: &GpuProfile) -> TargetProfile {
    let clock_hz = gpu.clock_hz as f64;
    TargetProfile {
        vector_bytes: 16,
        l1_bytes: 128 << 10,
        l2_bytes: 1 << 20,
        l3_bytes: usize::try_from(gpu.l2_bytes).unwrap_or(usize::MAX),
        threads: gpu.multiprocessors as usize,
        clock_hz,
        memory_bandwidth: gpu.memory_bandwidth as f64,
        cache_bandwidth: CACHE_BYTES * f64::from(gpu.multiprocessors) * clock_hz,
        launch_seconds: 3e-6,
        splits_any_reduction: true,
        fusion: FusionProfile {
            max_instructions: MOST_INSTRUCTIONS,
            max_code: MOST_CODE,
            max_live_registers: MOST_LIVE_REGISTERS,
            horizontal_bytes: 1 << 20,
            max_transposed_bytes: 1 << 20,
            epilogues: EpilogueProfile::contractions(ElementType::ALL.iter().copied(), LEAST_FLOPS),
            attention: attention(gpu),
            ..FusionProfile::reductions()
        },
        dot: DotProfile { any_operand_order: true, right_rows: false, merge_bytes: 0 },
        // As cuDNN has them.
        layout: LayoutProfile { filters: FilterOrder::OutputFeaturesFirst, ..TargetProfile::generic().layout },
        lacks: lacks(),
        top_k: TopKProfile {
            most: TopKPlan::MOST,
            elements: ElementType::ALL.iter().copied().filter(|&ty| TopKPlan::takes(ty)).collect(),
        },
        small_matrices: ElementType::ALL.iter().filter_map(|&ty| Some((ty, SmallMatrixPlan::most_rows(ty)?))).collect(),
        // Tensor cores, and cuDNN, multiply them as they are.
        convolution_floats: BTreeSet::from([ElementType::F16, ElementType::BF16]),
        ..TargetProfile::generic()
    }
}

/// Operations that the passes expand into others.
fn lacks() -> BTreeSet<Opcode> {
    BTreeSet::from([Opcode::Cholesky, Opcode::TriangularSolve, Opcode::TopK, Opcode::Fft])
}

/// Attentions by kernels of tensor cores that multiply TF32 and both 16-bit floats: those of all GPUs that have TF32.
fn attention(gpu: &GpuProfile) -> AttentionProfile {
    let [_, tf32, ..] = gpu.tensor;
    let sizes = |heads: [(usize, usize, usize); 2]| match tf32 {
        0 => BTreeMap::new(),
        _ => BTreeMap::from(heads.map(|(bytes, step, most)| (bytes, HeadSizes { step, most }))),
    };
    AttentionProfile {
        types: BTreeSet::from([ElementType::F16, ElementType::BF16, ElementType::F32]),
        head_sizes: sizes(ATTENTION_HEADS),
        sum_head_sizes: sizes(SCORE_SUM_HEADS),
        least_queries: LEAST_QUERIES,
        least_keys: LEAST_KEYS,
        few_queries: ATTENTION_DECODE_QUERIES,
        tile: ATTENTION_ROWS,
        few_keys: FEW_KEYS,
        excess_precision: false,
    }
}
