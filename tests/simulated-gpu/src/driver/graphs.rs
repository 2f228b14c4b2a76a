//! Graphs: construction from nodes, instantiation, update, launch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::handle::{DriverResult, Handle, misuse};
use super::objects::{Executable, Graph, Node, NodeKind};
use super::work::{GraphPlan, Repeats, StreamWork};
use super::{Driver, Status};

/// Storage of the handle of a conditional node's body graph; the program gets its address.
pub(crate) type BodyPlace = Arc<[AtomicU64; 1]>;

impl Driver {
    pub fn create_graph(&mut self) -> Handle {
        self.keep_graph(Graph::default())
    }

    pub(super) fn keep_graph(&mut self, graph: Graph) -> Handle {
        let handle = self.fresh();
        self.graphs.insert(handle, graph);
        handle
    }

    pub fn destroy_graph(&mut self, handle: Handle) -> DriverResult {
        match self.graphs.get(&handle) {
            Some(graph) if !graph.is_body => {}
            Some(_) => return misuse("cuGraphDestroy of a conditional node's body", Status::INVALID_VALUE),
            None => return misuse("cuGraphDestroy of a graph that does not exist", Status::INVALID_VALUE),
        }
        self.remove_graph(handle);
        Ok(())
    }

    /// Removes a graph and the body graphs of its conditional nodes.
    fn remove_graph(&mut self, handle: Handle) {
        let Some(graph) = self.graphs.remove(&handle) else { return };
        self.nodes.retain(|_, (owner, _)| *owner != handle);
        for node in graph.nodes {
            if let NodeKind::Conditional(_, condition, body) = node.kind {
                self.conditions.remove(&condition);
                self.remove_graph(body);
            }
        }
    }

    fn graph(&mut self, handle: Handle) -> DriverResult<&mut Graph> {
        match self.graphs.get_mut(&handle) {
            Some(graph) => Ok(graph),
            None => misuse("a graph is used that does not exist, or not any more", Status::INVALID_VALUE),
        }
    }

    fn add_node(&mut self, graph: Handle, kind: NodeKind, before: &[Handle]) -> DriverResult<Handle> {
        self.graph(graph)?;
        let mut numbers = Vec::with_capacity(before.len());
        for node in before {
            match self.nodes.get(node) {
                Some((owner, number)) if *owner == graph && !numbers.contains(number) => numbers.push(*number),
                _ => {
                    return misuse(
                        "a node depends on one that is named twice, or on one of another graph",
                        Status::INVALID_VALUE,
                    );
                }
            }
        }
        let found = self.graph(graph)?;
        found.nodes.push(Node { kind, before: numbers });
        let number = found.nodes.len() - 1;
        let handle = self.fresh();
        self.nodes.insert(handle, (graph, number));
        Ok(handle)
    }

    /// Adds a node that depends on other nodes.
    pub fn add_work(&mut self, graph: Handle, work: StreamWork, before: &[Handle]) -> DriverResult<Handle> {
        self.check_node_work(&work)?;
        self.add_node(graph, NodeKind::Work(work), before)
    }

    /// Checks the ranges of a copy node, which must be device memory when the node is added.
    fn check_node_work(&self, work: &StreamWork) -> DriverResult {
        if let StreamWork::Copy { from, to, bytes } = work {
            if *bytes == 0 {
                return misuse("a node of a graph copies nothing", Status::INVALID_VALUE);
            }
            self.check_range("a node of a graph", *from, *bytes)?;
            self.check_range("a node of a graph", *to, *bytes)?;
        }
        Ok(())
    }

    /// Adds a copy of another graph as a child node.
    pub fn add_child(&mut self, graph: Handle, child: Handle, before: &[Handle]) -> DriverResult<Handle> {
        let plan = self.plan(child)?;
        if !plan.conditions.is_empty() {
            return misuse("a graph with conditional nodes cannot be a child", Status::NOT_SUPPORTED);
        }
        self.add_node(graph, NodeKind::Work(StreamWork::Child(plan.into())), before)
    }

    /// Creates a condition for one node of a graph; `value` is its initial value in each launch, if there is one.
    pub fn create_condition(&mut self, graph: Handle, value: Option<u32>) -> DriverResult<u64> {
        self.graph(graph)?;
        let handle = self.fresh();
        self.conditions.insert(handle, (graph, value));
        Ok(handle)
    }

