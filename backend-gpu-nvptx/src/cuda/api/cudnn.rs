//! Convolutions: libcudnn.
#![expect(unsafe_code, reason = "calls C functions")]
#![allow(non_snake_case, non_camel_case_types, clippy::too_many_arguments, reason = "names and arguments are NVIDIA's")]

use std::ffi::{c_char, c_int, c_void};

use cudarc::cudnn::sys::{
    cudaStream_t, cudnnConvolutionBwdDataAlgo_t, cudnnConvolutionBwdFilterAlgo_t, cudnnConvolutionDescriptor_t,
    cudnnConvolutionFwdAlgo_t, cudnnConvolutionMode_t, cudnnDataType_t, cudnnFilterDescriptor_t, cudnnHandle_t,
    cudnnMathType_t, cudnnTensorDescriptor_t, cudnnTensorFormat_t,
};

use super::{functions, statuses};

statuses! {
    /// Statuses of cuDNN.
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
    fn cudnnConvolutionBackwardData(
        handle: cudnnHandle_t,
        alpha: *const c_void,
        w_desc: cudnnFilterDescriptor_t,
        w: *const c_void,
        dy_desc: cudnnTensorDescriptor_t,
        dy: *const c_void,
        conv_desc: cudnnConvolutionDescriptor_t,
        algo: cudnnConvolutionBwdDataAlgo_t,
        work_space: *mut c_void,
        work_space_size_in_bytes: usize,
        beta: *const c_void,
        dx_desc: cudnnTensorDescriptor_t,
        dx: *mut c_void,
    ) -> cudnnStatus_t;
    fn cudnnConvolutionBackwardFilter(
        handle: cudnnHandle_t,
        alpha: *const c_void,
        x_desc: cudnnTensorDescriptor_t,
        x: *const c_void,
        dy_desc: cudnnTensorDescriptor_t,
        dy: *const c_void,
        conv_desc: cudnnConvolutionDescriptor_t,
        algo: cudnnConvolutionBwdFilterAlgo_t,
        work_space: *mut c_void,
        work_space_size_in_bytes: usize,
        beta: *const c_void,
        dw_desc: cudnnFilterDescriptor_t,
        dw: *mut c_void,
    ) -> cudnnStatus_t;
    fn cudnnConvolutionForward(
        handle: cudnnHandle_t,
        alpha: *const c_void,
        x_desc: cudnnTensorDescriptor_t,
        x: *const c_void,
        w_desc: cudnnFilterDescriptor_t,
        w: *const c_void,
        conv_desc: cudnnConvolutionDescriptor_t,
        algo: cudnnConvolutionFwdAlgo_t,
        work_space: *mut c_void,
        work_space_size_in_bytes: usize,
        beta: *const c_void,
        y_desc: cudnnTensorDescriptor_t,
        y: *mut c_void,
    ) -> cudnnStatus_t;
    fn cudnnCreate(handle: *mut cudnnHandle_t) -> cudnnStatus_t;
    fn cudnnCreateConvolutionDescriptor(conv_desc: *mut cudnnConvolutionDescriptor_t) -> cudnnStatus_t;
    fn cudnnCreateFilterDescriptor(filter_desc: *mut cudnnFilterDescriptor_t) -> cudnnStatus_t;
    fn cudnnCreateTensorDescriptor(tensor_desc: *mut cudnnTensorDescriptor_t) -> cudnnStatus_t;
    fn cudnnDestroy(handle: cudnnHandle_t) -> cudnnStatus_t;
    fn cudnnDestroyConvolutionDescriptor(conv_desc: cudnnConvolutionDescriptor_t) -> cudnnStatus_t;
    fn cudnnDestroyFilterDescriptor(filter_desc: cudnnFilterDescriptor_t) -> cudnnStatus_t;
    fn cudnnDestroyTensorDescriptor(tensor_desc: cudnnTensorDescriptor_t) -> cudnnStatus_t;
    fn cudnnGetConvolutionBackwardDataWorkspaceSize(
        handle: cudnnHandle_t,
        w_desc: cudnnFilterDescriptor_t,
        dy_desc: cudnnTensorDescriptor_t,
        conv_desc: cudnnConvolutionDescriptor_t,
        dx_desc: cudnnTensorDescriptor_t,
        algo: cudnnConvolutionBwdDataAlgo_t,
        size_in_bytes: *mut usize,
    ) -> cudnnStatus_t;
    fn cudnnGetConvolutionBackwardFilterWorkspaceSize(
        handle: cudnnHandle_t,
        x_desc: cudnnTensorDescriptor_t,
        dy_desc: cudnnTensorDescriptor_t,
        conv_desc: cudnnConvolutionDescriptor_t,
        grad_desc: cudnnFilterDescriptor_t,
        algo: cudnnConvolutionBwdFilterAlgo_t,
        size_in_bytes: *mut usize,
    ) -> cudnnStatus_t;
    fn cudnnGetConvolutionForwardWorkspaceSize(
        handle: cudnnHandle_t,
        x_desc: cudnnTensorDescriptor_t,
        w_desc: cudnnFilterDescriptor_t,
        conv_desc: cudnnConvolutionDescriptor_t,
        y_desc: cudnnTensorDescriptor_t,
        algo: cudnnConvolutionFwdAlgo_t,
        size_in_bytes: *mut usize,
    ) -> cudnnStatus_t;
    fn cudnnGetErrorString(status: cudnnStatus_t) -> *const c_char;
    fn cudnnGetVersion() -> usize;
    fn cudnnSetConvolutionGroupCount(conv_desc: cudnnConvolutionDescriptor_t, group_count: c_int) -> cudnnStatus_t;
    fn cudnnSetConvolutionMathType(
        conv_desc: cudnnConvolutionDescriptor_t, math_type: cudnnMathType_t,
    ) -> cudnnStatus_t;
    fn cudnnSetConvolutionNdDescriptor(
        conv_desc: cudnnConvolutionDescriptor_t,
        array_length: c_int,
        pad_a: *const c_int,
        filter_stride_a: *const c_int,
        dilation_a: *const c_int,
        mode: cudnnConvolutionMode_t,
        compute_type: cudnnDataType_t,
    ) -> cudnnStatus_t;
    fn cudnnSetFilterNdDescriptor(
        filter_desc: cudnnFilterDescriptor_t,
        data_type: cudnnDataType_t,
        format: cudnnTensorFormat_t,
        nb_dims: c_int,
        filter_dim_a: *const c_int,
    ) -> cudnnStatus_t;
    fn cudnnSetStream(handle: cudnnHandle_t, stream_id: cudaStream_t) -> cudnnStatus_t;
    fn cudnnSetTensorNdDescriptor(
        tensor_desc: cudnnTensorDescriptor_t,
        data_type: cudnnDataType_t,
        nb_dims: c_int,
        dim_a: *const c_int,
        stride_a: *const c_int,
    ) -> cudnnStatus_t;
}
