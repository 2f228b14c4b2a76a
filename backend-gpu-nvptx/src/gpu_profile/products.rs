//! One product of each architecture, by NVIDIA's documents.
//!
//! `cargo xtask ptxas --roofline` reads this file as well, so that it names no other.

/// The product that stands for its architecture.
#[derive(Debug)]
pub struct Product {
    /// Such as `sm_90`.
    pub architecture: &'static str,
    /// Its name, for whoever looks for the documents.
    pub name: &'static str,
    /// Multiprocessors, each of which runs some blocks at a time.
    pub multiprocessors: u32,
    /// Cycles a second, at most.
    pub clock_hz: u64,
    /// Bytes a second between the device's memory and its kernels.
    pub memory_bandwidth: u64,
    /// Bytes of the second-level cache.
    pub l2_bytes: u64,
    /// Bytes of shared memory of a multiprocessor, and of those what a block may take.
    pub shared_bytes: [u32; 2],
    /// Multiplications with additions of f32 and of f64 that a multiprocessor does a cycle.
    pub multiply_adds: [u32; 2],
    /// Tera operations a second of tensor cores: of f64, TF32, 16-bit floats, and 8-bit integers and floats, dense,
    /// with sums in 32 bits (of f64 in 64); a multiplication with an addition is two. 0 for what they do not have.
    pub tensor_tera: [f64; 4],
}

const KIB: u32 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Sources:
/// - Shared memory: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". Multiplications of a
///   cycle: the same, "Throughput of Native Arithmetic Instructions".
/// - Multiprocessors, clocks, caches, tensor cores: NVIDIA's white papers of each architecture ("Tesla V100 GPU
///   Architecture", "Turing GPU Architecture", "A100 Tensor Core GPU Architecture", "GA102 GPU Architecture", "Ada GPU
///   Architecture", "H100 Tensor Core GPU Architecture", "RTX Blackwell GPU Architecture"); beside them the attributes
///   that drivers tell, as OpenXLA has them in `xla/backends/gpu/target_config/specs`. Rates of tensor cores are those
///   of dense matrices: where only those of sparse ones are told, half of them.
/// - Bandwidths: data sheets of V100 SXM2, T4, A100 80GB SXM, RTX A6000, L40S, H100 SXM, HGX B200, RTX PRO 6000
///   Blackwell.
/// - B200, of which there is no such paper: those attributes, and the data sheet of HGX B200.
pub const PRODUCTS: [Product; 8] = [
    Product {
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
    Product {
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
    Product {
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
    Product {
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
    Product {
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
    Product {
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
    Product {
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
    Product {
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
