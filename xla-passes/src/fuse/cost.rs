//! Time estimates for arithmetic and memory traffic on a target.

use xla_hlo::ElementType;

use crate::TargetProfile;

/// Returns the number of elements of that type in a vector register.
pub fn lanes(profile: &TargetProfile, element_type: ElementType) -> f64 {
    (profile.vector_bytes as f64 / element_type.byte_width() as f64).max(1.0)
}

/// Returns the seconds for `evaluations` evaluations of an operation with the given cost per element.
pub fn compute_seconds(profile: &TargetProfile, evaluations: f64, element_cost: f64, element_type: ElementType) -> f64 {
    let large = evaluations * element_type.byte_width() as f64 > profile.l2_bytes as f64;
    let threads = if large { profile.threads.max(1) as f64 } else { 1.0 };
    evaluations * element_cost / (lanes(profile, element_type) * threads * profile.clock_hz)
}

/// Returns the seconds to transfer `moved` bytes of an array of `size` bytes.
pub fn memory_seconds(profile: &TargetProfile, size: f64, moved: f64) -> f64 {
    let in_cache = size < profile.l3_bytes as f64 / 2.0;
    moved / if in_cache { profile.cache_bandwidth } else { profile.memory_bandwidth }
}
