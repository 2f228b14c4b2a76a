//! What the hardware is like, for the passes.

use std::collections::BTreeSet;

use xla_hlo::Opcode;
use xla_hlo::ops::Family;
use xla_passes::{EpilogueProfile, FusionProfile, TargetProfile, TileProfile};

use crate::device::{ALIGNMENT, TILE_COLUMNS, TILE_ROWS};

// VENDOR(layout): how arrays lie on the device; `None` in `profile` for plain row-major memory, which needs no tiles here.
/// The tiles that arrays lie in.
pub(crate) const TILES: TileProfile = TileProfile { rows: TILE_ROWS, columns: TILE_COLUMNS };

// VENDOR(layout): where the device wants values to begin, in bytes.
/// Alignment of values in memory.
pub(crate) const MEMORY_ALIGNMENT: usize = ALIGNMENT;

// VENDOR(profile): rates and sizes of the hardware, what its lowering can put into one kernel, and what it has not (`lacks`, `floats`).
/// What passes are told. Rates and sizes steer choices between two correct programs, so rough numbers do.
pub(crate) fn profile() -> TargetProfile {
    let fusion = FusionProfile {
        inside: fusible(),
        roots: BTreeSet::from([Opcode::Reduce]),
        max_instructions: 64,
        max_operands: 16,
        row_kernels: false,
        multi_output: true,
        horizontal_bytes: 0,
        reduce_epilogue: false,
        epilogues: EpilogueProfile::default(),
        max_transposed_bytes: usize::MAX,
        in_place_update: false,
    };
    TargetProfile { fusion, tiles: Some(TILES), threads: 1, launch_seconds: 1e-5, ..TargetProfile::generic() }
}

/// What `lowering/expression.rs` computes inside a kernel.
fn fusible() -> BTreeSet<Opcode> {
    let elementwise = Opcode::ALL.iter().copied().filter(|opcode| opcode.family() == Family::Elementwise);
    let movement =
        [Opcode::Broadcast, Opcode::Transpose, Opcode::Slice, Opcode::Reverse, Opcode::Iota, Opcode::Constant];
    elementwise.chain(movement).collect()
}
