//! Simulated NCCL: collectives among the devices of this process.
//!
//! ```text
//! abi             exported functions
//!   group         calls between ncclGroupStart and ncclGroupEnd, submitted together
//!     cliques     unique ids, communicators, checks of calls
//!       exchange  data of members that have arrived in their streams
//!         element arithmetic of every type
//! options         planned failures, version, log of calls
//! ```
//!
//! Each call becomes three pieces of work in the stream of its device: the contribution is read; the stream waits until
//! the others have contributed; the result is written. Reductions start with rank 1 and end with rank 0, so that sums
//! of floats differ from sums in rank order, as those of NVIDIA's library may.

mod abi;
mod cliques;
mod element;
mod exchange;
mod group;
mod options;
#[cfg(test)]
mod tests;

use crate::refusal::LibraryResult;

/// Status of a call, by the names of NVIDIA's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub u32);

impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const UNHANDLED_CUDA_ERROR: Status = Status(1);
    pub const SYSTEM_ERROR: Status = Status(2);
    pub const INVALID_ARGUMENT: Status = Status(4);
    pub const INVALID_USAGE: Status = Status(5);
    pub const REMOTE_ERROR: Status = Status(6);

    /// Returns the description of the status.
    pub fn text(self) -> &'static std::ffi::CStr {
        match self {
            Status::SUCCESS => c"no error",
            Status::UNHANDLED_CUDA_ERROR => c"unhandled cuda error",
            Status::SYSTEM_ERROR => c"unhandled system error",
            Status::INVALID_ARGUMENT => c"invalid argument",
            Status::INVALID_USAGE => c"invalid usage",
            Status::REMOTE_ERROR => c"remote process exited or there was a network error",
            Status(_) => c"unknown result code",
        }
    }
}

/// Result of an NCCL call.
type Nccl<T = ()> = LibraryResult<T, Status>;
