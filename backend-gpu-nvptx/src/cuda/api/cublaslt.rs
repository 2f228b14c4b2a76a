//! cuBLASLt (libcublasLt): matrix multiplication.
#![expect(unsafe_code, reason = "calls C functions")]
#![allow(non_snake_case, non_camel_case_types, clippy::too_many_arguments, reason = "names and arguments are NVIDIA's")]

use std::ffi::{c_char, c_int, c_void};

use cudarc::cublaslt::sys::{
    cublasComputeType_t, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
    cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayoutAttribute_t, cudaDataType, cudaDataType_t, cudaStream_t,
};

use super::{functions, statuses};

statuses! {
    /// Status codes of cuBLASLt.
    cublasStatus_t {
        CUBLAS_STATUS_SUCCESS = 0,
        CUBLAS_STATUS_NOT_INITIALIZED = 1,
        CUBLAS_STATUS_ALLOC_FAILED = 3,
        CUBLAS_STATUS_INVALID_VALUE = 7,
        CUBLAS_STATUS_ARCH_MISMATCH = 8,
        CUBLAS_STATUS_MAPPING_ERROR = 11,
        CUBLAS_STATUS_EXECUTION_FAILED = 13,
        CUBLAS_STATUS_INTERNAL_ERROR = 14,
        CUBLAS_STATUS_NOT_SUPPORTED = 15,
        CUBLAS_STATUS_LICENSE_ERROR = 16,
    }
}

/// `cublasLtMatmulHeuristicResult_t`: an algorithm that the library proposes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HeuristicResult {
    pub algorithm: cublasLtMatmulAlgo_t,
    /// Size of the workspace in bytes.
    pub workspace: usize,
    pub state: cublasStatus_t,
    waves: f32,
    reserved: [c_int; 4],
}

const _: () =
    assert!(size_of::<HeuristicResult>() == size_of::<cudarc::cublaslt::sys::cublasLtMatmulHeuristicResult_t>());

functions! {
    fn cublasLtCreate(light_handle: *mut cublasLtHandle_t) -> cublasStatus_t;
    fn cublasLtDestroy(light_handle: cublasLtHandle_t) -> cublasStatus_t;
    fn cublasLtGetStatusString(status: cublasStatus_t) -> *const c_char;
    fn cublasLtGetVersion() -> usize;
    fn cublasLtMatmul(
        light_handle: cublasLtHandle_t,
        compute_desc: cublasLtMatmulDesc_t,
        alpha: *const c_void,
        a: *const c_void,
        adesc: cublasLtMatrixLayout_t,
        b: *const c_void,
        bdesc: cublasLtMatrixLayout_t,
        beta: *const c_void,
        c: *const c_void,
        cdesc: cublasLtMatrixLayout_t,
        d: *mut c_void,
        ddesc: cublasLtMatrixLayout_t,
        algo: *const cublasLtMatmulAlgo_t,
        workspace: *mut c_void,
        workspace_size_in_bytes: usize,
        stream: cudaStream_t,
    ) -> cublasStatus_t;
    fn cublasLtMatmulAlgoGetHeuristic(
        light_handle: cublasLtHandle_t,
        operation_desc: cublasLtMatmulDesc_t,
        adesc: cublasLtMatrixLayout_t,
        bdesc: cublasLtMatrixLayout_t,
        cdesc: cublasLtMatrixLayout_t,
        ddesc: cublasLtMatrixLayout_t,
        preference: cublasLtMatmulPreference_t,
        requested_algo_count: c_int,
        heuristic_results_array: *mut HeuristicResult,
        return_algo_count: *mut c_int,
    ) -> cublasStatus_t;
    fn cublasLtMatmulDescCreate(
        matmul_desc: *mut cublasLtMatmulDesc_t, compute_type: cublasComputeType_t, scale_type: cudaDataType_t,
    ) -> cublasStatus_t;
    fn cublasLtMatmulDescDestroy(matmul_desc: cublasLtMatmulDesc_t) -> cublasStatus_t;
    fn cublasLtMatmulDescSetAttribute(
        matmul_desc: cublasLtMatmulDesc_t,
        attr: cublasLtMatmulDescAttributes_t,
        buf: *const c_void,
        size_in_bytes: usize,
    ) -> cublasStatus_t;
    fn cublasLtMatmulPreferenceCreate(pref: *mut cublasLtMatmulPreference_t) -> cublasStatus_t;
    fn cublasLtMatmulPreferenceDestroy(pref: cublasLtMatmulPreference_t) -> cublasStatus_t;
    fn cublasLtMatmulPreferenceSetAttribute(
        pref: cublasLtMatmulPreference_t,
        attr: cublasLtMatmulPreferenceAttributes_t,
        buf: *const c_void,
        size_in_bytes: usize,
    ) -> cublasStatus_t;
    fn cublasLtMatrixLayoutCreate(
        mat_layout: *mut cublasLtMatrixLayout_t, kind: cudaDataType, rows: u64, cols: u64, ld: i64,
    ) -> cublasStatus_t;
    fn cublasLtMatrixLayoutDestroy(mat_layout: cublasLtMatrixLayout_t) -> cublasStatus_t;
    fn cublasLtMatrixLayoutSetAttribute(
        mat_layout: cublasLtMatrixLayout_t,
        attr: cublasLtMatrixLayoutAttribute_t,
        buf: *const c_void,
        size_in_bytes: usize,
    ) -> cublasStatus_t;
}
