//! Capabilities of the hardware, for the passes; the platform's name.

use std::collections::BTreeSet;

use xla_hlo::Opcode;
use xla_hlo::ops::Family;
use xla_passes::{AttentionProfile, EpilogueProfile, FusionProfile, TargetProfile, TileProfile};
use xla_service::thunks::Thunk;
use xla_service::thunks::streams::{StreamProfile, ThunkCost};

use crate::device::{ALIGNMENT, TILE_COLUMNS, TILE_ROWS};

// VENDOR(name): the name that users choose the platform by.
/// The name of the platform.
pub const NAME: &str = "template";

// VENDOR(layout): how arrays lie on the device; `None` in `profile` for plain row-major memory, which needs no tiles
// here.
/// The tiles that arrays lie in.
pub(crate) const TILES: TileProfile = TileProfile { rows: TILE_ROWS, columns: TILE_COLUMNS };

// VENDOR(layout): where the device wants values to begin, in bytes.
/// Alignment of values in memory.
pub(crate) const MEMORY_ALIGNMENT: usize = ALIGNMENT;

// VENDOR(profile): rates and sizes of the hardware, what its lowering can put into one kernel, and what it has not
// (`lacks`, `floats`).
/// The target profile of the passes. Rates and sizes steer choices between two correct programs, so rough numbers do.
pub(crate) fn profile() -> TargetProfile {
    let fusion = FusionProfile {
        inside: fusible(),
        roots: BTreeSet::from([Opcode::Reduce]),
        max_instructions: 64,
        max_row_instructions: 64,
        max_code: u64::MAX,
        max_live_registers: usize::MAX,
        max_operands: 16,
        row_kernels: false,
        multi_output: true,
        horizontal_bytes: 0,
        reduce_epilogue: false,
        epilogues: EpilogueProfile::default(),
        attention: AttentionProfile::default(),
        max_transposed_bytes: usize::MAX,
        in_place_update: false,
    };
    TargetProfile { fusion, tiles: Some(TILES), threads: 1, launch_seconds: 1e-5, ..TargetProfile::generic() }
}

// VENDOR(streams): what launches, events and copies take, for a device that works on several queues at once. One stream
// is right for any other.
/// The stream profile of stream assignment.
pub(crate) fn stream_profile(streams: u32) -> StreamProfile {
    StreamProfile {
        compute_streams: streams,
        launch_seconds: 1e-6,
        event_seconds: 1e-6,
        copy_seconds_per_byte: SECONDS_PER_BYTE,
        copy_share: CORE_SHARE,
        device_loops: true,
        ..StreamProfile::default()
    }
}

// VENDOR(streams): what a kernel takes; a rough number does.
/// A kernel's time goes with the bytes that it touches, and each queue has a core of its own.
pub(crate) fn thunk_cost(thunk: &Thunk) -> ThunkCost {
    let bytes: usize = thunk.operands.iter().chain(&thunk.results).map(|array| array.slice.size).sum();
    ThunkCost { seconds: bytes as f64 * SECONDS_PER_BYTE, share: CORE_SHARE }
}

const SECONDS_PER_BYTE: f64 = 1e-7;

/// Queues do not slow each other down.
const CORE_SHARE: f64 = 0.0;

// VENDOR(streams): how many steps memory rests before it is used again; more for a device that has memory to spare.
/// See [`BufferOptions::reuse_after`](xla_passes::buffers::BufferOptions::reuse_after).
pub(crate) const REUSE_AFTER: u32 = 16;

/// Operations that `lowering/expression.rs` computes inside a kernel.
fn fusible() -> BTreeSet<Opcode> {
    let elementwise = Opcode::ALL.iter().copied().filter(|opcode| opcode.family() == Family::Elementwise);
    let movement =
        [Opcode::Broadcast, Opcode::Transpose, Opcode::Slice, Opcode::Reverse, Opcode::Iota, Opcode::Constant];
    elementwise.chain(movement).collect()
}
