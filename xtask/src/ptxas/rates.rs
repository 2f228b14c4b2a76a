//! Rates of GPUs, from NVIDIA's documents.

use anyhow::{Context, Result};

use super::class::TensorType;

/// Rates of the largest GPU of an architecture.
#[derive(Debug)]
pub struct Rates {
    pub architecture: &'static str,
    /// The product, for people.
    pub product: &'static str,
    pub multiprocessors: u64,
    /// Cycles a second.
    pub clock: f64,
    /// Instructions of warps that a multiprocessor issues a cycle: one by each of its schedulers.
    pub issues: f64,
    /// Reciprocals, roots, exponentials and logarithms of threads that a multiprocessor does a cycle.
    pub specials: f64,
    /// Bytes a second to and from memory.
    pub bandwidth: f64,
    /// Multiplications with additions a second on tensor cores: of 64-bit floats, TF32, 16-bit floats, bytes.
    tensor: [f64; 4],
}

/// Least seconds of a launch in a queue or a graph: what the compiler's own cost model has (`LEAST_SECONDS` in
/// `backend-gpu-nvptx/src/program/costs.rs`). An estimate, as NVIDIA documents none.
pub const LAUNCH: f64 = 2e-6;

/// Sources:
/// - Schedulers and special function units: CUDA C++ Programming Guide 12.9, "Compute Capability 8.x" and "9.0" (four
///   schedulers, 16 special function units), and its table "Throughput of Native Arithmetic Instructions".
/// - sm_90: "NVIDIA H100 Tensor Core GPU Architecture" (132 multiprocessors of the SXM5 form; its 66.9 TFLOPS of FP32
///   on 128 lanes each are 1.98 GHz) and the data sheet of H100 SXM (3.35 TB/s; half of the sparse 989 TF32, 1,979
///   BF16 and 3,958 INT8 tera operations, and 67 of FP64).
/// - sm_80: "NVIDIA A100 Tensor Core GPU Architecture" (108 multiprocessors, 1,410 MHz; 156 TF32, 312 BF16, 624 INT8,
///   19.5 FP64) and the data sheet of A100 80GB SXM (2,039 GB/s).
const RATES: &[Rates] = &[
    Rates {
        architecture: "sm_80",
        product: "A100 80GB SXM",
        multiprocessors: 108,
        clock: 1.41e9,
        issues: 4.0,
        specials: 16.0,
        bandwidth: 2.039e12,
        tensor: [19.5e12 / 2.0, 156e12 / 2.0, 312e12 / 2.0, 624e12 / 2.0],
    },
    Rates {
        architecture: "sm_90",
        product: "H100 SXM",
        multiprocessors: 132,
        clock: 1.98e9,
        issues: 4.0,
        specials: 16.0,
        bandwidth: 3.35e12,
        tensor: [67e12 / 2.0, 494.5e12 / 2.0, 989.5e12 / 2.0, 1979e12 / 2.0],
    },
];

impl Rates {
    pub fn of(architecture: &str) -> Result<&'static Rates> {
        let known = || RATES.iter().map(|rates| rates.architecture).collect::<Vec<_>>().join(", ");
        RATES
            .iter()
            .find(|rates| rates.architecture == architecture)
            .with_context(|| format!("no rates of {architecture} are known, only those of {}", known()))
    }

    /// Multiplications with additions a second.
    pub fn tensor(&self, kind: TensorType) -> f64 {
        self.tensor[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_without_rates_are_named() {
        assert_eq!(Rates::of("sm_90").unwrap().product, "H100 SXM");
        let error = Rates::of("sm_75").unwrap_err().to_string();
        assert!(error.contains("sm_75") && error.contains("sm_80, sm_90"), "{error}");
    }
}
