//! cuFFT (libcufft): Fourier transforms.
#![expect(unsafe_code, reason = "calls C functions")]
#![allow(non_snake_case, non_camel_case_types, clippy::too_many_arguments, reason = "names and arguments are NVIDIA's")]

use std::ffi::{c_int, c_longlong, c_void};

use cudarc::cufft::sys::{
    cudaStream_t, cufftComplex, cufftDoubleComplex, cufftDoubleReal, cufftHandle, cufftReal, cufftType,
};

use super::{functions, statuses};

statuses! {
    /// Status codes of cuFFT.
    cufftResult {
        CUFFT_SUCCESS = 0,
        CUFFT_INVALID_PLAN = 1,
        CUFFT_ALLOC_FAILED = 2,
        CUFFT_INVALID_TYPE = 3,
        CUFFT_INVALID_VALUE = 4,
        CUFFT_INTERNAL_ERROR = 5,
        CUFFT_EXEC_FAILED = 6,
        CUFFT_SETUP_FAILED = 7,
        CUFFT_INVALID_SIZE = 8,
        CUFFT_UNALIGNED_DATA = 9,
        CUFFT_INCOMPLETE_PARAMETER_LIST = 10,
        CUFFT_INVALID_DEVICE = 11,
        CUFFT_PARSE_ERROR = 12,
        CUFFT_NO_WORKSPACE = 13,
        CUFFT_NOT_IMPLEMENTED = 14,
        CUFFT_LICENSE_ERROR = 15,
        CUFFT_NOT_SUPPORTED = 16,
    }
}

functions! {
    fn cufftCreate(handle: *mut cufftHandle) -> cufftResult;
    fn cufftDestroy(plan: cufftHandle) -> cufftResult;
    fn cufftExecC2C(
        plan: cufftHandle, idata: *mut cufftComplex, odata: *mut cufftComplex, direction: c_int,
    ) -> cufftResult;
    fn cufftExecC2R(plan: cufftHandle, idata: *mut cufftComplex, odata: *mut cufftReal) -> cufftResult;
    fn cufftExecD2Z(plan: cufftHandle, idata: *mut cufftDoubleReal, odata: *mut cufftDoubleComplex) -> cufftResult;
    fn cufftExecR2C(plan: cufftHandle, idata: *mut cufftReal, odata: *mut cufftComplex) -> cufftResult;
    fn cufftExecZ2D(plan: cufftHandle, idata: *mut cufftDoubleComplex, odata: *mut cufftDoubleReal) -> cufftResult;
    fn cufftExecZ2Z(
        plan: cufftHandle, idata: *mut cufftDoubleComplex, odata: *mut cufftDoubleComplex, direction: c_int,
    ) -> cufftResult;
    fn cufftGetVersion(version: *mut c_int) -> cufftResult;
    fn cufftMakePlanMany64(
        plan: cufftHandle,
        rank: c_int,
        n: *mut c_longlong,
        inembed: *mut c_longlong,
        istride: c_longlong,
        idist: c_longlong,
        onembed: *mut c_longlong,
        ostride: c_longlong,
        odist: c_longlong,
        kind: cufftType,
        batch: c_longlong,
        work_size: *mut usize,
    ) -> cufftResult;
    fn cufftSetAutoAllocation(plan: cufftHandle, auto_allocate: c_int) -> cufftResult;
    fn cufftSetStream(plan: cufftHandle, stream: cudaStream_t) -> cufftResult;
    fn cufftSetWorkArea(plan: cufftHandle, work_area: *mut c_void) -> cufftResult;
}
