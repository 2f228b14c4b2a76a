//! Executable graphs of the driver (`CUgraphExec`): built from a recording, updated in place, launched.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::sync::Arc;

use cudarc::driver::sys::{CUgraphExec, CUgraphNode};
use xla_hlo::{Result, ResultExt};

use super::builder::GraphBuilder;
use super::recording::{GraphNode, NodeKind, difference};
use super::template::{GraphTemplate, copy_parameters, kernel_parameters};
use crate::cuda::api::driver::{self as api, CUresult};
use crate::cuda::driver::described;
use crate::cuda::library::Libraries;
use crate::cuda::stream::CudaStream;

/// Executable graph. Kernels in it must stay loaded as long as it may be launched.
pub(super) struct Graph {
    /// Graph that was instantiated; the driver identifies nodes by their handles in it.
    template: GraphTemplate,
    executable: CUgraphExec,
    handles: Vec<CUgraphNode>,
    nodes: Vec<GraphNode>,
}

/// Outcome of a change of a graph.
pub(super) enum GraphChange {
    /// The graph was changed, with this number of updated nodes.
    Done(u64),
    /// The nodes have another shape; the graph is unchanged.
    Unlike,
    /// The driver accepted only some updates; the graph must be rebuilt.
    Refused,
}

// SAFETY: the driver's graphs may be used from any thread, by one at a time.
unsafe impl Send for Graph {}

impl Graph {
    /// `cuGraphInstantiate`: builds an executable graph of these nodes for the stream's device.
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

    /// Returns the nodes.
    pub fn nodes(&self) -> &[GraphNode] {
        &self.nodes
    }

    /// Whether the graph was built for the stream's device.
    pub fn is_on(&self, stream: &CudaStream) -> bool {
        Arc::ptr_eq(&self.template.context, stream.queue().context())
    }

    /// Updates the graph to other nodes of the same shape. An error means that the device is lost.
    pub fn change(&mut self, nodes: &[GraphNode], libraries: &Libraries, stream: &CudaStream) -> Result<GraphChange> {
        if !self.is_on(stream) {
            return Ok(GraphChange::Unlike);
        }
        let Some(changed) = difference(&self.nodes, nodes) else { return Ok(GraphChange::Unlike) };
        for &number in &changed {
            match self.set(number, &nodes[number].work, libraries, stream)? {
                CUresult::CUDA_SUCCESS => self.nodes[number] = nodes[number].clone(),
                refusal => {
                    tracing::debug!(node = number, refusal = %described(refusal), "a node of a graph cannot be changed in place");
                    return Ok(GraphChange::Refused);
                }
            }
        }
        Ok(GraphChange::Done(changed.len() as u64))
    }

    fn set(&self, number: usize, work: &NodeKind, libraries: &Libraries, stream: &CudaStream) -> Result<CUresult> {
        let context = &self.template.context;
        let (executable, node) = (self.executable, self.handles[number]);
        match work {
            NodeKind::Kernel(call) => {
                let mut pointers = call.parameters();
                let parameters = kernel_parameters(call, &mut pointers);
                // SAFETY: graph and node are alive and belong together; the driver copies the parameters, which are as
                // for a launch.
                context.query("cuGraphExecKernelNodeSetParams", || unsafe {
                    api::cuGraphExecKernelNodeSetParams_v2(executable, node, &parameters)
                })
            }
            // The node is empty.
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
            // Nodes inside loops and conditionals cannot be updated, so a difference there is a difference in shape.
            NodeKind::While { .. } | NodeKind::Choose { .. } => Ok(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE),
        }
    }

    /// `cuGraphLaunch`: sends the graph to a stream of its device. Later updates do not affect a launch in flight.
    /// Launches of one graph execute in order.
    pub fn launch(&self, stream: &CudaStream) -> Result<()> {
        tracing::debug!(nodes = self.nodes.len(), "a graph is launched");
        // SAFETY: graph and stream are alive and of one context.
        let launched = stream.queue().send("cuGraphLaunch", |raw| unsafe { api::cuGraphLaunch(self.executable, raw) });
        launched.context(|| format!("graph of {} nodes", self.nodes.len()))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the graph is alive and destroyed once; the driver frees it when launches in flight are done.
        let _ =
            self.template.context.call("cuGraphExecDestroy", || unsafe { api::cuGraphExecDestroy(self.executable) });
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Graph({} nodes for {:?})", self.nodes.len(), self.template.context)
    }
}
