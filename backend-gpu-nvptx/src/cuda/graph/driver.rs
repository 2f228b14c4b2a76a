//! Graphs of the driver: built from a recording, updated in place, launched.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::sync::Arc;

use cudarc::driver::sys::{
    CUDA_CONDITIONAL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY3D, CUgraph, CUgraphConditionalNodeType,
    CUgraphExec, CUgraphNode, CUgraphNodeParams, CUgraphNodeType, CUmemorytype, CUstreamCaptureMode,
};
use xla_hlo::{Error, Result, ResultExt};

use super::recording::{GraphNode, NodeKind, difference};
use crate::cuda::api::driver::{self as api, CUresult};
use crate::cuda::context::Context;
use crate::cuda::driver::{Driver, check, described};
use crate::cuda::library::{ChosenCall, Libraries};
use crate::cuda::module::{KernelLaunch, pointers};
use crate::cuda::stream::CudaStream;

/// A graph that can be launched. Kernels in it must be loaded as long as it may be.
pub(super) struct Graph {
    /// The instantiated graph; the driver knows nodes by their handles in it.
    template: GraphTemplate,
    executable: CUgraphExec,
    handles: Vec<CUgraphNode>,
    nodes: Vec<GraphNode>,
}

/// A graph that is only a description.
struct GraphTemplate {
    context: Arc<Context>,
    raw: CUgraph,
}

// SAFETY: the driver's graphs may be used from any thread, by one at a time.
unsafe impl Send for Graph {}

impl Graph {
    /// A graph of these nodes, for the stream's device.
    pub fn build(nodes: Vec<GraphNode>, libraries: &Libraries, stream: &CudaStream) -> Result<Graph> {
        let template = GraphTemplate::new(stream.queue().context())?;
        let handles = GraphBuilder { libraries, stream }.add_all(template.raw, &nodes, &[])?;
        let mut executable = std::ptr::null_mut();
        // SAFETY: the graph is alive; the pointer is to a live pointer.
        template.context.call("cuGraphInstantiate", || unsafe {
            api::cuGraphInstantiateWithFlags(&mut executable, template.raw, 0)
        })?;
        Ok(Graph { template, executable, handles, nodes })
    }

    /// Makes it a graph of other nodes, and says how many were changed; `None` if it cannot be changed so.
    pub fn change(&mut self, nodes: &[GraphNode], libraries: &Libraries, stream: &CudaStream) -> Result<Option<u64>> {
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

    fn set(&self, number: usize, work: &NodeKind, libraries: &Libraries, stream: &CudaStream) -> Result<CUresult> {
        let context = &self.template.context;
        let (executable, node) = (self.executable, self.handles[number]);
        match work {
            NodeKind::Kernel(call) => {
                let mut arguments = call.arguments.clone();
                let mut pointers = pointers(&mut arguments);
                let parameters = kernel_parameters(call, &mut pointers);
                // SAFETY: graph and node are alive and belong together; the driver copies the parameters, which are as
                // for a launch.
                context.query("cuGraphExecKernelNodeSetParams", || unsafe {
                    api::cuGraphExecKernelNodeSetParams_v2(executable, node, &parameters)
                })
            }
            // A node that does nothing.
            NodeKind::Copy { bytes: 0, .. } => Ok(CUresult::CUDA_SUCCESS),
            NodeKind::Copy { from, to, bytes } => {
                let parameters = copy_parameters(*from, *to, *bytes);
                // SAFETY: as above; the parameters are copied.
                context.query("cuGraphExecMemcpyNodeSetParams", || unsafe {
                    api::cuGraphExecMemcpyNodeSetParams(executable, node, &parameters, context.raw())
                })
            }
            NodeKind::Library { call, addresses, workspace } => {
                let captured = GraphTemplate::capture(call, addresses, *workspace, libraries, stream)?;
                // SAFETY: as above; the captured graph is copied.
                context.query("cuGraphExecChildGraphNodeSetParams", || unsafe {
                    api::cuGraphExecChildGraphNodeSetParams(executable, node, captured.raw)
                })
            }
            // A difference in a loop is a difference in shape.
            NodeKind::While { .. } => Ok(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE),
        }
    }

    /// Sends the graph to a stream of its device. A launch in flight is not changed by later changes, and
    /// launches of one graph follow each other.
    pub fn launch(&self, stream: &CudaStream) -> Result<()> {
        // SAFETY: graph and stream are alive and of one context.
        let launched = stream.queue().send("cuGraphLaunch", |raw| unsafe { api::cuGraphLaunch(self.executable, raw) });
        launched.context(|| format!("a graph of {} launches", self.nodes.len()))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: it is alive and destroyed once; the driver frees it when launches in flight are done.
        let _ =
            self.template.context.call("cuGraphExecDestroy", || unsafe { api::cuGraphExecDestroy(self.executable) });
    }
}

impl GraphTemplate {
    fn new(context: &Arc<Context>) -> Result<GraphTemplate> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        context.call("cuGraphCreate", || unsafe { api::cuGraphCreate(&mut raw, 0) })?;
        Ok(GraphTemplate { context: context.clone(), raw })
    }

