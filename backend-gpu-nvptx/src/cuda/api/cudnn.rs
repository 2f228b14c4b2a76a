//! cuDNN (libcudnn): convolutions.
#![expect(unsafe_code, reason = "calls C functions")]
#![allow(non_snake_case, non_camel_case_types, reason = "names are NVIDIA's")]

use std::ffi::{c_char, c_void};

use cudarc::cudnn::sys::{
    cudaStream_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, cudnnBackendDescriptor_t,
    cudnnBackendDescriptorType_t, cudnnHandle_t,
};

use super::{functions, statuses};

statuses! {
    /// Status codes of cuDNN.
    cudnnStatus_t {
        CUDNN_STATUS_SUCCESS = 0,
        CUDNN_STATUS_NOT_INITIALIZED = 1001,
        CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH = 1002,
        CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH = 1003,
        CUDNN_STATUS_DEPRECATED = 1004,
        CUDNN_STATUS_LICENSE_ERROR = 1005,
        CUDNN_STATUS_RUNTIME_IN_PROGRESS = 1006,
        CUDNN_STATUS_RUNTIME_FP_OVERFLOW = 1007,
        CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED = 1008,
        CUDNN_STATUS_BAD_PARAM = 2000,
        CUDNN_STATUS_BAD_PARAM_NULL_POINTER = 2002,
        CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER = 2003,
        CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED = 2004,
        CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND = 2005,
        CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT = 2006,
        CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH = 2007,
        CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH = 2008,
        CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES = 2009,
        CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE = 2010,
        CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH = 2011,
        CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE = 2012,
        CUDNN_STATUS_NOT_SUPPORTED = 3000,
        CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN = 3001,
        CUDNN_STATUS_NOT_SUPPORTED_SHAPE = 3002,
        CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE = 3003,
        CUDNN_STATUS_NOT_SUPPORTED_LAYOUT = 3004,
        CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER = 3005,
        CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART = 3006,
        CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH = 3007,
        CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING = 3008,
        CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE = 3009,
        CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT = 3010,
        CUDNN_STATUS_NOT_SUPPORTED_PADDING = 3011,
        CUDNN_STATUS_NOT_SUPPORTED_BAD_LAUNCH_PARAM = 3012,
        CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API = 3013,
        CUDNN_STATUS_INTERNAL_ERROR = 4000,
        CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED = 4001,
        CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE = 4002,
        CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED = 4003,
        CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4004,
        CUDNN_STATUS_INTERNAL_ERROR_BAD_LAUNCH_PARAM = 4005,
        CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED = 4006,
        CUDNN_STATUS_EXECUTION_FAILED = 5000,
        CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER = 5001,
        CUDNN_STATUS_EXECUTION_FAILED_CUBLAS = 5002,
        CUDNN_STATUS_EXECUTION_FAILED_CUDART = 5003,
        CUDNN_STATUS_EXECUTION_FAILED_CURAND = 5004,
        CUDNN_STATUS_INVALID_VALUE = 2001,
    }
}

functions! {
    fn cudnnBackendCreateDescriptor(
        descriptor_type: cudnnBackendDescriptorType_t, descriptor: *mut cudnnBackendDescriptor_t,
    ) -> cudnnStatus_t;
    fn cudnnBackendDestroyDescriptor(descriptor: cudnnBackendDescriptor_t) -> cudnnStatus_t;
    fn cudnnBackendExecute(
        handle: cudnnHandle_t, execution_plan: cudnnBackendDescriptor_t, variant_pack: cudnnBackendDescriptor_t,
    ) -> cudnnStatus_t;
    fn cudnnBackendFinalize(descriptor: cudnnBackendDescriptor_t) -> cudnnStatus_t;
    fn cudnnBackendGetAttribute(
        descriptor: cudnnBackendDescriptor_t,
        attribute_name: cudnnBackendAttributeName_t,
        attribute_type: cudnnBackendAttributeType_t,
        requested_element_count: i64,
        element_count: *mut i64,
        array_of_elements: *mut c_void,
    ) -> cudnnStatus_t;
    fn cudnnBackendSetAttribute(
        descriptor: cudnnBackendDescriptor_t,
        attribute_name: cudnnBackendAttributeName_t,
        attribute_type: cudnnBackendAttributeType_t,
        element_count: i64,
        array_of_elements: *const c_void,
    ) -> cudnnStatus_t;
    fn cudnnCreate(handle: *mut cudnnHandle_t) -> cudnnStatus_t;
    fn cudnnDestroy(handle: cudnnHandle_t) -> cudnnStatus_t;
    fn cudnnGetErrorString(status: cudnnStatus_t) -> *const c_char;
    fn cudnnGetVersion() -> usize;
    fn cudnnSetStream(handle: cudnnHandle_t, stream_id: cudaStream_t) -> cudnnStatus_t;
}
