//! Target profile of a GPU: the limits and rates that steer the passes.

use std::collections::{BTreeMap, BTreeSet};

use xla_hlo::{ElementType, Opcode};
use xla_llvm::fused::{
    ATTENTION_BACKWARD_HEADS, ATTENTION_DECODE_QUERIES, ATTENTION_HEADS, ATTENTION_ROWS, SmallMatrixPlan, TopKPlan,
};
use xla_passes::{
    AttentionProfile, DotProfile, EpilogueProfile, FilterOrder, FusionProfile, HeadSizes, LayoutProfile, TargetProfile,
    TopKProfile,
};

use crate::gpu_profile::GpuProfile;

/// Minimum arithmetic operations of a contraction whose epilogue is fused into its kernel. A smaller contraction is
/// compiled alone, or as a loop inside another kernel.
const LEAST_FLOPS: u64 = 1 << 19;

/// Maximum number of instructions of a fusion. With this limit and [`MOST_CODE`], LLVM and ptxas take about a second,
/// and three seconds for functions of f64.
const MOST_INSTRUCTIONS: usize = 4096;
/// Maximum code size of a fusion, in machine instructions per element.
const MOST_CODE: u64 = 8192;

/// Registers for the live values of a fusion, of the 255 that a thread may have. The others hold addresses and
/// intermediate values of single operations.
const MOST_LIVE_REGISTERS: usize = 208;

/// Minimum number of queries of a head for an attention kernel: a quarter of a tile.
const LEAST_QUERIES: usize = 16;
/// Minimum number of keys for an attention kernel.
const LEAST_KEYS: usize = 64;
/// Maximum number of keys for which an attention kernel pays although most multiprocessors are idle: one block
/// processes them in the time of three launches.
const FEW_KEYS: usize = 1024;

/// L2 bandwidth of a multiprocessor, in bytes per cycle. NVIDIA's white paper states 5,120 bytes for the 108
/// multiprocessors of an A100.
const CACHE_BYTES: f64 = 48.0;

/// Builds the profile of a GPU. Rates only choose between two correct programs, so rough numbers suffice.
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
        // cuDNN's order of dimensions.
        layout: LayoutProfile { filters: FilterOrder::OutputFeaturesFirst, ..TargetProfile::generic().layout },
        lacks: lacks(),
        top_k: TopKProfile {
            most: TopKPlan::MOST,
            elements: ElementType::ALL.iter().copied().filter(|&ty| TopKPlan::takes(ty)).collect(),
        },
        small_matrices: ElementType::ALL.iter().filter_map(|&ty| Some((ty, SmallMatrixPlan::most_rows(ty)?))).collect(),
        // Tensor cores and cuDNN multiply these types without conversion.
        convolution_floats: BTreeSet::from([ElementType::F16, ElementType::BF16]),
        ..TargetProfile::generic()
    }
}

/// Returns the operations that the passes expand into others.
fn lacks() -> BTreeSet<Opcode> {
    BTreeSet::from([Opcode::Cholesky, Opcode::TriangularSolve, Opcode::TopK, Opcode::Fft])
}

/// Returns the limits of the attention kernels, which multiply TF32, f16 and bf16 on tensor cores. GPUs without TF32
/// have none.
fn attention(gpu: &GpuProfile) -> AttentionProfile {
    let [_, tf32, ..] = gpu.tensor;
    let sizes = |heads: [(usize, usize, usize); 2]| match tf32 {
        0 => BTreeMap::new(),
        _ => BTreeMap::from(heads.map(|(bytes, step, most)| (bytes, HeadSizes { step, most }))),
    };
    AttentionProfile {
        types: BTreeSet::from([ElementType::F16, ElementType::BF16, ElementType::F32]),
        full_precision: false,
        any_head_order: false,
        head_sizes: sizes(ATTENTION_HEADS),
        sum_head_sizes: sizes(ATTENTION_BACKWARD_HEADS),
        least_queries: LEAST_QUERIES,
        least_keys: LEAST_KEYS,
        few_queries: ATTENTION_DECODE_QUERIES,
        tile: ATTENTION_ROWS,
        few_keys: FEW_KEYS,
        excess_precision: false,
    }
}
