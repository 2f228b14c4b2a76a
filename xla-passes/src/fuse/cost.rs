//! Seconds that arithmetic and memory traffic take on a target.

use xla_hlo::ElementType;

use crate::TargetProfile;

/// Elements of a vector of that type.
pub fn lanes(profile: &TargetProfile, element_type: ElementType) -> f64 {
    (profile.vector_bytes as f64 / element_type.byte_width() as f64).max(1.0)
}

/// Seconds for `evaluations` of an operation of that cost for each element, and that element type.
pub fn compute_seconds(profile: &TargetProfile, evaluations: f64, element_cost: f64, element_type: ElementType) -> f64 {
    let large = evaluations * element_type.byte_width() as f64 > profile.l2_bytes as f64;
    let threads = if large { profile.threads.max(1) as f64 } else { 1.0 };
    evaluations * element_cost / (lanes(profile, element_type) * threads * profile.clock_hz)
}

/// Seconds to move `moved` bytes of an array of `size` bytes.
pub fn memory_seconds(profile: &TargetProfile, size: f64, moved: f64) -> f64 {
    let in_cache = size < profile.l3_bytes as f64 / 2.0;
    moved / if in_cache { profile.cache_bandwidth } else { profile.memory_bandwidth }
}
