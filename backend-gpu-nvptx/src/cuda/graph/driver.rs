//! Graphs of the driver: built from recorded work, changed in place, launched.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::sync::Arc;

use cudarc::driver::sys::{
    self, CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUgraph, CUgraphExec, CUgraphNode, CUmemorytype, CUresult,
    CUstreamCaptureMode,
};
use xla_hlo::{Error, Result, ResultExt};

use super::{Node, Work, difference};
use crate::cuda::code::{Call, pointers};
use crate::cuda::context::Context;
use crate::cuda::driver::{check, described};
use crate::cuda::library::{Libraries, LibraryCall};
use crate::cuda::stream::CudaStream;

/// A graph that can be launched. Kernels in it must be loaded as long as it may be.
pub(super) struct Graph {
    /// What was instantiated; the driver knows nodes by their handles in it.
    template: Template,
    executable: CUgraphExec,
    handles: Vec<CUgraphNode>,
    nodes: Vec<Node>,
}

/// A graph that is only a description.
struct Template {
    context: Arc<Context>,
    raw: CUgraph,
}

// SAFETY: the driver's graphs may be used from any thread, by one at a time.
unsafe impl Send for Graph {}

impl Graph {
    /// A graph of these nodes, for the stream's device.
    pub fn build(nodes: Vec<Node>, libraries: &Libraries, stream: &CudaStream) -> Result<Graph> {
        let template = Template::new(stream.queue().context())?;
        let mut handles: Vec<CUgraphNode> = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let after: Vec<CUgraphNode> =
                node.after.iter().filter_map(|&earlier| handles.get(earlier).copied()).collect();
            handles.push(template.add(&node.work, &after, libraries, stream)?);
        }
        let mut executable = std::ptr::null_mut();
        // SAFETY: the graph is alive; the pointer is to a live pointer.
        template.context.call("cuGraphInstantiate", || unsafe {
            sys::cuGraphInstantiateWithFlags(&mut executable, template.raw, 0)
        })?;
        Ok(Graph { template, executable, handles, nodes })
    }

    /// Makes it a graph of other nodes, and says how many were changed; `None` if it cannot be changed so.
    pub fn change(&mut self, nodes: &[Node], libraries: &Libraries, stream: &CudaStream) -> Result<Option<u64>> {
        if !Arc::ptr_eq(&self.template.context, stream.queue().context()) {
            return Ok(None);
        }
        let Some(changed) = difference(&self.nodes, nodes) else { return Ok(None) };
        for &number in &changed {
            match self.set(number, &nodes[number].work, libraries, stream)? {
                CUresult::CUDA_SUCCESS => self.nodes[number] = nodes[number].clone(),
                refusal => {
                    tracing::debug!(node = number, refusal = %described(refusal), "a graph cannot be changed in place");
                    return Ok(None);
                }
            }
        }
        Ok(Some(changed.len() as u64))
    }

    fn set(&self, number: usize, work: &Work, libraries: &Libraries, stream: &CudaStream) -> Result<CUresult> {
        let context = &self.template.context;
        let (executable, node) = (self.executable, self.handles[number]);
        match work {
            Work::Kernel(call) => {
                let mut words = call.words.clone();
                let mut pointers = pointers(&mut words);
                let parameters = kernel_parameters(call, &mut pointers);
                // SAFETY: graph and node are alive and belong together; the driver copies the parameters, which are as for a launch.
                context.query("cuGraphExecKernelNodeSetParams", || unsafe {
                    sys::cuGraphExecKernelNodeSetParams_v2(executable, node, &parameters)
                })
            }
            Work::Copy { from, to, bytes } => {
                let parameters = copy_parameters(*from, *to, *bytes);
                // SAFETY: as above; the parameters are copied.
                context.query("cuGraphExecMemcpyNodeSetParams", || unsafe {
                    sys::cuGraphExecMemcpyNodeSetParams(executable, node, &parameters, context.raw())
                })
            }
            Work::Library { call, addresses, workspace } => {
                let captured = Template::capture(call, addresses, *workspace, libraries, stream)?;
                // SAFETY: as above; the captured graph is copied.
                context.query("cuGraphExecChildGraphNodeSetParams", || unsafe {
                    sys::cuGraphExecChildGraphNodeSetParams(executable, node, captured.raw)
                })
            }
        }
    }

    /// Sends the graph to a stream of its device. A launch that is under way is not changed by later changes, and launches of one
    /// graph follow each other.
    pub fn launch(&self, stream: &CudaStream) -> Result<()> {
        // SAFETY: graph and stream are alive and of one context.
        let launched = stream.queue().send("cuGraphLaunch", |raw| unsafe { sys::cuGraphLaunch(self.executable, raw) });
        launched.context(|| format!("a graph of {} launches", self.nodes.len()))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: it is alive and destroyed once; the driver frees it when launches that are under way are done.
        let _ =
            self.template.context.call("cuGraphExecDestroy", || unsafe { sys::cuGraphExecDestroy(self.executable) });
    }
}

