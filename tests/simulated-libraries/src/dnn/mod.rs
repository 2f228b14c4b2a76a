//! Simulated cuDNN: convolutions and their gradients, with epilogues, through the graph API.
//!
//! ```text
//! abi            exported functions, and memory of attributes
//!   attributes   rules for the attributes of each descriptor: type, number of elements
//!     graph      values of finalised descriptors: tensors, operations, graphs, configurations, plans
//!       engines  engines with their numerical notes, and results of the heuristics
//!         rules  checks of sizes and types of convolutions
//!   work         execution by plain loops, with the deviations that notes warn of
//! ```

mod abi;
mod attributes;
mod descriptors;
mod engines;
mod graph;
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
    pub const NOT_INITIALIZED: Status = Status(1001);
    pub const BAD_PARAM: Status = Status(2000);
    pub const NULL_POINTER: Status = Status(2002);
    pub const MISALIGNED_POINTER: Status = Status(2003);
    pub const NOT_FINALIZED: Status = Status(2004);
    pub const OUT_OF_BOUND: Status = Status(2005);
    pub const SHAPE_MISMATCH: Status = Status(2008);
    pub const DUPLICATED_ENTRIES: Status = Status(2009);
    pub const ATTRIBUTE_TYPE: Status = Status(2010);
    pub const DESCRIPTOR_TYPE: Status = Status(2012);
    pub const NOT_SUPPORTED: Status = Status(3000);
    pub const GRAPH_PATTERN: Status = Status(3001);
    pub const ARCH_MISMATCH: Status = Status(3007);
    pub const EXECUTION_FAILED: Status = Status(5000);

    /// Returns the name in the header.
    pub fn name(self) -> &'static std::ffi::CStr {
        match self {
            Status::SUCCESS => c"CUDNN_STATUS_SUCCESS",
            Status::NOT_INITIALIZED => c"CUDNN_STATUS_NOT_INITIALIZED",
            Status::BAD_PARAM => c"CUDNN_STATUS_BAD_PARAM",
            Status::NULL_POINTER => c"CUDNN_STATUS_BAD_PARAM_NULL_POINTER",
            Status::MISALIGNED_POINTER => c"CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER",
            Status::NOT_FINALIZED => c"CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED",
            Status::OUT_OF_BOUND => c"CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND",
            Status::SHAPE_MISMATCH => c"CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH",
            Status::DUPLICATED_ENTRIES => c"CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES",
            Status::ATTRIBUTE_TYPE => c"CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE",
            Status::DESCRIPTOR_TYPE => c"CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE",
            Status::NOT_SUPPORTED => c"CUDNN_STATUS_NOT_SUPPORTED",
            Status::GRAPH_PATTERN => c"CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN",
            Status::ARCH_MISMATCH => c"CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH",
            Status::EXECUTION_FAILED => c"CUDNN_STATUS_EXECUTION_FAILED",
            _ => c"unknown cuDNN status",
        }
    }
}

/// Result of a cuDNN call.
type Dnn<T = ()> = LibraryResult<T, Status>;
