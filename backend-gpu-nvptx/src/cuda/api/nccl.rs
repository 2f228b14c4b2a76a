//! NCCL (libnccl): collectives among GPUs.
#![expect(unsafe_code, reason = "calls C functions")]
#![allow(non_snake_case, non_camel_case_types, non_upper_case_globals, reason = "names are NVIDIA's")]

use std::ffi::{c_char, c_int, c_void};

use cudarc::driver::sys::CUstream;

use super::{functions, statuses};

statuses! {
    /// Status codes of NCCL.
    ncclResult_t {
        ncclSuccess = 0,
        ncclUnhandledCudaError = 1,
        ncclSystemError = 2,
        ncclInternalError = 3,
        ncclInvalidArgument = 4,
        ncclInvalidUsage = 5,
        ncclRemoteError = 6,
        ncclInProgress = 7,
        ncclTimeout = 8,
    }
}

/// Handle of a communicator.
pub(crate) type ncclComm_t = *mut c_void;

/// Identity of a clique, which all of its ranks pass when they create their communicators.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ncclUniqueId {
    pub internal: [c_char; 128],
}

/// Number of an element type.
pub(crate) type ncclDataType_t = u32;

/// Number of a combiner.
pub(crate) type ncclRedOp_t = u32;

functions! {
    fn ncclGetVersion(version: *mut c_int) -> ncclResult_t;
    fn ncclGetErrorString(result: ncclResult_t) -> *const c_char;
    fn ncclGetUniqueId(id: *mut ncclUniqueId) -> ncclResult_t;
    fn ncclCommInitRank(comm: *mut ncclComm_t, ranks: c_int, id: ncclUniqueId, rank: c_int) -> ncclResult_t;
    fn ncclCommAbort(comm: ncclComm_t) -> ncclResult_t;
    fn ncclCommDestroy(comm: ncclComm_t) -> ncclResult_t;
    fn ncclCommGetAsyncError(comm: ncclComm_t, result: *mut ncclResult_t) -> ncclResult_t;
    fn ncclGroupStart() -> ncclResult_t;
    fn ncclGroupEnd() -> ncclResult_t;
    fn ncclAllReduce(
        send: *const c_void, receive: *mut c_void, count: usize, ty: ncclDataType_t, op: ncclRedOp_t,
        comm: ncclComm_t, stream: CUstream,
    ) -> ncclResult_t;
    fn ncclReduceScatter(
        send: *const c_void, receive: *mut c_void, count: usize, ty: ncclDataType_t, op: ncclRedOp_t,
        comm: ncclComm_t, stream: CUstream,
    ) -> ncclResult_t;
    fn ncclAllGather(
        send: *const c_void, receive: *mut c_void, count: usize, ty: ncclDataType_t,
        comm: ncclComm_t, stream: CUstream,
    ) -> ncclResult_t;
    fn ncclBroadcast(
        send: *const c_void, receive: *mut c_void, count: usize, ty: ncclDataType_t, root: c_int,
        comm: ncclComm_t, stream: CUstream,
    ) -> ncclResult_t;
    fn ncclSend(
        send: *const c_void, count: usize, ty: ncclDataType_t, peer: c_int, comm: ncclComm_t, stream: CUstream,
    ) -> ncclResult_t;
    fn ncclRecv(
        receive: *mut c_void, count: usize, ty: ncclDataType_t, peer: c_int, comm: ncclComm_t, stream: CUstream,
    ) -> ncclResult_t;
}