impl Template {
    fn new(context: &Arc<Context>) -> Result<Template> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        context.call("cuGraphCreate", || unsafe { sys::cuGraphCreate(&mut raw, 0) })?;
        Ok(Template { context: context.clone(), raw })
    }

    /// Adds a node behind others.
    fn add(
        &self,
        work: &Work,
        after: &[CUgraphNode],
        libraries: &Libraries,
        stream: &CudaStream,
    ) -> Result<CUgraphNode> {
        let mut node = std::ptr::null_mut();
        let (before, count) = (after.as_ptr(), after.len());
        match work {
            Work::Kernel(call) => {
                let mut words = call.words.clone();
                let mut pointers = pointers(&mut words);
                let parameters = kernel_parameters(call, &mut pointers);
                // SAFETY: graph and nodes before are alive; the driver copies the parameters, which are as for a launch.
                let added = self.context.call("cuGraphAddKernelNode", || unsafe {
                    sys::cuGraphAddKernelNode_v2(&mut node, self.raw, before, count, &parameters)
                });
                added.context(|| format!("kernel {}", call.name))?;
            }
            Work::Copy { from, to, bytes } => {
                let parameters = copy_parameters(*from, *to, *bytes);
                // SAFETY: as above.
                self.context.call("cuGraphAddMemcpyNode", || unsafe {
                    sys::cuGraphAddMemcpyNode(&mut node, self.raw, before, count, &parameters, self.context.raw())
                })?;
            }
            Work::Library { call, addresses, workspace } => {
                let captured = Template::capture(call, addresses, *workspace, libraries, stream)?;
                // SAFETY: as above; the captured graph is copied.
                self.context.call("cuGraphAddChildGraphNode", || unsafe {
                    sys::cuGraphAddChildGraphNode(&mut node, self.raw, before, count, captured.raw)
                })?;
            }
        }
        Ok(node)
    }

    /// What a library sends to a stream, as a graph: a stream of its own takes notes instead of working.
    fn capture(
        call: &LibraryCall,
        addresses: &[u64],
        workspace: u64,
        libraries: &Libraries,
        stream: &CudaStream,
    ) -> Result<Template> {
        let aside = stream.aside()?;
        let queue = aside.queue();
        // Libraries may load code while they are asked, which the stricter modes forbid.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let context = queue.context();
        queue.take_notes(
            // SAFETY: the stream is alive, and nobody else has it.
            |raw| context.call("cuStreamBeginCapture", || unsafe { sys::cuStreamBeginCapture_v2(raw, mode) }),
            || libraries.send(call, addresses, workspace, queue),
            |raw| {
                let mut graph = std::ptr::null_mut();
                // SAFETY: the stream is alive and was told to take notes; the pointer is to a live pointer.
                let status =
                    context.query("cuStreamEndCapture", || unsafe { sys::cuStreamEndCapture(raw, &mut graph) })?;
                let captured = (!graph.is_null()).then(|| Template { context: context.clone(), raw: graph });
                check("cuStreamEndCapture", status)?;
                captured.ok_or_else(|| Error::internal("a library's call left no notes"))
            },
        )
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        // SAFETY: it is alive and destroyed once; graphs made from it have copies.
        let _ = self.context.call("cuGraphDestroy", || unsafe { sys::cuGraphDestroy(self.raw) });
    }
}

fn kernel_parameters(call: &Call, pointers: &mut [*mut std::ffi::c_void]) -> CUDA_KERNEL_NODE_PARAMS {
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

/// A copy of one row.
fn copy_parameters(from: u64, to: u64, bytes: usize) -> CUDA_MEMCPY3D {
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

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Graph({} nodes for {:?})", self.nodes.len(), self.template.context)
    }
}