    /// The work that a library sends to a stream, as a graph: a stream of its own captures it.
    fn capture(
        call: &ChosenCall,
        addresses: &[u64],
        workspace: u64,
        libraries: &Libraries,
        stream: &CudaStream,
    ) -> Result<GraphTemplate> {
        let aside = stream.aside()?;
        let queue = aside.queue();
        // Libraries may load code while they are asked, which the stricter modes forbid.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let context = queue.context();
        queue.end_capture(
            // SAFETY: the stream is alive, and nobody else has it.
            |raw| context.call("cuStreamBeginCapture", || unsafe { api::cuStreamBeginCapture_v2(raw, mode) }),
            || libraries.send(call, addresses, workspace, queue),
            |raw| {
                let mut graph = std::ptr::null_mut();
                // SAFETY: the stream is alive and capturing; the pointer is to a live pointer.
                let status =
                    context.query("cuStreamEndCapture", || unsafe { api::cuStreamEndCapture(raw, &mut graph) })?;
                let captured = (!graph.is_null()).then(|| GraphTemplate { context: context.clone(), raw: graph });
                check("cuStreamEndCapture", status)?;
                captured.ok_or_else(|| Error::internal("a library call was not captured"))
            },
        )
    }
}

/// Adds nodes to graphs.
struct GraphBuilder<'a> {
    libraries: &'a Libraries,
    stream: &'a CudaStream,
}

