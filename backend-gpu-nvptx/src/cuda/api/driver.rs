//! CUDA driver API (libcuda).
#![expect(unsafe_code, reason = "calls C functions")]
#![allow(non_snake_case, non_camel_case_types, clippy::too_many_arguments, reason = "names and arguments are NVIDIA's")]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use cudarc::driver::sys::{
    CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUfunction_attribute, CUgraph, CUgraphExec, CUgraphNode, CUjit_option, CUmodule, CUstream, CUstreamCaptureMode,
};

use super::{functions, statuses};

statuses! {
    /// Status codes of the driver.
    CUresult {
        CUDA_SUCCESS = 0,
        CUDA_ERROR_INVALID_VALUE = 1,
        CUDA_ERROR_OUT_OF_MEMORY = 2,
        CUDA_ERROR_NOT_INITIALIZED = 3,
        CUDA_ERROR_DEINITIALIZED = 4,
        CUDA_ERROR_PROFILER_DISABLED = 5,
        CUDA_ERROR_PROFILER_NOT_INITIALIZED = 6,
        CUDA_ERROR_PROFILER_ALREADY_STARTED = 7,
        CUDA_ERROR_PROFILER_ALREADY_STOPPED = 8,
        CUDA_ERROR_STUB_LIBRARY = 34,
        CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
        CUDA_ERROR_NO_DEVICE = 100,
        CUDA_ERROR_INVALID_DEVICE = 101,
        CUDA_ERROR_DEVICE_NOT_LICENSED = 102,
        CUDA_ERROR_INVALID_IMAGE = 200,
        CUDA_ERROR_INVALID_CONTEXT = 201,
        CUDA_ERROR_CONTEXT_ALREADY_CURRENT = 202,
        CUDA_ERROR_MAP_FAILED = 205,
        CUDA_ERROR_UNMAP_FAILED = 206,
        CUDA_ERROR_ARRAY_IS_MAPPED = 207,
        CUDA_ERROR_ALREADY_MAPPED = 208,
        CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
        CUDA_ERROR_ALREADY_ACQUIRED = 210,
        CUDA_ERROR_NOT_MAPPED = 211,
        CUDA_ERROR_NOT_MAPPED_AS_ARRAY = 212,
        CUDA_ERROR_NOT_MAPPED_AS_POINTER = 213,
        CUDA_ERROR_ECC_UNCORRECTABLE = 214,
        CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
        CUDA_ERROR_CONTEXT_ALREADY_IN_USE = 216,
        CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
        CUDA_ERROR_INVALID_PTX = 218,
        CUDA_ERROR_INVALID_GRAPHICS_CONTEXT = 219,
        CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
        CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
        CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY = 224,
        CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC = 225,
        CUDA_ERROR_CONTAINED = 226,
        CUDA_ERROR_INVALID_SOURCE = 300,
        CUDA_ERROR_FILE_NOT_FOUND = 301,
        CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
        CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303,
        CUDA_ERROR_OPERATING_SYSTEM = 304,
        CUDA_ERROR_INVALID_HANDLE = 400,
        CUDA_ERROR_ILLEGAL_STATE = 401,
        CUDA_ERROR_LOSSY_QUERY = 402,
        CUDA_ERROR_NOT_FOUND = 500,
        CUDA_ERROR_NOT_READY = 600,
        CUDA_ERROR_ILLEGAL_ADDRESS = 700,
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
        CUDA_ERROR_LAUNCH_TIMEOUT = 702,
        CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING = 703,
        CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
        CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
        CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
        CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
        CUDA_ERROR_ASSERT = 710,
        CUDA_ERROR_TOO_MANY_PEERS = 711,
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
        CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
        CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
        CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
        CUDA_ERROR_MISALIGNED_ADDRESS = 716,
        CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
        CUDA_ERROR_INVALID_PC = 718,
        CUDA_ERROR_LAUNCH_FAILED = 719,
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
        CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
        CUDA_ERROR_NOT_PERMITTED = 800,
        CUDA_ERROR_NOT_SUPPORTED = 801,
        CUDA_ERROR_SYSTEM_NOT_READY = 802,
        CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
        CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
        CUDA_ERROR_MPS_CONNECTION_FAILED = 805,
        CUDA_ERROR_MPS_RPC_FAILURE = 806,
        CUDA_ERROR_MPS_SERVER_NOT_READY = 807,
        CUDA_ERROR_MPS_MAX_CLIENTS_REACHED = 808,
        CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED = 809,
        CUDA_ERROR_MPS_CLIENT_TERMINATED = 810,
        CUDA_ERROR_CDP_NOT_SUPPORTED = 811,
        CUDA_ERROR_CDP_VERSION_MISMATCH = 812,
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
        CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
        CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
        CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
        CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
        CUDA_ERROR_CAPTURED_EVENT = 907,
        CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
        CUDA_ERROR_TIMEOUT = 909,
        CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
        CUDA_ERROR_EXTERNAL_DEVICE = 911,
        CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
        CUDA_ERROR_FUNCTION_NOT_LOADED = 913,
        CUDA_ERROR_INVALID_RESOURCE_TYPE = 914,
        CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
        CUDA_ERROR_KEY_ROTATION = 916,
        CUDA_ERROR_UNKNOWN = 999,
    }
}

