//! Target profile for the passes, and the platform's name.

use std::collections::BTreeSet;

use xla::hlo::{ElementType, Opcode};
use xla::passes::{FloatProfile, FusionProfile, TargetProfile};

/// Name of the platform.
pub const NAME: &str = "cranelift-cpu";

/// Returns the target profile of the passes. Half-precision arithmetic is done in f32, and `select-and-scatter` is
/// expanded, since the backend generates no code for them.
pub(crate) fn profile(threads: usize) -> TargetProfile {
    let fusion = FusionProfile {
        roots: BTreeSet::from([Opcode::Reduce]),
        max_instructions: 128,
        max_operands: 24,
        in_place_update: false,
        ..FusionProfile::loops()
    };
    let storage_only = BTreeSet::from([ElementType::BF16, ElementType::F16]);
    TargetProfile {
        fusion,
        threads,
        floats: FloatProfile { storage_only, compute_in: ElementType::F32 },
        lacks: BTreeSet::from([Opcode::SelectAndScatter]),
        ..TargetProfile::generic()
    }
}
