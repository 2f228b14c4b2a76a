//! Sizes and rates of GPUs, by which programs are planned: of a product of each architecture, or of a device that is
//! there.
//!
//! A program keeps the profile that it was compiled for, and is loaded with it, so that its plan is the same on any
//! device. Rates choose between two correct programs, so that a product stands for its whole architecture.

use serde::{Deserialize, Serialize};

use crate::program::compiled_for::capability;

/// The sizes and rates of one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GpuProfile {
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
    /// The same on tensor cores: of f64, TF32, 16-bit and 8-bit floats. 0 for what they do not have.
    pub tensor_multiply_adds: [u32; 4],
}

/// A product of an architecture.
struct Product {
    capability: (u32, u32),
    /// Its name, for whoever looks for the documents.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers, and messages of tests"))]
    name: &'static str,
    profile: GpuProfile,
}

const KIB: u32 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Sources:
/// - Shared memory: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". Multiplications of a
///   cycle: the same, "Throughput of Native Arithmetic Instructions".
/// - Multiprocessors, clocks, caches, tensor cores: NVIDIA's white papers of each architecture ("Tesla V100 GPU
///   Architecture", "Turing GPU Architecture", "A100 Tensor Core GPU Architecture", "GA102 GPU Architecture", "Ada GPU
///   Architecture", "H100 Tensor Core GPU Architecture", "RTX Blackwell GPU Architecture"). Rates of tensor cores are
///   those of dense matrices, with sums in f32.
/// - Bandwidths: data sheets of V100 SXM2, T4, A100 80GB SXM, RTX A6000, L40S, H100 SXM, HGX B200, RTX PRO 6000
///   Blackwell.
/// - B200, of which there is no such paper: attributes that its driver tells, as OpenXLA has them in
///   `xla/backends/gpu/target_config/specs/b200.txtpb`, and the data sheet of HGX B200 (2,250 TFLOPS of BF16).
const PRODUCTS: [Product; 8] = [
    Product {
        capability: (7, 0),
        name: "V100 SXM2",
        profile: GpuProfile {
            multiprocessors: 80,
            clock_hz: 1_530_000_000,
            memory_bandwidth: 900_000_000_000,
            l2_bytes: 6 * MIB,
            shared_bytes: [96 * KIB, 96 * KIB],
            multiply_adds: [64, 32],
            tensor_multiply_adds: [0, 0, 512, 0],
        },
    },
    Product {
        capability: (7, 5),
        name: "T4",
        profile: GpuProfile {
            multiprocessors: 40,
            clock_hz: 1_590_000_000,
            memory_bandwidth: 320_000_000_000,
            l2_bytes: 4 * MIB,
            shared_bytes: [64 * KIB, 64 * KIB],
            multiply_adds: [64, 2],
            tensor_multiply_adds: [0, 0, 512, 0],
        },
    },
    Product {
        capability: (8, 0),
        name: "A100 80GB SXM",
        profile: GpuProfile {
            multiprocessors: 108,
            clock_hz: 1_410_000_000,
            memory_bandwidth: 2_039_000_000_000,
            l2_bytes: 40 * MIB,
            shared_bytes: [164 * KIB, 163 * KIB],
            multiply_adds: [64, 32],
            tensor_multiply_adds: [64, 512, 1024, 0],
        },
    },
    Product {
        capability: (8, 6),
        name: "RTX A6000",
        profile: GpuProfile {
            multiprocessors: 84,
            clock_hz: 1_800_000_000,
            memory_bandwidth: 768_000_000_000,
            l2_bytes: 6 * MIB,
            shared_bytes: [100 * KIB, 99 * KIB],
            multiply_adds: [128, 2],
            tensor_multiply_adds: [0, 256, 512, 0],
        },
    },
    Product {
        capability: (8, 9),
        name: "L40S",
        profile: GpuProfile {
            multiprocessors: 142,
            clock_hz: 2_520_000_000,
            memory_bandwidth: 864_000_000_000,
            l2_bytes: 96 * MIB,
            shared_bytes: [100 * KIB, 99 * KIB],
            multiply_adds: [128, 2],
            tensor_multiply_adds: [0, 256, 512, 1024],
        },
    },
    Product {
        capability: (9, 0),
        name: "H100 SXM",
        profile: GpuProfile {
            multiprocessors: 132,
            clock_hz: 1_980_000_000,
            memory_bandwidth: 3_350_000_000_000,
            l2_bytes: 50 * MIB,
            shared_bytes: [228 * KIB, 227 * KIB],
            multiply_adds: [128, 64],
            tensor_multiply_adds: [128, 1024, 2048, 4096],
        },
    },
    Product {
        capability: (10, 0),
        name: "B200",
        profile: GpuProfile {
            multiprocessors: 148,
            clock_hz: 1_965_000_000,
            memory_bandwidth: 7_700_000_000_000,
            l2_bytes: 126 * MIB,
            shared_bytes: [228 * KIB, 227 * KIB],
            multiply_adds: [128, 64],
            tensor_multiply_adds: [64, 2048, 4096, 8192],
        },
    },
    Product {
        capability: (12, 0),
        name: "RTX PRO 6000 Blackwell",
        profile: GpuProfile {
            multiprocessors: 188,
            clock_hz: 2_600_000_000,
            memory_bandwidth: 1_792_000_000_000,
            l2_bytes: 128 * MIB,
            shared_bytes: [100 * KIB, 99 * KIB],
            multiply_adds: [128, 2],
            tensor_multiply_adds: [0, 256, 512, 1024],
        },
    },
];

