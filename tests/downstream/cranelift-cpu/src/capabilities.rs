//! Capabilities for the passes; the platform's name.

use std::collections::BTreeSet;

use xla::hlo::{ElementType, Opcode};
use xla::passes::{FloatProfile, FusionProfile, TargetProfile};

/// The name of the platform.
pub const NAME: &str = "cranelift-cpu";

/// The target profile of the passes. Arithmetic on half precision is done in f32, as `select-and-scatter` is done by
/// other operations: there is no code for them here.
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