functions! {
    fn cuCtxSetCurrent(ctx: CUcontext) -> CUresult;
    fn cuCtxSynchronize() -> CUresult;
    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int) -> CUresult;
    fn cuDeviceGetAttribute(pi: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice) -> CUresult;
    fn cuDeviceGetCount(count: *mut c_int) -> CUresult;
    fn cuDeviceGetName(name: *mut c_char, len: c_int, dev: CUdevice) -> CUresult;
    fn cuDevicePrimaryCtxRetain(pctx: *mut CUcontext, dev: CUdevice) -> CUresult;
    fn cuDeviceTotalMem_v2(bytes: *mut usize, dev: CUdevice) -> CUresult;
    fn cuDriverGetVersion(driver_version: *mut c_int) -> CUresult;
    fn cuEventCreate(ph_event: *mut CUevent, flags: c_uint) -> CUresult;
    fn cuEventDestroy_v2(h_event: CUevent) -> CUresult;
    fn cuEventElapsedTime(p_milliseconds: *mut f32, h_start: CUevent, h_end: CUevent) -> CUresult;
    fn cuEventQuery(h_event: CUevent) -> CUresult;
    fn cuEventRecord(h_event: CUevent, h_stream: CUstream) -> CUresult;
    fn cuEventSynchronize(h_event: CUevent) -> CUresult;
    fn cuFuncGetAttribute(pi: *mut c_int, attrib: CUfunction_attribute, hfunc: CUfunction) -> CUresult;
    fn cuFuncSetAttribute(hfunc: CUfunction, attrib: CUfunction_attribute, value: c_int) -> CUresult;
    fn cuGetErrorString(error: CUresult, p_str: *mut *const c_char) -> CUresult;
    fn cuGraphAddChildGraphNode(
        ph_graph_node: *mut CUgraphNode,
        h_graph: CUgraph,
        dependencies: *const CUgraphNode,
        num_dependencies: usize,
        child_graph: CUgraph,
    ) -> CUresult;
    fn cuGraphAddEmptyNode(
        ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize,
    ) -> CUresult;
    fn cuGraphAddKernelNode_v2(
        ph_graph_node: *mut CUgraphNode,
        h_graph: CUgraph,
        dependencies: *const CUgraphNode,
        num_dependencies: usize,
        node_params: *const CUDA_KERNEL_NODE_PARAMS,
    ) -> CUresult;
    fn cuGraphAddMemcpyNode(
        ph_graph_node: *mut CUgraphNode,
        h_graph: CUgraph,
        dependencies: *const CUgraphNode,
        num_dependencies: usize,
        copy_params: *const CUDA_MEMCPY3D,
        ctx: CUcontext,
    ) -> CUresult;
    fn cuGraphCreate(ph_graph: *mut CUgraph, flags: c_uint) -> CUresult;
    fn cuGraphDestroy(h_graph: CUgraph) -> CUresult;
    fn cuGraphExecChildGraphNodeSetParams(
        h_graph_exec: CUgraphExec, h_node: CUgraphNode, child_graph: CUgraph,
    ) -> CUresult;
    fn cuGraphExecDestroy(h_graph_exec: CUgraphExec) -> CUresult;
    fn cuGraphExecKernelNodeSetParams_v2(
        h_graph_exec: CUgraphExec, h_node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS,
    ) -> CUresult;
    fn cuGraphExecMemcpyNodeSetParams(
        h_graph_exec: CUgraphExec, h_node: CUgraphNode, copy_params: *const CUDA_MEMCPY3D, ctx: CUcontext,
    ) -> CUresult;
    fn cuGraphInstantiateWithFlags(ph_graph_exec: *mut CUgraphExec, h_graph: CUgraph, flags: c_ulonglong) -> CUresult;
    fn cuGraphLaunch(h_graph_exec: CUgraphExec, h_stream: CUstream) -> CUresult;
    fn cuInit(flags: c_uint) -> CUresult;
    fn cuLaunchKernel(
        f: CUfunction,
        grid_dim_x: c_uint,
        grid_dim_y: c_uint,
        grid_dim_z: c_uint,
        block_dim_x: c_uint,
        block_dim_y: c_uint,
        block_dim_z: c_uint,
        shared_mem_bytes: c_uint,
        h_stream: CUstream,
        kernel_params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> CUresult;
    fn cuMemAlloc_v2(dptr: *mut CUdeviceptr, bytesize: usize) -> CUresult;
    fn cuMemFreeHost(p: *mut c_void) -> CUresult;
    fn cuMemFree_v2(dptr: CUdeviceptr) -> CUresult;
    fn cuMemHostAlloc(pp: *mut *mut c_void, bytesize: usize, flags: c_uint) -> CUresult;
    fn cuMemsetD8Async(dst_device: CUdeviceptr, value: u8, count: usize, h_stream: CUstream) -> CUresult;
    fn cuMemcpyDtoDAsync_v2(
        dst_device: CUdeviceptr, src_device: CUdeviceptr, byte_count: usize, h_stream: CUstream,
    ) -> CUresult;
    fn cuMemcpyDtoHAsync_v2(
        dst_host: *mut c_void, src_device: CUdeviceptr, byte_count: usize, h_stream: CUstream,
    ) -> CUresult;
    fn cuMemcpyHtoDAsync_v2(
        dst_device: CUdeviceptr, src_host: *const c_void, byte_count: usize, h_stream: CUstream,
    ) -> CUresult;
    fn cuModuleGetFunction(hfunc: *mut CUfunction, hmod: CUmodule, name: *const c_char) -> CUresult;
    fn cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        num_options: c_uint,
        options: *mut CUjit_option,
        option_values: *mut *mut c_void,
    ) -> CUresult;
    fn cuModuleUnload(hmod: CUmodule) -> CUresult;
    fn cuStreamBeginCapture_v2(h_stream: CUstream, mode: CUstreamCaptureMode) -> CUresult;
    fn cuStreamCreate(ph_stream: *mut CUstream, flags: c_uint) -> CUresult;
    fn cuStreamDestroy_v2(h_stream: CUstream) -> CUresult;
    fn cuStreamEndCapture(h_stream: CUstream, ph_graph: *mut CUgraph) -> CUresult;
    fn cuStreamSynchronize(h_stream: CUstream) -> CUresult;
    fn cuStreamWaitEvent(h_stream: CUstream, h_event: CUevent, flags: c_uint) -> CUresult;
}

