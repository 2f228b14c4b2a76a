//! cuDNN: convolutions and their gradients.

mod abi;
mod descriptors;
mod rules;
#[cfg(test)]
mod tests;
mod work;

use crate::refusal::LibraryResult;

/// Status of calls, by the names of NVIDIA's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub u32);

impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const NOT_INITIALIZED: Status = Status(1001);
    pub const BAD_PARAM: Status = Status(2000);
    pub const NULL_POINTER: Status = Status(2002);
    pub const MISALIGNED_POINTER: Status = Status(2003);
    pub const SIZE_INSUFFICIENT: Status = Status(2006);
    pub const SHAPE_MISMATCH: Status = Status(2008);
    pub const NOT_SUPPORTED: Status = Status(3000);
    pub const ARCH_MISMATCH: Status = Status(3007);
    pub const EXECUTION_FAILED: Status = Status(5000);

    /// Its name.
    pub fn name(self) -> &'static std::ffi::CStr {
        match self {
            Status::SUCCESS => c"CUDNN_STATUS_SUCCESS",
            Status::NOT_INITIALIZED => c"CUDNN_STATUS_NOT_INITIALIZED",
            Status::BAD_PARAM => c"CUDNN_STATUS_BAD_PARAM",
            Status::NULL_POINTER => c"CUDNN_STATUS_BAD_PARAM_NULL_POINTER",
            Status::MISALIGNED_POINTER => c"CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER",
            Status::SIZE_INSUFFICIENT => c"CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT",
            Status::SHAPE_MISMATCH => c"CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH",
            Status::NOT_SUPPORTED => c"CUDNN_STATUS_NOT_SUPPORTED",
            Status::ARCH_MISMATCH => c"CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH",
            Status::EXECUTION_FAILED => c"CUDNN_STATUS_EXECUTION_FAILED",
            _ => c"unknown cuDNN status",
        }
    }
}

/// Result of a call of this library.
type Dnn<T = ()> = LibraryResult<T, Status>;
