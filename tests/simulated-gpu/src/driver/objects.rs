//! Objects that handles of the driver stand for: streams, events, modules, functions, graphs.

use std::collections::VecDeque;
use std::sync::Arc;

use super::handle::Handle;
use super::work::{GraphPlan, Repeats, StreamWork};
use crate::program::Program;

/// A stream.
#[derive(Default)]
pub(super) struct Stream {
    /// Work that is not done yet.
    pub queue: VecDeque<StreamWork>,
    /// Number of commands that are done; those sent are these and the queue.
    pub done: u64,
    /// The graph that work goes to while the stream is captured, with its last node.
    pub capture: Option<(Graph, Option<usize>)>,
}

impl Stream {
    pub fn sent(&self) -> u64 {
        self.done + self.queue.len() as u64
    }
}

/// A point in a stream's work; none before it is recorded.
#[derive(Clone, Copy, Default)]
pub(super) struct Event {
    pub at: Option<(Handle, u64)>,
    /// Whether it keeps the time at which that point is reached.
    pub keeps_time: bool,
    pub time: Option<u64>,
}

/// A module.
pub(super) struct LoadedModule {
    pub program: Arc<Program>,
}

/// A kernel of a module.
#[derive(Clone, Copy)]
pub(super) struct Function {
    pub module: Handle,
    pub kernel: usize,
    /// The most bytes of dynamic shared memory that a launch may ask for.
    pub dynamic_shared: usize,
}

/// A graph that is being built.
#[derive(Default)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    /// Whether it is the body of a loop or conditional.
    pub is_body: bool,
}

pub(super) struct Node {
    pub kind: NodeKind,
    pub before: Vec<usize>,
}

pub(super) enum NodeKind {
    Work(StreamWork),
    /// A loop or conditional: its condition, and the graph of its body.
    Conditional(Repeats, u64, Handle),
}

/// A graph that can be launched.
pub(super) struct Executable {
    pub graph: Handle,
    pub plan: GraphPlan,
}

impl Graph {
    /// Adds a node after others; its number.
    pub fn add(&mut self, work: StreamWork, before: Vec<usize>) -> usize {
        self.nodes.push(Node { kind: NodeKind::Work(work), before });
        self.nodes.len() - 1
    }
}