/// Functions for conditional nodes in graphs, which older drivers lack.
pub(crate) mod loops {
    use std::ffi::c_uint;

    use cudarc::driver::sys::{
        CUcontext, CUgraph, CUgraphConditionalHandle, CUgraphEdgeData, CUgraphNode, CUgraphNodeParams,
    };

    use super::super::functions;
    use super::CUresult;

    functions! {
        fn cuGraphAddNode_v2(
            ph_graph_node: *mut CUgraphNode,
            h_graph: CUgraph,
            dependencies: *const CUgraphNode,
            dependency_data: *const CUgraphEdgeData,
            num_dependencies: usize,
            node_params: *mut CUgraphNodeParams,
        ) -> CUresult;
        fn cuGraphConditionalHandleCreate(
            p_handle_out: *mut CUgraphConditionalHandle,
            h_graph: CUgraph,
            ctx: CUcontext,
            default_launch_value: c_uint,
            flags: c_uint,
        ) -> CUresult;
    }
}

/// Function that encodes tensor maps for TMA; programs without TMA do not need it.
pub(crate) mod maps {
    use std::ffi::{c_uint, c_ulonglong, c_void};

    use cudarc::driver::sys::{
        CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill_enum, CUtensorMapInterleave_enum,
        CUtensorMapL2promotion, CUtensorMapSwizzle,
    };

    use super::super::functions;
    use super::CUresult;

    functions! {
        fn cuTensorMapEncodeTiled(
            tensor_map: *mut CUtensorMap,
            tensor_data_type: CUtensorMapDataType,
            tensor_rank: c_uint,
            global_address: *mut c_void,
            global_dim: *const c_ulonglong,
            global_strides: *const c_ulonglong,
            box_dim: *const c_uint,
            element_strides: *const c_uint,
            interleave: CUtensorMapInterleave_enum,
            swizzle: CUtensorMapSwizzle,
            l2_promotion: CUtensorMapL2promotion,
            oob_fill: CUtensorMapFloatOOBfill_enum,
        ) -> CUresult;
    }
}

/// Functions of the linker, which programs can do without.
pub(crate) mod linker {
    use std::ffi::{c_char, c_uint, c_void};

    use cudarc::driver::sys::{CUjit_option, CUjitInputType, CUlinkState};

    use super::super::functions;
    use super::CUresult;

    functions! {
        fn cuLinkAddData_v2(
            state: CUlinkState,
            kind: CUjitInputType,
            data: *mut c_void,
            size: usize,
            name: *const c_char,
            num_options: c_uint,
            options: *mut CUjit_option,
            option_values: *mut *mut c_void,
        ) -> CUresult;
        fn cuLinkComplete(state: CUlinkState, cubin_out: *mut *mut c_void, size_out: *mut usize) -> CUresult;
        fn cuLinkCreate_v2(
            num_options: c_uint,
            options: *mut CUjit_option,
            option_values: *mut *mut c_void,
            state_out: *mut CUlinkState,
        ) -> CUresult;
        fn cuLinkDestroy(state: CUlinkState) -> CUresult;
    }
}
