//! Costs of memory, streams and thunks on a GPU, by which compilation and loading place arrays and work.

use std::collections::HashMap;

use xla_hlo::Module;
use xla_passes::analysis;
use xla_service::thunks::streams::{StreamProfile, ThunkCost};
use xla_service::thunks::{ArraySlice, Thunk};

use crate::gpu_profile::GpuProfile;

/// Alignment in bytes of allocations and of the arrays in them, equal to the driver's.
pub(crate) const MEMORY_ALIGNMENT: usize = 256;

/// Number of schedule steps after which the memory of a temporary is reused, so that branches can run concurrently.
pub(crate) const REUSE_AFTER: u32 = 8;

/// Returns the costs and gains of streams.
pub(crate) fn streams(gpu: &GpuProfile) -> StreamProfile {
    StreamProfile {
        compute_streams: 4,
        copy_streams: 1,
        launch_seconds: 3e-6,
        event_seconds: 3e-6,
        copy_seconds_per_byte: 2.0 / gpu.memory_bandwidth as f64,
        copy_share: 0.5,
        copy_stream_bytes: 1 << 20,
        device_loops: false,
    }
}

/// Bytes in flight that keep the whole device busy.
const FULL_BYTES: f64 = (4 << 20) as f64;
/// Fraction of the device that the smallest kernel occupies.
const LEAST_SHARE: f64 = 0.01;
/// Run time of the smallest kernel in seconds.
const LEAST_SECONDS: f64 = 2e-6;
/// Fraction of its peak arithmetic rate that a GPU reaches, outside of tensor cores.
const USUAL_FLOPS: f64 = 0.6;

/// Costs of the thunks of a module.
pub(crate) struct ThunkCosts<'m> {
    module: &'m Module,
    /// Bandwidth of device memory in bytes per second.
    memory_bandwidth: f64,
    /// Seconds of arithmetic, by the names of computation and instruction.
    arithmetic: HashMap<(String, String), f64>,
}

impl<'m> ThunkCosts<'m> {
    pub fn new(module: &'m Module, gpu: &GpuProfile) -> ThunkCosts<'m> {
        let flops = USUAL_FLOPS * gpu.flops();
        let mut arithmetic = HashMap::new();
        for computation in analysis::cost::analyze(module).computations {
            for instruction in computation.instructions {
                let operations = instruction.cost.operations() as f64;
                arithmetic.insert((computation.name.clone(), instruction.name), operations / flops);
            }
        }
        ThunkCosts { module, memory_bandwidth: gpu.memory_bandwidth as f64, arithmetic }
    }

    /// Returns the time of a thunk's memory traffic or arithmetic, whichever is longer, and the fraction of the device
    /// that its results can fill.
    pub fn of(&self, thunk: &Thunk) -> ThunkCost {
        let bytes = |arrays: &[ArraySlice]| arrays.iter().map(|array| array.slice.size as f64).sum::<f64>();
        let results = bytes(&thunk.results);
        let name = (self.module[thunk.computation].name().to_string(), thunk.name.clone());
        let arithmetic = self.arithmetic.get(&name).copied().unwrap_or(0.0);
        let traffic = (bytes(&thunk.operands) + results) / self.memory_bandwidth;
        let share = (results / FULL_BYTES).clamp(LEAST_SHARE, 1.0);
        // A small kernel occupies only a fraction of the device.
        ThunkCost { seconds: LEAST_SECONDS + traffic.max(arithmetic / share), share }
    }
}