impl GraphBuilder<'_> {
    /// Adds nodes, those without earlier ones after `after`. Returns their handles.
    fn add_all(&self, graph: CUgraph, nodes: &[GraphNode], after: &[CUgraphNode]) -> Result<Vec<CUgraphNode>> {
        let mut handles: Vec<CUgraphNode> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let earlier: Vec<CUgraphNode> = node.after.iter().filter_map(|&e| handles.get(e).copied()).collect();
            let added = self.add(graph, &node.work, if earlier.is_empty() { after } else { &earlier })?;
            handles.push(added);
        }
        Ok(handles)
    }

    /// Adds a node after others.
    fn add(&self, graph: CUgraph, work: &NodeKind, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        match work {
            NodeKind::Kernel(call) => self.add_kernel(graph, call, after),
            // The driver knows no copies of nothing.
            NodeKind::Copy { bytes: 0, .. } => self.adding("cuGraphAddEmptyNode", after, |node, before, count| {
                // SAFETY: graph and nodes before are alive.
                unsafe { api::cuGraphAddEmptyNode(node, graph, before, count) }
            }),
            NodeKind::Copy { from, to, bytes } => {
                let parameters = copy_parameters(*from, *to, *bytes);
                self.adding("cuGraphAddMemcpyNode", after, |node, before, count| {
                    // SAFETY: graph and nodes before are alive; the driver copies the parameters.
                    unsafe { api::cuGraphAddMemcpyNode(node, graph, before, count, &parameters, self.context().raw()) }
                })
            }
            NodeKind::Library { call, addresses, workspace } => {
                let captured = GraphTemplate::capture(call, addresses, *workspace, self.libraries, self.stream)?;
                self.adding("cuGraphAddChildGraphNode", after, |node, before, count| {
                    // SAFETY: as above; the captured graph is copied.
                    unsafe { api::cuGraphAddChildGraphNode(node, graph, before, count, captured.raw) }
                })
            }
            NodeKind::While { condition, predicate, body } => self.add_loop(graph, condition, *predicate, body, after),
        }
    }

    fn add_kernel(&self, graph: CUgraph, call: &KernelLaunch, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        let mut arguments = call.arguments.clone();
        let mut pointers = pointers(&mut arguments);
        let parameters = kernel_parameters(call, &mut pointers);
        let added = self.adding("cuGraphAddKernelNode", after, |node, before, count| {
            // SAFETY: graph and nodes before are alive; the driver copies the parameters, which are as for a launch.
            unsafe { api::cuGraphAddKernelNode_v2(node, graph, before, count, &parameters) }
        });
        added.context(|| format!("kernel {}", call.name))
    }

    /// Adds a loop: the condition, a kernel that looks at the predicate, and a node whose own graph is the body, the
    /// condition and such a kernel again.
    fn add_loop(
        &self,
        graph: CUgraph,
        condition: &[GraphNode],
        predicate: u64,
        body: &[GraphNode],
        after: &[CUgraphNode],
    ) -> Result<CUgraphNode> {
        if !Driver::get()?.has_loops() {
            return Err(Error::unimplemented("loops of the device need a driver of CUDA 12.4 or newer"));
        }
        let mut handle = 0;
        self.context().call("cuGraphConditionalHandleCreate", || {
            // SAFETY: the graph is alive; the pointer is to a live integer. The value is set before the loop looks at
            // it.
            unsafe { api::loops::cuGraphConditionalHandleCreate(&mut handle, graph, self.context().raw(), 0, 0) }
        })?;
        let look = self.stream.resources().condition()?.call(0, 1, &[handle, predicate])?;
        let looked = |graph, nodes: &[GraphNode], after: &[CUgraphNode]| {
            let last = self.add_chain(graph, nodes, after)?;
            self.add_kernel(graph, &look, &last)
        };
        let before = looked(graph, condition, after)?;
        // SAFETY: all of it may be zero: the type is then that of kernels, and what is reserved must be zero.
        let mut parameters: CUgraphNodeParams = unsafe { std::mem::zeroed() };
        parameters.type_ = CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL;
        parameters.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
            handle,
            type_: CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
            size: 1,
            phGraph_out: std::ptr::null_mut(),
            ctx: self.context().raw(),
        };
        let node = self.adding("cuGraphAddNode", &[before], |node, before, count| {
            // SAFETY: graph and node before are alive; no node before has data, which null says.
            unsafe { api::loops::cuGraphAddNode_v2(node, graph, before, std::ptr::null(), count, &mut parameters) }
        })?;
        // SAFETY: the parameters are those of a loop, and the driver has put the address of its one graph there, which
        // lives as long as the node.
        let inside = unsafe { parameters.__bindgen_anon_1.conditional.phGraph_out.as_ref() };
        let inside = *inside.ok_or_else(|| Error::internal("cuGraphAddNode returned no graph for a loop"))?;
        let last = self.add_chain(inside, body, &[])?;
        looked(inside, condition, &last)?;
        Ok(node)
    }

    /// Adds nodes, and returns those that whatever follows must wait for: the last ones, or `after`
    /// for none.
    fn add_chain(&self, graph: CUgraph, nodes: &[GraphNode], after: &[CUgraphNode]) -> Result<Vec<CUgraphNode>> {
        let handles = self.add_all(graph, nodes, after)?;
        if handles.is_empty() {
            return Ok(after.to_vec());
        }
        let is_last = |number: &usize| !nodes.iter().any(|node| node.after.contains(number));
        Ok((0..handles.len()).filter(is_last).map(|number| handles[number]).collect())
    }

    /// Makes a call of the driver that adds a node after others.
    fn adding(
        &self,
        name: &str,
        after: &[CUgraphNode],
        call: impl FnOnce(*mut CUgraphNode, *const CUgraphNode, usize) -> CUresult,
    ) -> Result<CUgraphNode> {
        let mut node = std::ptr::null_mut();
        self.context().call(name, || call(&mut node, after.as_ptr(), after.len()))?;
        Ok(node)
    }

    fn context(&self) -> &Arc<Context> {
        self.stream.queue().context()
    }
}

impl Drop for GraphTemplate {
    fn drop(&mut self) {
        // SAFETY: it is alive and destroyed once; graphs made from it have copies.
        let _ = self.context.call("cuGraphDestroy", || unsafe { api::cuGraphDestroy(self.raw) });
    }
}

fn kernel_parameters(call: &KernelLaunch, pointers: &mut [*mut std::ffi::c_void]) -> CUDA_KERNEL_NODE_PARAMS {
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
