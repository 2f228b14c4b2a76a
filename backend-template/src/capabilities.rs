//! Capabilities of the hardware, as the passes see them, and the name of the platform.

use std::collections::BTreeSet;

use xla_hlo::Opcode;
use xla_hlo::ops::Family;
use xla_passes::{AttentionProfile, EpilogueProfile, FusionProfile, TargetProfile, TileProfile};
use xla_service::thunks::Thunk;
use xla_service::thunks::streams::{StreamProfile, ThunkCost};

use crate::device::{ALIGNMENT, TILE_COLUMNS, TILE_ROWS};

// VENDOR(name): choose the platform's name, which users pass to select it.
/// Name of the platform.
pub const NAME: &str = "template";

// VENDOR(layout): describe the device's array layout.
// For plain row-major memory, delete this constant and set `tiles` to `None` in `profile`.
/// Tile shape of arrays in device memory.
pub(crate) const TILES: TileProfile = TileProfile { rows: TILE_ROWS, columns: TILE_COLUMNS };

// VENDOR(layout): set the alignment that the device requires, in bytes.
/// Alignment of values in memory, in bytes.
pub(crate) const MEMORY_ALIGNMENT: usize = ALIGNMENT;

// VENDOR(profile): describe the rates and sizes of the hardware, and the operations that one kernel can contain.
// List missing operations and types in `lacks` and `floats`.
/// Returns the target profile for the passes. Rates and sizes only select between correct programs, so rough values are
/// enough.
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

// VENDOR(streams): set the times of launches, events and copies, if the device has several concurrent queues.
// Other devices use one stream and need no profile.
/// Returns the profile for stream assignment.
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

// VENDOR(streams): estimate the execution time of a kernel; a rough value is enough.
/// Estimates the cost of a kernel: proportional to the bytes of its operands and results. Each queue has its own core.
pub(crate) fn thunk_cost(thunk: &Thunk) -> ThunkCost {
    let bytes: usize = thunk.operands.iter().chain(&thunk.results).map(|array| array.slice.size).sum();
    ThunkCost { seconds: bytes as f64 * SECONDS_PER_BYTE, share: CORE_SHARE }
}

/// Time per byte that a kernel or copy accesses, in seconds.
const SECONDS_PER_BYTE: f64 = 1e-7;

/// Share of the device that a kernel or copy keeps busy: 0, because each queue has its own core and does not slow the
/// others down.
const CORE_SHARE: f64 = 0.0;

// VENDOR(streams): set for how many steps freed memory is not reused. Raise it if the device has memory to spare.
/// Number of steps for which freed memory is not reused, so that streams need fewer waits; see
/// [`BufferOptions::reuse_after`](xla_passes::buffers::BufferOptions::reuse_after).
pub(crate) const REUSE_AFTER: u32 = 16;

/// Returns the operations that `lowering/expression.rs` can compute inside a kernel.
fn fusible() -> BTreeSet<Opcode> {
    let elementwise = Opcode::ALL.iter().copied().filter(|opcode| opcode.family() == Family::Elementwise);
    let movement =
        [Opcode::Broadcast, Opcode::Transpose, Opcode::Slice, Opcode::Reverse, Opcode::Iota, Opcode::Constant];
    elementwise.chain(movement).collect()
}
