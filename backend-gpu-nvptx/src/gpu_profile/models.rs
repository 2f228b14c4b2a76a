//! One GPU model of each architecture, with data from NVIDIA's documents.
//!
//! `cargo xtask ptxas --roofline` also includes this file, so it must not refer to other modules.

/// GPU model that represents its architecture.
#[derive(Debug)]
pub struct GpuModel {
    /// Architecture, such as `sm_90`.
    pub architecture: &'static str,
    /// Name of the model in NVIDIA's documents.
    pub name: &'static str,
    /// Number of streaming multiprocessors (SMs).
    pub multiprocessors: u32,
    /// Maximum clock rate in Hz.
    pub clock_hz: u64,
    /// Bandwidth of device memory in bytes per second.
    pub memory_bandwidth: u64,
    /// Size of the L2 cache in bytes.
    pub l2_bytes: u64,
    /// Shared memory in bytes: per multiprocessor, and the maximum per block.
    pub shared_bytes: [u32; 2],
    /// FMAs per multiprocessor and cycle: f32, f64.
    pub multiply_adds: [u32; 2],
    /// Dense tensor core throughput in 10^12 operations per second: f64, TF32, 16-bit floats, 8-bit integers and
    /// floats. Sums have 32 bits, those of f64 64 bits. An FMA counts as two operations. 0 for types without support.
    pub tensor_tera: [f64; 4],
}

const KIB: u32 = 1 << 10;
const MIB: u64 = 1 << 20;

/// GPU models, in the order of their architectures. Sources:
/// - Shared memory: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". FMAs per cycle: the
///   same document, "Throughput of Native Arithmetic Instructions".
/// - Multiprocessors, clocks, caches, tensor cores: NVIDIA's white papers of each architecture ("Tesla V100 GPU
///   Architecture", "Turing GPU Architecture", "A100 Tensor Core GPU Architecture", "GA102 GPU Architecture", "Ada GPU
///   Architecture", "H100 Tensor Core GPU Architecture", "RTX Blackwell GPU Architecture"), and the attributes that
///   drivers report, as listed by OpenXLA in `xla/backends/gpu/target_config/specs`. Tensor core rates are those of
///   dense matrices; if only sparse ones are published, half of them.
/// - Bandwidths: data sheets of V100 SXM2, T4, A100 80GB SXM, RTX A6000, L40S, H100 SXM, HGX B200, RTX PRO 6000
///   Blackwell.
/// - B200, which has no such white paper: the reported attributes, and the data sheet of HGX B200.
pub const MODELS: [GpuModel; 8] = [
    GpuModel {
        architecture: "sm_70",
        name: "V100 SXM2",
        multiprocessors: 80,
        clock_hz: 1_530_000_000,
        memory_bandwidth: 900_000_000_000,
        l2_bytes: 6 * MIB,
        shared_bytes: [96 * KIB, 96 * KIB],
        multiply_adds: [64, 32],
        tensor_tera: [0.0, 0.0, 125.0, 0.0],
    },
    GpuModel {
        architecture: "sm_75",
        name: "T4",
        multiprocessors: 40,
        clock_hz: 1_590_000_000,
        memory_bandwidth: 320_000_000_000,
        l2_bytes: 4 * MIB,
        shared_bytes: [64 * KIB, 64 * KIB],
        multiply_adds: [64, 2],
        tensor_tera: [0.0, 0.0, 65.0, 130.0],
    },
    GpuModel {
        architecture: "sm_80",
        name: "A100 80GB SXM",
        multiprocessors: 108,
        clock_hz: 1_410_000_000,
        memory_bandwidth: 2_039_000_000_000,
        l2_bytes: 40 * MIB,
        shared_bytes: [164 * KIB, 163 * KIB],
        multiply_adds: [64, 32],
        tensor_tera: [19.5, 156.0, 312.0, 624.0],
    },
    GpuModel {
        architecture: "sm_86",
        name: "RTX A6000",
        multiprocessors: 84,
        clock_hz: 1_800_000_000,
        memory_bandwidth: 768_000_000_000,
        l2_bytes: 6 * MIB,
        shared_bytes: [100 * KIB, 99 * KIB],
        multiply_adds: [128, 2],
        tensor_tera: [0.0, 77.4, 154.8, 309.7],
    },
    GpuModel {
        architecture: "sm_89",
        name: "L40S",
        multiprocessors: 142,
        clock_hz: 2_520_000_000,
        memory_bandwidth: 864_000_000_000,
        l2_bytes: 96 * MIB,
        shared_bytes: [100 * KIB, 99 * KIB],
        multiply_adds: [128, 2],
        tensor_tera: [0.0, 183.0, 362.0, 733.0],
    },
    GpuModel {
        architecture: "sm_90",
        name: "H100 SXM",
        multiprocessors: 132,
        clock_hz: 1_980_000_000,
        memory_bandwidth: 3_350_000_000_000,
        l2_bytes: 50 * MIB,
        shared_bytes: [228 * KIB, 227 * KIB],
        multiply_adds: [128, 64],
        tensor_tera: [67.0, 494.5, 989.5, 1979.0],
    },
    GpuModel {
        architecture: "sm_100",
        name: "B200",
        multiprocessors: 148,
        clock_hz: 1_965_000_000,
        memory_bandwidth: 7_700_000_000_000,
        l2_bytes: 126 * MIB,
        shared_bytes: [228 * KIB, 227 * KIB],
        multiply_adds: [128, 64],
        tensor_tera: [37.0, 1100.0, 2250.0, 4500.0],
    },
    GpuModel {
        architecture: "sm_120",
        name: "RTX PRO 6000 Blackwell",
        multiprocessors: 188,
        clock_hz: 2_600_000_000,
        memory_bandwidth: 1_792_000_000_000,
        l2_bytes: 128 * MIB,
        shared_bytes: [100 * KIB, 99 * KIB],
        multiply_adds: [128, 2],
        tensor_tera: [0.0, 251.9, 503.8, 1007.6],
    },
];
