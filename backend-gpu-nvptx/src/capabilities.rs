//! What GPUs are like, for the passes.

use std::collections::BTreeSet;

use xla_hlo::Opcode;
use xla_passes::{DotProfile, EpilogueProfile, FusionProfile, TargetProfile};

/// Every allocation, and every array in one, begins at a multiple of this many bytes: what the driver gives.
pub(crate) const MEMORY_ALIGNMENT: usize = 256;

/// The profile of a current data centre GPU. Rates steer choices between two correct programs, so rough numbers do.
pub(crate) fn profile() -> TargetProfile {
    TargetProfile {
        vector_bytes: 16,
        l1_bytes: 128 << 10,
        l2_bytes: 1 << 20,
        l3_bytes: 50 << 20,
        threads: 132,
        clock_hz: 1.5e9,
        memory_bandwidth: 3e12,
        cache_bandwidth: 1e13,
        launch_seconds: 3e-6,
        fusion: FusionProfile {
            horizontal_bytes: 1 << 20,
            max_transposed_bytes: 1 << 20,
            epilogues: EpilogueProfile::default(),
            ..FusionProfile::folds()
        },
        dot: DotProfile { any_operand_order: true, merge_bytes: 0 },
        lacks: lacks(),
        ..TargetProfile::generic()
    }
}

/// Operations that the passes put in terms of others.
fn lacks() -> BTreeSet<Opcode> {
    BTreeSet::from([Opcode::Cholesky, Opcode::TriangularSolve, Opcode::TopK, Opcode::Fft])
}
