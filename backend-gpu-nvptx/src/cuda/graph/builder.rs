//! Builder of the driver's graphs: adds nodes sequentially.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::sync::Arc;

use cudarc::driver::sys::{
    CUDA_CONDITIONAL_NODE_PARAMS, CUgraph, CUgraphConditionalNodeType as CondType, CUgraphNode, CUgraphNodeParams,
    CUgraphNodeType,
};
use xla_hlo::{Error, Result, ResultExt};
use xla_service::thunks::Selector;

use super::condition::{SET_BRANCH, SET_CONDITION};
use super::recording::{GraphNode, NodeKind};
use super::template::{GraphTemplate, copy_parameters, kernel_parameters};
use crate::cuda::api::driver::{self as api, CUresult};
use crate::cuda::context::Context;
use crate::cuda::driver::Driver;
use crate::cuda::library::Libraries;
use crate::cuda::module::KernelLaunch;
use crate::cuda::stream::CudaStream;

/// Adds nodes to graphs.
pub(super) struct GraphBuilder<'a> {
    pub libraries: &'a Libraries,
    pub stream: &'a CudaStream,
}

impl GraphBuilder<'_> {
    /// Adds nodes; those without predecessors follow `after`. Returns their handles.
    pub fn add_all(&self, graph: CUgraph, nodes: &[GraphNode], after: &[CUgraphNode]) -> Result<Vec<CUgraphNode>> {
        let mut handles: Vec<CUgraphNode> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let earlier: Vec<CUgraphNode> = node.after.iter().filter_map(|&e| handles.get(e).copied()).collect();
            let added = self.add(graph, &node.work, if earlier.is_empty() { after } else { &earlier })?;
            handles.push(added);
        }
        Ok(handles)
    }

    /// Adds a node that follows the nodes `after`.
    fn add(&self, graph: CUgraph, work: &NodeKind, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        match work {
            NodeKind::Kernel(call) => self.add_kernel(graph, call, after),
            // The driver rejects copies of no bytes.
            NodeKind::Copy { bytes: 0, .. } => self.adding("cuGraphAddEmptyNode", after, |node, before, count| {
                // SAFETY: the graph and the predecessors are alive.
                unsafe { api::cuGraphAddEmptyNode(node, graph, before, count) }
            }),
            NodeKind::Copy { from, to, bytes } => {
                let parameters = copy_parameters(*from, *to, *bytes);
                self.adding("cuGraphAddMemcpyNode", after, |node, before, count| {
                    // SAFETY: the graph and the predecessors are alive; the driver copies the parameters.
                    unsafe { api::cuGraphAddMemcpyNode(node, graph, before, count, &parameters, self.context().raw()) }
                })
            }
            NodeKind::Library { call, addresses, workspace } => {
                let captured = GraphTemplate::capture(call, addresses, *workspace, self.libraries, self.stream)?;
                self.adding("cuGraphAddChildGraphNode", after, |node, before, count| {
                    // SAFETY: as above; the driver copies the captured graph.
                    unsafe { api::cuGraphAddChildGraphNode(node, graph, before, count, captured.raw) }
                })
            }
            NodeKind::While { condition, predicate, body } => self.add_loop(graph, condition, *predicate, body, after),
            NodeKind::Choose { selector, address, branches } => {
                self.add_choice(graph, (*selector, *address), branches, after)
            }
        }
    }

    fn add_kernel(&self, graph: CUgraph, call: &KernelLaunch, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        let mut pointers = call.parameters();
        let parameters = kernel_parameters(call, &mut pointers);
        let added = self.adding("cuGraphAddKernelNode", after, |node, before, count| {
            // SAFETY: the graph and the predecessors are alive; the driver copies the parameters, which are as for a
            // launch.
            unsafe { api::cuGraphAddKernelNode_v2(node, graph, before, count, &parameters) }
        });
        added.context(|| format!("kernel {}", call.name))
    }

    /// Adds a loop: the condition, a kernel that sets the loop's condition from the predicate, and a conditional node.
    /// The body graph of the node contains the body, the condition and the kernel again.
    fn add_loop(
        &self,
        graph: CUgraph,
        condition: &[GraphNode],
        predicate: u64,
        body: &[GraphNode],
        after: &[CUgraphNode],
    ) -> Result<CUgraphNode> {
        let handle = self.add_condition(graph)?;
        let look = self.stream.resources().condition()?.call(SET_CONDITION, 1, &[handle, predicate])?;
        let looked = |graph, nodes: &[GraphNode], after: &[CUgraphNode]| {
            let last = self.add_chain(graph, nodes, after)?;
            self.add_kernel(graph, &look, &last)
        };
        let before = looked(graph, condition, after)?;
        let (node, inside) = self.add_conditional(graph, (handle, CondType::CU_GRAPH_COND_TYPE_WHILE), &[before])?;
        let last = self.add_chain(inside, body, &[])?;
        looked(inside, condition, &last)?;
        Ok(node)
    }

    /// Adds a conditional. For each branch, a kernel sets whether it is selected. When all of these kernels are done,
    /// one conditional node for each branch runs it if it is selected. An empty node joins them.
    fn add_choice(
        &self,
        graph: CUgraph,
        (selector, address): (Selector, u64),
        branches: &[Vec<GraphNode>],
        after: &[CUgraphNode],
    ) -> Result<CUgraphNode> {
        let count = match selector {
            Selector::Predicate => 0,
            Selector::Index => branches.len() as u64,
        };
        let mut handles = Vec::with_capacity(branches.len());
        let mut looked = Vec::with_capacity(branches.len());
        for number in 0..branches.len() {
            let handle = self.add_condition(graph)?;
            let arguments = [handle, address, number as u64, count];
            let look = self.stream.resources().condition()?.call(SET_BRANCH, 1, &arguments)?;
            handles.push(handle);
            looked.push(self.add_kernel(graph, &look, after)?);
        }
        let mut done = Vec::with_capacity(branches.len());
        for (&handle, branch) in handles.iter().zip(branches) {
            let (node, inside) = self.add_conditional(graph, (handle, CondType::CU_GRAPH_COND_TYPE_IF), &looked)?;
            self.add_chain(inside, branch, &[])?;
            done.push(node);
        }
        self.adding("cuGraphAddEmptyNode", &done, |node, before, count| {
            // SAFETY: the graph and the predecessors are alive.
            unsafe { api::cuGraphAddEmptyNode(node, graph, before, count) }
        })
    }

    /// `cuGraphConditionalHandleCreate`: creates a condition for a conditional node, which a kernel sets before the
    /// node reads it.
    fn add_condition(&self, graph: CUgraph) -> Result<u64> {
        if !Driver::get()?.has_loops() {
            return Err(Error::unimplemented(
                "loops and conditionals in a CUDA graph require a driver for CUDA 12.4 or newer",
            ));
        }
        let mut handle = 0;
        self.context().call("cuGraphConditionalHandleCreate", || {
            // SAFETY: the graph is alive; the pointer is to a live integer. The value is set before a node reads it.
            unsafe { api::loops::cuGraphConditionalHandleCreate(&mut handle, graph, self.context().raw(), 0, 0) }
        })?;
        Ok(handle)
    }

    /// `cuGraphAddNode`: adds a conditional node. Returns the node and its body graph, which is still empty.
    fn add_conditional(
        &self,
        graph: CUgraph,
        (handle, type_): (u64, CondType),
        after: &[CUgraphNode],
    ) -> Result<(CUgraphNode, CUgraph)> {
        // SAFETY: all fields may be zero: a zero type denotes a kernel node, and reserved fields must be zero.
        let mut parameters: CUgraphNodeParams = unsafe { std::mem::zeroed() };
        parameters.type_ = CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL;
        parameters.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
            handle,
            type_,
            size: 1,
            phGraph_out: std::ptr::null_mut(),
            ctx: self.context().raw(),
        };
        let node = self.adding("cuGraphAddNode", after, |node, before, count| {
            // SAFETY: the graph and the predecessors are alive; the null pointer states that no edge has data.
            unsafe { api::loops::cuGraphAddNode_v2(node, graph, before, std::ptr::null(), count, &mut parameters) }
        })?;
        // SAFETY: the parameters are those of a conditional node, and the driver has stored the address of its only
        // graph there, which lives as long as the node.
        let inside = unsafe { parameters.__bindgen_anon_1.conditional.phGraph_out.as_ref() };
        let inside =
            *inside.ok_or_else(|| Error::internal("cuGraphAddNode returned no body graph for a conditional node"))?;
        Ok((node, inside))
    }

    /// Adds nodes, and returns those that subsequent work must follow: the nodes without successors, or `after` if
    /// there are no nodes.
    fn add_chain(&self, graph: CUgraph, nodes: &[GraphNode], after: &[CUgraphNode]) -> Result<Vec<CUgraphNode>> {
        let handles = self.add_all(graph, nodes, after)?;
        if handles.is_empty() {
            return Ok(after.to_vec());
        }
        let is_last = |number: &usize| !nodes.iter().any(|node| node.after.contains(number));
        Ok((0..handles.len()).filter(is_last).map(|number| handles[number]).collect())
    }

    /// Makes a driver call that adds a node with the predecessors `after`.
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
