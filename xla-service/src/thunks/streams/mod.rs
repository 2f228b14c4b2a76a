//! Stream assignment: concurrency of thunks, and waits between streams.
//!
//! ```text
//! slices of thunks ── conflicts (bytes) ──> required order ───────┐
//! StreamProfile, ThunkCost ── model ──> modelled times ───────────┴─ assign ──> stream, waits, forks, joins
//!                                                                       └────> StreamReport: text and SVG
//! ```
//!
//! [`assign_streams`] assigns a stream to each thunk. It inserts a wait where a thunk reads bytes that another stream
//! writes, or writes bytes that another stream reads or writes. A sequence is launched thunk by thunk in the order of
//! the schedule, whatever the streams; streams only allow the device to start a thunk before all earlier ones are done.
//!
//! **The edges** of a sequence are the [`waits`](super::Thunk::waits) of its thunks, its
//! [`forks`](super::ThunkSequence::forks) and its [`joins`](super::ThunkSequence::joins). Each sequence has its own
//! stream, called *home*: 0 for a program, the thunk's stream for sequences nested in a loop or conditional. Work on
//! another stream starts after home's work before the sequence: either its first thunk waits for a thunk of the
//! sequence, or the stream is in `forks`. At the end, home waits for `joins` and thereby for all work of the sequence.
//! From outside, a loop therefore acts as one thunk on its stream that touches all memory touched inside. Streams fork
//! anew in each iteration, and are joined before a predicate is read.
//!
//! **No edge is superfluous.** Vector clocks track the happens-before order of the streams, so waits that follow from
//! other waits are omitted, and of several thunks on one stream only the latest is waited for. A sequence assumes that
//! the code around it touches all memory.
//!
//! **Memory that is not a slice** (a library's workspace, a counter on the device) must exist once per stream. Thunks
//! with effects keep their order: they are treated as if all of them wrote the same bytes.
//!
//! [`verify_streams`] checks an assignment by replaying it in a [race detector](crate::host::RaceDetector), and
//! [`StreamPool`] provides the streams to which [`execute`](super::execute) sends the work.

mod assign;
mod conflicts;
mod model;
mod order;
mod picture;
mod pool;
mod report;
#[cfg(test)]
mod tests;
mod verify;

pub use assign::assign_streams;
pub use pool::StreamPool;
pub use report::{StreamReport, Timeline, TimelineThunk};
pub use verify::verify_streams;

pub(super) use pool::SideStreams;

/// Profile of a device's streams, for stream assignment. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamProfile {
    /// Number of streams for kernels, library calls and host work. If this is 1 and there are no copy streams, all work
    /// stays on one stream.
    pub compute_streams: u32,
    /// Number of additional streams, for large copies only.
    pub copy_streams: u32,
    /// Host time to send a kernel, library call or copy to a stream.
    pub launch_seconds: f64,
    /// Host time to record an event and to make a stream wait for it; also the delay until the waiting stream
    /// continues.
    pub event_seconds: f64,
    /// Device time of a copy, per byte.
    pub copy_seconds_per_byte: f64,
    /// Share of the device that a copy keeps busy, from 0 to 1.
    pub copy_share: f64,
    /// Smallest copy, in bytes, that uses the copy streams.
    pub copy_stream_bytes: usize,
    /// Whether the launcher runs loops on the device ([`DeviceLoops`](super::DeviceLoops)); a recorded loop stays on
    /// one stream.
    pub device_loops: bool,
}

impl Default for StreamProfile {
    /// Profile with a single stream.
    fn default() -> Self {
        StreamProfile {
            compute_streams: 1,
            copy_streams: 0,
            launch_seconds: 0.0,
            event_seconds: 0.0,
            copy_seconds_per_byte: 0.0,
            copy_share: 0.0,
            copy_stream_bytes: 0,
            device_loops: false,
        }
    }
}

/// Cost of a kernel, a library call, or a thunk on the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThunkCost {
    /// Time in seconds, if nothing else runs.
    pub seconds: f64,
    /// Share of the device that it keeps busy, from 0 to 1. Work with a share of 1 gains nothing from concurrency.
    pub share: f64,
}
