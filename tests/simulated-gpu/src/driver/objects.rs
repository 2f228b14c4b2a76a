//! Objects of the driver: streams, events, modules, functions, graphs.

use std::collections::VecDeque;
use std::sync::Arc;

use super::handle::Handle;
use super::work::{GraphPlan, Repeats, StreamWork};
use crate::program::Program;

/// Stream.
#[derive(Default)]
pub(super) struct Stream {
    /// Work that is not executed yet.
    pub queue: VecDeque<StreamWork>,
    /// Number of executed commands; the number of submitted ones includes the queue.
    pub done: u64,
    /// Graph that captures the stream's work, and its last node.
    pub capture: Option<(Graph, Option<usize>)>,
}

impl Stream {
    pub fn sent(&self) -> u64 {
        self.done + self.queue.len() as u64
    }
}

/// Event: a position in a stream's work; `None` before it is recorded.
#[derive(Clone, Copy, Default)]
pub(super) struct Event {
    pub at: Option<(Handle, u64)>,
    /// Whether the event records the time when its position is reached.
    pub keeps_time: bool,
    pub time: Option<u64>,
}

/// Loaded module.
pub(super) struct LoadedModule {
    pub program: Arc<Program>,
}

/// Kernel of a module.
#[derive(Clone, Copy)]
pub(super) struct Function {
    pub module: Handle,
    pub kernel: usize,
    /// Maximum dynamic shared memory of a launch in bytes.
    pub dynamic_shared: usize,
}

/// Graph under construction.
#[derive(Default)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    /// Whether the graph is the body of a conditional node.
    pub is_body: bool,
}

pub(super) struct Node {
    pub kind: NodeKind,
    pub before: Vec<usize>,
}

pub(super) enum NodeKind {
    Work(StreamWork),
    /// Conditional node: how often its body runs, the condition, and the body graph.
    Conditional(Repeats, u64, Handle),
}

/// Executable graph.
pub(super) struct Executable {
    pub graph: Handle,
    pub plan: GraphPlan,
}

impl Graph {
    /// Adds a node after others; returns its index.
    pub fn add(&mut self, work: StreamWork, before: Vec<usize>) -> usize {
        self.nodes.push(Node { kind: NodeKind::Work(work), before });
        self.nodes.len() - 1
    }
}
