//! Rates of GPUs, from the compiler's table of them.

#[path = "../../../backend-gpu-nvptx/src/gpu_profile/models.rs"]
#[expect(dead_code, reason = "the compiler looks at the others")]
mod models;

use anyhow::{Context, Result};

use crate::class::TensorType;
use models::{GpuModel, MODELS};

/// Rates of the largest GPU of an architecture.
#[derive(Debug)]
pub struct Rates {
    pub architecture: String,
    /// Name of the GPU model.
    pub model: &'static str,
    pub multiprocessors: u64,
    /// Clock in Hz.
    pub clock: f64,
    /// Warp instructions that a multiprocessor issues per cycle: one per scheduler.
    pub issues: f64,
    /// Special function results (`MUFU`, per thread) of a multiprocessor per cycle.
    pub specials: f64,
    /// Memory bandwidth in bytes per second.
    pub bandwidth: f64,
    /// Multiply-adds per second on tensor cores, indexed by [`TensorType`].
    tensor: [f64; 4],
}

/// Minimum seconds of a launch in a stream or a graph, as in the compiler's own cost model (`LEAST_SECONDS` in
/// `backend-gpu-nvptx/src/program/costs.rs`). An estimate, as NVIDIA documents none.
pub const LAUNCH: f64 = 2e-6;

/// Schedulers of a multiprocessor, and the lanes of its special function units: CUDA C++ Programming Guide 12.9,
/// "Compute Capability 8.x" and "9.0" (four schedulers, 16 special function units), and its table "Throughput of Native
/// Arithmetic Instructions".
const SCHEDULERS: f64 = 4.0;
const SPECIALS: f64 = 16.0;

/// `sm_90` of `sm_90a`: the same GPU.
fn without_letter(architecture: &str) -> &str {
    architecture.trim_end_matches(|c: char| c.is_ascii_lowercase())
}

impl Rates {
    /// Rates of an architecture with a model in the table, such as `sm_90` or `sm_90a`.
    pub fn of(architecture: &str) -> Result<Rates> {
        let known = || MODELS.iter().map(|model| model.architecture).collect::<Vec<_>>().join(", ");
        let plain = without_letter(architecture);
        let model = MODELS.iter().find(|model| model.architecture == plain);
        let model =
            model.with_context(|| format!("no rates of {architecture} are known, only those of {}", known()))?;
        let GpuModel { name, multiprocessors, clock_hz, memory_bandwidth, tensor_tera, .. } = *model;
        Ok(Rates {
            architecture: architecture.to_owned(),
            model: name,
            multiprocessors: multiprocessors.into(),
            clock: clock_hz as f64,
            issues: SCHEDULERS,
            specials: SPECIALS,
            bandwidth: memory_bandwidth as f64,
            tensor: tensor_tera.map(|tera| tera * 1e12 / 2.0),
        })
    }

    /// Multiply-adds per second of the whole machine.
    pub fn tensor(&self, kind: TensorType) -> f64 {
        self.tensor[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_without_rates_are_named() {
        assert_eq!(Rates::of("sm_90").unwrap().model, "H100 SXM");
        let with_letter = Rates::of("sm_90a").unwrap();
        assert_eq!((with_letter.architecture.as_str(), with_letter.model), ("sm_90a", "H100 SXM"));
        let error = Rates::of("sm_76").unwrap_err().to_string();
        assert!(error.contains("sm_76") && error.contains("sm_89, sm_90"), "{error}");
    }
}
