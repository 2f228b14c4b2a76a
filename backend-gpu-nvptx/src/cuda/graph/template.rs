//! Graphs of the driver that are not instantiated (`CUgraph`), and the parameters of their nodes.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::sync::Arc;

use cudarc::driver::sys::{CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUgraph, CUmemorytype, CUstreamCaptureMode};
use xla_hlo::{Error, Result};

use crate::cuda::api::driver as api;
use crate::cuda::context::Context;
use crate::cuda::driver::check;
use crate::cuda::library::{ChosenCall, Libraries};
use crate::cuda::module::KernelLaunch;
use crate::cuda::stream::CudaStream;

/// Graph that is not instantiated.
pub(super) struct GraphTemplate {
    pub context: Arc<Context>,
    pub raw: CUgraph,
}

impl GraphTemplate {
    /// `cuGraphCreate`: creates an empty graph.
    pub fn new(context: &Arc<Context>) -> Result<GraphTemplate> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        context.call("cuGraphCreate", || unsafe { api::cuGraphCreate(&mut raw, 0) })?;
        Ok(GraphTemplate { context: context.clone(), raw })
    }

    /// `cuStreamBeginCapture`, `cuStreamEndCapture`: captures the work of a library call on a separate stream as a
    /// graph.
    pub fn capture(
        call: &ChosenCall,
        addresses: &[u64],
        workspace: u64,
        libraries: &Libraries,
        stream: &CudaStream,
    ) -> Result<GraphTemplate> {
        let aside = stream.aside()?;
        let queue = aside.queue();
        // Libraries may load code during a call, which the stricter modes forbid.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let context = queue.context();
        let _capturing = context.capturing();
        queue.end_capture(
            // SAFETY: the stream is alive, and no other code uses it.
            |raw| context.call("cuStreamBeginCapture", || unsafe { api::cuStreamBeginCapture_v2(raw, mode) }),
            || libraries.send(call, addresses, workspace, queue),
            |raw| {
                let mut graph = std::ptr::null_mut();
                // SAFETY: the stream is alive and capturing; the pointer is to a live pointer.
                let status =
                    context.query("cuStreamEndCapture", || unsafe { api::cuStreamEndCapture(raw, &mut graph) })?;
                let captured = (!graph.is_null()).then(|| GraphTemplate { context: context.clone(), raw: graph });
                check("cuStreamEndCapture", status)?;
                captured.ok_or_else(|| Error::internal("cuStreamEndCapture returned no graph for a library call"))
            },
        )
    }
}

impl Drop for GraphTemplate {
    fn drop(&mut self) {
        // SAFETY: the graph is alive and destroyed once; graphs made from it have copies.
        let _ = self.context.call("cuGraphDestroy", || unsafe { api::cuGraphDestroy(self.raw) });
    }
}

/// Returns the node parameters of a launch; `pointers` refer to its arguments.
pub(super) fn kernel_parameters(
    call: &KernelLaunch,
    pointers: &mut [*mut std::ffi::c_void],
) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: call.function,
        gridDimX: call.blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: call.threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: call.shared_bytes,
        kernelParams: pointers.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

/// Returns the node parameters of a copy of contiguous device memory.
pub(super) fn copy_parameters(from: u64, to: u64, bytes: usize) -> CUDA_MEMCPY3D {
    let none = std::ptr::null_mut;
    CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: std::ptr::null(),
        srcDevice: from,
        srcArray: std::ptr::null_mut(),
        reserved0: none(),
        srcPitch: 0,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: none(),
        dstDevice: to,
        dstArray: std::ptr::null_mut(),
        reserved1: none(),
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    }
}