impl GpuProfile {
    /// That of an architecture, such as `sm_90a`: of the last one before it where it has none of its own, and of the
    /// first one where there is none before.
    pub fn of_architecture(architecture: &str) -> Option<GpuProfile> {
        let (major, minor, _) = capability(architecture)?;
        let before = PRODUCTS.iter().rev().find(|product| product.capability <= (major, minor));
        before.or(PRODUCTS.first()).map(|product| product.profile.clone())
    }

    /// That of a data centre's GPU, for what is planned without one.
    #[cfg_attr(not(feature = "compile"), expect(dead_code, reason = "programs come with theirs"))]
    pub fn usual() -> GpuProfile {
        GpuProfile::of_architecture("sm_90").unwrap_or_else(|| PRODUCTS[0].profile.clone())
    }

    /// Whether times can be computed by it.
    pub fn is_sound(&self) -> bool {
        let GpuProfile { multiprocessors, clock_hz, memory_bandwidth, multiply_adds, .. } = self;
        *multiprocessors > 0 && *clock_hz > 0 && *memory_bandwidth > 0 && multiply_adds[0] > 0
    }

    /// Operations a second of f32, outside of tensor cores: a multiplication with an addition is two.
    pub fn flops(&self) -> f64 {
        2.0 * f64::from(self.multiply_adds[0]) * f64::from(self.multiprocessors) * self.clock_hz as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Teraoperations a second of tensor cores with 16-bit floats.
    fn tensor_tera(profile: &GpuProfile) -> f64 {
        let each = f64::from(profile.tensor_multiply_adds[2]) * f64::from(profile.multiprocessors);
        2.0 * each * profile.clock_hz as f64 / 1e12
    }

    #[test]
    fn every_product_is_plausible_and_in_order() {
        for Product { name, profile, .. } in &PRODUCTS {
            assert!(profile.is_sound(), "{name}");
            assert!((16..=256).contains(&profile.multiprocessors), "{name}");
            assert!((1.2e9..3e9).contains(&(profile.clock_hz as f64)), "{name}");
            assert!(
                profile.shared_bytes[1] >= 48 << 10 && profile.shared_bytes[1] <= profile.shared_bytes[0],
                "{name}"
            );
            // From a multiplication with an addition of f32 for each byte of memory, to as many as there are.
            let balance = profile.flops() / profile.memory_bandwidth as f64;
            assert!((9.0..120.0).contains(&balance), "{name}: {balance}");
            let [_, tf32, narrow, small] = profile.tensor_multiply_adds;
            assert!(narrow >= 4 * profile.multiply_adds[0] && (tf32 == 0 || narrow == 2 * tf32), "{name}");
            assert!(small == 0 || small == 2 * narrow, "{name}");
        }
        assert!(PRODUCTS.is_sorted_by_key(|product| product.capability));
    }

    /// Rates by clocks and units are those of data sheets, or by as much above them as the clock is that tensor cores
    /// do not keep.
    #[test]
    fn rates_are_those_of_data_sheets() {
        for (architecture, f32_tera, tensor) in [
            ("sm_70", 15.7, 125.0),
            ("sm_75", 8.1, 65.0),
            ("sm_80", 19.5, 312.0),
            ("sm_86", 38.7, 154.8),
            ("sm_89", 91.6, 362.0),
            ("sm_90", 67.0, 989.5),
            ("sm_100", 75.0, 2250.0),
            ("sm_120", 125.0, 503.8),
        ] {
            let profile = GpuProfile::of_architecture(architecture).unwrap();
            let near = |found: f64, told: f64| (0.97..1.09).contains(&(found / told));
            assert!(near(profile.flops() / 1e12, f32_tera), "{architecture}: {}", profile.flops());
            assert!(near(tensor_tera(&profile), tensor), "{architecture}: {}", tensor_tera(&profile));
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