    /// Adds a conditional node, whose body graph is empty. Returns the node and the storage of the body's handle.
    pub fn add_conditional(
        &mut self,
        graph: Handle,
        repeats: Repeats,
        condition: u64,
        before: &[Handle],
    ) -> DriverResult<(Handle, BodyPlace)> {
        match self.conditions.get(&condition) {
            Some((owner, _)) if *owner == graph => {}
            _ => return misuse("the condition of a node was not made for its graph", Status::INVALID_VALUE),
        }
        let is_taken = |node: &Node| matches!(node.kind, NodeKind::Conditional(_, other, _) if other == condition);
        if self.graph(graph)?.nodes.iter().any(is_taken) {
            return misuse("two nodes have one condition", Status::INVALID_VALUE);
        }
        let body = self.keep_graph(Graph { nodes: Vec::new(), is_body: true });
        let node = self.add_node(graph, NodeKind::Conditional(repeats, condition, body), before)?;
        Ok((node, Arc::new([AtomicU64::new(body)])))
    }

    /// Returns an executable copy of the graph's current state.
    fn plan(&mut self, handle: Handle) -> DriverResult<GraphPlan> {
        let graph = self.graph(handle)?;
        let mut plan = GraphPlan::default();
        let mut bodies = Vec::new();
        for node in &graph.nodes {
            let work = match &node.kind {
                NodeKind::Work(work) => work.clone(),
                NodeKind::Conditional(repeats, condition, body) => {
                    bodies.push((plan.nodes.len(), *repeats, *condition, *body));
                    StreamWork::Nothing
                }
            };
            plan.nodes.push((work, node.before.clone()));
        }
        for (number, repeats, condition, body) in bodies {
            let mut body = self.plan(body)?;
            let value = self.conditions.get(&condition).and_then(|(_, value)| *value);
            plan.conditions.push((condition, value));
            plan.conditions.append(&mut body.conditions);
            plan.nodes[number].0 = StreamWork::Conditional { repeats, condition, body: body.into() };
        }
        Ok(plan)
    }

    pub fn instantiate(&mut self, graph: Handle) -> DriverResult<Handle> {
        if self.graph(graph)?.is_body {
            return misuse("a conditional node's body is instantiated alone", Status::INVALID_VALUE);
        }
        let plan = self.plan(graph)?;
        let handle = self.fresh();
        self.executables.insert(handle, Executable { graph, plan });
        Ok(handle)
    }

    fn executable(&mut self, handle: Handle) -> DriverResult<&mut Executable> {
        match self.executables.get_mut(&handle) {
            Some(executable) => Ok(executable),
            None => {
                misuse("a graph is launched or changed that does not exist, or not any more", Status::INVALID_HANDLE)
            }
        }
    }

    /// Destroys an executable graph; launches that are queued still run.
    pub fn destroy_executable(&mut self, handle: Handle) -> DriverResult {
        self.executable(handle)?;
        self.executables.remove(&handle);
        Ok(())
    }

    pub fn launch_graph(&mut self, handle: Handle, stream: Handle) -> DriverResult {
        let plan = self.executable(handle)?.plan.clone();
        self.send(stream, StreamWork::Graph(plan.into()))
    }

    /// Replaces the work of a node of an executable graph by work of the same kind.
    pub fn change_node(&mut self, handle: Handle, node: Handle, work: StreamWork) -> DriverResult {
        self.check_node_work(&work)?;
        let Some((graph, number)) = self.nodes.get(&node).copied() else {
            return misuse("a node is changed that does not exist", Status::INVALID_VALUE);
        };
        let executable = self.executable(handle)?;
        if executable.graph != graph {
            return misuse("a node is changed in the instance of another graph", Status::INVALID_VALUE);
        }
        let Some((old, _)) = executable.plan.nodes.get_mut(number) else { return Err(Status::INVALID_VALUE) };
        match (&*old, &work) {
            (StreamWork::Kernel(_), StreamWork::Kernel(_)) => {}
            (StreamWork::Copy { bytes, .. }, StreamWork::Copy { bytes: other, .. }) if bytes == other => {}
            (StreamWork::Child(a), StreamWork::Child(b)) if a.nodes.len() == b.nodes.len() => {}
            _ => return Err(Status::GRAPH_EXEC_UPDATE_FAILURE),
        }
        *old = work;
        Ok(())
    }

    /// Replaces the child graph of a node of an executable graph.
    pub fn change_child(&mut self, handle: Handle, node: Handle, child: Handle) -> DriverResult {
        let plan = self.plan(child)?;
        self.change_node(handle, node, StreamWork::Child(plan.into()))
    }
}

/// Returns the address of a body's handle.
pub(crate) fn address_of(place: &BodyPlace) -> *mut u64 {
    debug_assert_ne!(place[0].load(Ordering::Relaxed), 0, "a body has a handle");
    place[0].as_ptr()
}
