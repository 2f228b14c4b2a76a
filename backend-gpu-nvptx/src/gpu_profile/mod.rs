//! Sizes and rates of the GPUs that programs are planned for: one GPU model for each architecture, or an installed
//! device.
//!
//! A program stores the profile that it was compiled for and is loaded with it, so its plan is the same on every
//! device. Rates only choose between two correct programs, so one model suffices for its whole architecture.

mod models;

use serde::{Deserialize, Serialize};

use crate::program::compiled_for::capability;
use models::{GpuModel, MODELS};

/// Sizes and rates of one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GpuProfile {
    /// Name of the GPU model, or the device name that the driver reports.
    pub name: String,
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
    /// FMAs per second on the tensor cores: f64, TF32, 16-bit floats, 8-bit integers and floats. 0 for types without
    /// support.
    pub tensor: [u64; 4],
}

impl GpuProfile {
    /// Returns the profile of an architecture such as `sm_90a`. An architecture without its own entry uses the closest
    /// older one, or the oldest entry if there is none.
    pub fn of_architecture(architecture: &str) -> Option<GpuProfile> {
        let (major, minor, _) = capability(architecture)?;
        let is_before = |model: &&GpuModel| capability(model.architecture) <= Some((major, minor, false));
        Some(GpuProfile::of(MODELS.iter().rev().find(is_before).unwrap_or(&MODELS[0])))
    }

    /// Returns the default profile, of a data centre GPU, for planning without a device.
    #[cfg_attr(not(any(feature = "compile", test)), expect(dead_code, reason = "programs come with theirs"))]
    pub fn usual() -> GpuProfile {
        GpuProfile::of_architecture("sm_90").unwrap_or_else(|| GpuProfile::of(&MODELS[0]))
    }

    fn of(model: &GpuModel) -> GpuProfile {
        GpuProfile {
            name: model.name.to_string(),
            multiprocessors: model.multiprocessors,
            clock_hz: model.clock_hz,
            memory_bandwidth: model.memory_bandwidth,
            l2_bytes: model.l2_bytes,
            shared_bytes: model.shared_bytes,
            multiply_adds: model.multiply_adds,
            tensor: model.tensor_tera.map(|tera| (tera * 1e12 / 2.0) as u64),
        }
    }

    /// Whether execution times can be computed from the profile: no rate is 0.
    pub fn is_sound(&self) -> bool {
        let GpuProfile { multiprocessors, clock_hz, memory_bandwidth, multiply_adds, .. } = self;
        *multiprocessors > 0 && *clock_hz > 0 && *memory_bandwidth > 0 && multiply_adds[0] > 0
    }

    /// Returns the peak f32 rate outside of tensor cores, in operations per second; an FMA counts as two.
    pub fn flops(&self) -> f64 {
        2.0 * f64::from(self.multiply_adds[0]) * f64::from(self.multiprocessors) * self.clock_hz as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_product_is_plausible_and_in_order() {
        for profile in MODELS.iter().map(GpuProfile::of) {
            let GpuProfile { name, multiprocessors, clock_hz, shared_bytes, .. } = &profile;
            assert!(profile.is_sound(), "{name}");
            assert!((16..=256).contains(multiprocessors), "{name}");
            assert!((1_200_000_000..3_000_000_000).contains(clock_hz), "{name}");
            assert!(shared_bytes[1] >= 48 << 10 && shared_bytes[1] <= shared_bytes[0], "{name}");
            // Ratio of f32 operations to bytes of memory traffic.
            let balance = profile.flops() / profile.memory_bandwidth as f64;
            assert!((9.0..120.0).contains(&balance), "{name}: {balance}");
            let [_, tf32, narrow, small] = profile.tensor.map(|rate| 2.0 * rate as f64);
            let twice = |rate: f64, of: f64| rate == 0.0 || of == 0.0 || (1.9..2.1).contains(&(rate / of));
            assert!(narrow >= 3.9 * profile.flops(), "{name}");
            assert!(twice(narrow, tf32) && twice(small, narrow), "{name}");
        }
        assert!(MODELS.is_sorted_by_key(|model| capability(model.architecture)));
        assert!(MODELS.iter().all(|model| capability(model.architecture).is_some()));
    }

    /// The f32 peak computed from lanes and clock matches the data sheet.
    #[test]
    fn rates_are_those_of_data_sheets() {
        for (architecture, tera) in [
            ("sm_70", 15.7),
            ("sm_75", 8.1),
            ("sm_80", 19.5),
            ("sm_86", 38.7),
            ("sm_89", 91.6),
            ("sm_90", 67.0),
            ("sm_100", 75.0),
            ("sm_120", 125.0),
        ] {
            let found = GpuProfile::of_architecture(architecture).unwrap().flops() / 1e12;
            assert!((found / tera - 1.0).abs() < 0.02, "{architecture}: {found}");
        }
    }

    #[test]
    fn architectures_between_products_are_like_the_last_one() {
        let multiprocessors = |architecture| GpuProfile::of_architecture(architecture).map(|gpu| gpu.multiprocessors);
        for (architecture, like) in [
            ("sm_90a", "sm_90"),
            ("sm_72", "sm_70"),
            ("sm_87", "sm_86"),
            ("sm_103", "sm_100"),
            ("sm_121", "sm_120"),
            ("sm_60", "sm_70"),
            ("sm_999", "sm_120"),
        ] {
            assert_eq!(multiprocessors(architecture), multiprocessors(like), "{architecture}");
        }
        assert_eq!((multiprocessors("sm_80"), multiprocessors("x86-64")), (Some(108), None));
        assert_eq!(GpuProfile::usual(), GpuProfile::of_architecture("sm_90").unwrap());
    }
}
