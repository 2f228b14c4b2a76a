//! Simulated cuBLASLt: matrix multiplication.

mod abi;
mod algorithms;
mod descriptors;
mod matmul;
mod rules;
#[cfg(test)]
mod tests;
mod work;

use crate::refusal::LibraryResult;

/// Status of a call, by the names of NVIDIA's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub u32);

impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const NOT_INITIALIZED: Status = Status(1);
    pub const INVALID_VALUE: Status = Status(7);
    pub const EXECUTION_FAILED: Status = Status(13);
    pub const NOT_SUPPORTED: Status = Status(15);

    /// Returns the name in the header.
    pub fn name(self) -> &'static std::ffi::CStr {
        match self {
            Status::SUCCESS => c"CUBLAS_STATUS_SUCCESS",
            Status::NOT_INITIALIZED => c"CUBLAS_STATUS_NOT_INITIALIZED",
            Status::INVALID_VALUE => c"CUBLAS_STATUS_INVALID_VALUE",
            Status::EXECUTION_FAILED => c"CUBLAS_STATUS_EXECUTION_FAILED",
            Status::NOT_SUPPORTED => c"CUBLAS_STATUS_NOT_SUPPORTED",
            _ => c"unknown cuBLAS status",
        }
    }
}

/// Result of a cuBLASLt call.
type Blas<T = ()> = LibraryResult<T, Status>;
