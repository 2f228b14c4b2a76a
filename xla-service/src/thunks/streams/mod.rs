//! Stream assignment: concurrency of thunks, and waits between streams.
//!
//! ```text
//! slices of thunks ── conflicts (bytes) ──> what must be ordered ─┐
//! StreamProfile, ThunkCost ── model ──> what it would take ───────┴─ assign ──> stream, waits, forks, joins
//!                                                                       └────> StreamReport: text and picture
//! ```
//!
//! [`assign_streams`] assigns each thunk a stream, and lets it wait where bytes are read that another stream writes,
//! written that another reads, or written twice. A sequence is launched thunk by thunk in the order of the schedule,
//! whatever the streams; streams only allow the device to begin something before all that was sent earlier is done.
//!
//! **The edges** of a sequence are [`waits`](super::Thunk::waits) of its thunks, its
//! [`forks`](super::ThunkSequence::forks) and its [`joins`](super::ThunkSequence::joins). Each sequence has a stream of
//! its own, its *home*: 0 for a program, that of the thunk for sequences nested in a loop or conditional. Another
//! stream begins after the work of home before the sequence: either its first thunk waits for a thunk of the sequence,
//! or the stream is in `forks`. At the end home waits for `joins`, and so for everything. To its surroundings a loop is
//! therefore one thunk on its stream that touches all memory touched inside; streams begin anew in each iteration, and
//! are joined before a predicate is read.
//!
//! **No edge is superfluous.** What a stream knows of the others is a vector clock, so a wait that follows from others
//! is left out, and of several thunks of a stream only the latest is waited for. Of its surroundings a sequence assumes
//! that they touch everything.
//!
//! **What touches nothing that slices say** (a library's workspace, a counter on the device) must be one for each
//! stream. Thunks with effects keep their order: they are treated as if all of them wrote the same bytes.
//!
//! [`verify_streams`] checks an assignment by running it through a [race detector](crate::host::RaceDetector), and
//! [`StreamPool`] has the streams that [`execute`](super::execute) sends the work to.

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

/// Profile of a device's streams, for stream assignment. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamProfile {
    /// Number of streams for kernels, library calls and host work. With 1 and no streams for copies, nothing is
    /// assigned.
    pub compute_streams: u32,
    /// Number of further streams, for large copies alone.
    pub copy_streams: u32,
    /// The host's time for sending a kernel, library call or copy to a stream.
    pub launch_seconds: f64,
    /// The host's time for recording an event and letting a stream wait for it; also, how much later the stream goes on
    /// that waits.
    pub event_seconds: f64,
    /// Time of a copy on the device, for each byte.
    pub copy_seconds_per_byte: f64,
    /// The part of the device that a copy keeps busy, from 0 to 1.
    pub copy_share: f64,
    /// Copies of fewer bytes stay on streams for kernels.
    pub copy_stream_bytes: usize,
    /// Whether the launcher runs loops on the device ([`DeviceLoops`](super::DeviceLoops)); its recording stays on one
    /// stream.
    pub device_loops: bool,
}

impl Default for StreamProfile {
    /// Everything on one stream.
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
    /// Seconds, if nothing else runs.
    pub seconds: f64,
    /// The part of the device that it keeps busy meanwhile, from 0 to 1. Work that needs all of it gains nothing from
    /// running beside others.
    pub share: f64,
}
