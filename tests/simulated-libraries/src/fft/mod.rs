//! Simulated cuFFT: Fourier transforms.

mod abi;
mod plan;
#[cfg(test)]
mod tests;
mod work;

use crate::refusal::LibraryResult;

/// Status of a call, by the names of NVIDIA's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub u32);

impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const INVALID_PLAN: Status = Status(1);
    pub const INVALID_TYPE: Status = Status(3);
    pub const INVALID_VALUE: Status = Status(4);
    pub const EXEC_FAILED: Status = Status(6);
    pub const SETUP_FAILED: Status = Status(7);
    pub const INVALID_SIZE: Status = Status(8);
    pub const UNALIGNED_DATA: Status = Status(9);
    pub const NO_WORKSPACE: Status = Status(13);
    pub const NOT_SUPPORTED: Status = Status(16);
}

/// Result of a cuFFT call.
type Fft<T = ()> = LibraryResult<T, Status>;
