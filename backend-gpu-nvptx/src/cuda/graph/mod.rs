//! CUDA graphs: a run of launches that the driver is told once, and starts with one call from then on.
//!
//! ```text
//! Recording: kernels, copies, library calls, each behind some before it      hazards finds out behind which
//!    │     a stream that takes notes makes one as well: `CudaStream::capture`
//!    └─ GraphSlot::run(recording, stream)   one for each run of thunks of an executable
//!          first time     build: nodes, edges, instantiate
//!          later          diff: only nodes whose addresses or numbers changed are told to the driver
//! ```
//!
//! A graph is built again only where the driver refuses a change, or the run has another shape. An executable records a
//! run of thunks that need no host in between; short runs are cheaper to send one by one ([`Recording::send`]).

mod driver;
pub(crate) mod hazards;

use std::sync::{Mutex, PoisonError};

use xla_hlo::Result;

use super::code::KernelLaunch;
use super::executor::CudaMemory;
use super::library::{ChosenCall, Libraries};
use super::stream::CudaStream;
use crate::device::{CodeObject, KernelFunction, ModuleImage};
use driver::Graph;

/// Work that is known and not sent yet.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    nodes: Vec<GraphNode>,
    /// Scratch memory, until the work is sent.
    kept: Vec<CudaMemory>,
}

/// A piece of work, and the earlier ones that it comes behind.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GraphNode {
    work: NodeKind,
    after: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NodeKind {
    Kernel(KernelLaunch),
    Copy { from: u64, to: u64, bytes: usize },
    Library { call: ChosenCall, addresses: Vec<u64>, workspace: u64 },
    While { condition: Vec<GraphNode>, predicate: u64, body: Vec<GraphNode> },
}

impl Recording {
    /// Adds a launch behind the nodes numbered `after`, all of which are earlier. Gives its number.
    pub fn kernel(&mut self, call: KernelLaunch, after: &[usize]) -> usize {
        self.push(NodeKind::Kernel(call), after)
    }

    /// Adds a copy of device memory; the ranges do not overlap.
    pub fn copy(&mut self, from: u64, to: u64, bytes: usize, after: &[usize]) -> usize {
        self.push(NodeKind::Copy { from, to, bytes }, after)
    }

    /// Adds a call of a library, with the address of its workspace.
    pub fn library(&mut self, call: &ChosenCall, addresses: &[u64], workspace: u64, after: &[usize]) -> usize {
        self.push(NodeKind::Library { call: call.clone(), addresses: addresses.to_vec(), workspace }, after)
    }

    /// Adds a loop that the device runs by itself: `condition`, then, while the byte at `predicate` is not 0, `body`
    /// and `condition` again. Only where [`super::driver::Driver::has_loops`].
    pub fn repeat(&mut self, condition: Recording, predicate: u64, body: Recording, after: &[usize]) -> usize {
        self.kept.extend(condition.kept);
        self.kept.extend(body.kept);
        self.push(NodeKind::While { condition: condition.nodes, predicate, body: body.nodes }, after)
    }

    /// Keeps memory until the work is sent; it is given back behind that.
    pub fn keep(&mut self, memory: CudaMemory) {
        self.kept.push(memory);
    }

    fn push(&mut self, work: NodeKind, after: &[usize]) -> usize {
        let number = self.nodes.len();
        let after = after.iter().copied().filter(|&earlier| earlier < number).collect();
        self.nodes.push(GraphNode { work, after });
        number
    }
}

/// Where an executable keeps the graph of one run of its thunks.
#[derive(Debug, Default)]
pub(crate) struct GraphSlot(Mutex<GraphState>);

#[derive(Debug, Default)]
struct GraphState {
    graph: Option<Graph>,
    /// The driver would not make a graph of it; it is not asked again.
    is_refused: bool,
    counts: GraphCounts,
}

/// What became of the runs of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GraphCounts {
    /// How often it was started.
    pub launches: u64,
    /// How often it was built; more than once where the driver refused a change.
    pub builds: u64,
    /// How many nodes were changed in place.
    pub changes: u64,
    /// How often the work was sent one by one, since the driver makes no graph of it.
    pub sent: u64,
}

impl GraphSlot {
    /// Runs recorded work as a graph on `stream`; one by one if the driver refuses it. Recordings of one slot are of
    /// the same program on the same device: they differ in addresses and numbers alone, or the graph is built again.
    pub fn run(&self, recording: Recording, libraries: &Libraries, stream: &CudaStream) -> Result<()> {
        let Recording { nodes, kept } = recording;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let graph = if state.is_refused { None } else { state.graph_of(&nodes, libraries, stream)? };
        match graph {
            Some(graph) => {
                graph.launch(stream)?;
                state.counts.launches += 1;
            }
            None => {
                state.counts.sent += 1;
                drop(state);
                send(&nodes, libraries, stream)?;
            }
        }
        // Given back behind the work.
        drop(kept);
        Ok(())
    }

    /// What became of the runs so far.
    #[cfg(test)]
    pub fn counts(&self) -> GraphCounts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).counts
    }
}

fn send(nodes: &[GraphNode], libraries: &Libraries, stream: &CudaStream) -> Result<()> {
    nodes.iter().try_for_each(|node| match &node.work {
        NodeKind::Kernel(call) => call.clone().send(stream.queue()),
        NodeKind::Copy { from, to, bytes } => stream.queue().copy(*from, *to, *bytes),
        NodeKind::Library { call, addresses, workspace } => libraries.send(call, addresses, *workspace, stream.queue()),
        NodeKind::While { condition, predicate, body } => loop {
            send(condition, libraries, stream)?;
            if stream.read_byte(*predicate)? == 0 {
                return Ok(());
            }
            send(body, libraries, stream)?;
        },
    })
}

/// The kernel that looks at a loop's predicate: its parameters are the loop's handle and the predicate's address. The
/// function that it calls is the driver's own.
pub(super) fn condition_image() -> ModuleImage {
    let function = KernelFunction {
        name: "set_condition".to_string(),
        object: 0,
        threads: 1,
        shared_bytes: 0,
        together: false,
        parameters: 2,
    };
    ModuleImage {
        functions: vec![function],
        objects: vec![CodeObject::Ptx(include_str!("set_condition.ptx").to_string())],
    }
}

impl GraphState {
    /// The graph of these nodes; `None` if the driver refuses it. The error is that the device is lost.
    fn graph_of(&mut self, nodes: &[GraphNode], libraries: &Libraries, stream: &CudaStream) -> Result<Option<&Graph>> {
        let changes = match &mut self.graph {
            Some(graph) => graph.change(nodes, libraries, stream)?,
            None => None,
        };
        match changes {
            Some(changes) => self.counts.changes += changes,
            None => {
                // The old one goes first: its memory is the driver's.
                self.graph = None;
                match Graph::build(nodes.to_vec(), libraries, stream) {
                    Ok(graph) => self.graph = Some(graph),
                    Err(error) => {
                        stream.queue().context().with(|| ())?;
                        tracing::warn!(%error, "the driver makes no graph of a part of the program; its work is sent one by one");
                        self.is_refused = true;
                    }
                }
                self.counts.builds += 1;
            }
        }
        Ok(self.graph.as_ref())
    }
}

/// Which nodes must be told to the driver anew; `None` if more changed than addresses and numbers.
fn difference(old: &[GraphNode], new: &[GraphNode]) -> Option<Vec<usize>> {
    let pairs = || old.iter().zip(new);
    let is_alike = old.len() == new.len() && pairs().all(|(old, new)| is_alike(old, new));
    is_alike.then(|| pairs().enumerate().filter(|(_, (old, new))| old != new).map(|(number, _)| number).collect())
}

/// Whether two nodes differ in addresses and numbers alone.
fn is_alike(old: &GraphNode, new: &GraphNode) -> bool {
    old.after == new.after
        && match (&old.work, &new.work) {
            (NodeKind::Kernel(old), NodeKind::Kernel(new)) => {
                let shape = |call: &KernelLaunch| {
                    (call.function, call.blocks, call.threads, call.shared_bytes, call.arguments.len())
                };
                shape(old) == shape(new)
            }
            (NodeKind::Copy { bytes: old, .. }, NodeKind::Copy { bytes: new, .. }) => old == new,
            (NodeKind::Library { call: old, .. }, NodeKind::Library { call: new, .. }) => old == new,
            // Nodes inside of loops are not changed in place.
            (NodeKind::While { .. }, NodeKind::While { .. }) => old == new,
            (NodeKind::Kernel(_) | NodeKind::Copy { .. } | NodeKind::Library { .. } | NodeKind::While { .. }, _) => {
                false
            }
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, blocks: u32, arguments: &[u64]) -> KernelLaunch {
        let function = std::ptr::without_provenance_mut(name.len());
        KernelLaunch {
            name: name.into(),
            function,
            blocks,
            threads: 128,
            shared_bytes: 0,
            arguments: arguments.to_vec(),
        }
    }

    fn recording(address: u64, blocks: u32) -> Recording {
        let mut recording = Recording::default();
        let first = recording.kernel(kernel("a", 1, &[address, 7]), &[]);
        let second = recording.copy(address, 4096, 64, &[first]);
        recording.kernel(kernel("bc", blocks, &[4096]), &[first, second, 99]);
        recording
    }

    #[test]
    fn only_what_changed_is_told() {
        let old = recording(256, 2).nodes;
        assert_eq!(old[2].after, [0, 1], "nodes come behind earlier ones alone");
        assert_eq!(difference(&old, &recording(256, 2).nodes), Some(vec![]));
        assert_eq!(difference(&old, &recording(512, 2).nodes), Some(vec![0, 1]));
    }

    #[test]
    fn another_shape_is_another_graph() {
        let old = recording(256, 2).nodes;
        assert_eq!(difference(&old, &recording(256, 3).nodes), None);
        assert_eq!(difference(&old, &old[..2]), None);
        let mut edges = recording(256, 2).nodes;
        edges[2].after.pop();
        assert_eq!(difference(&old, &edges), None);
        let mut sizes = recording(256, 2).nodes;
        sizes[1].work = NodeKind::Copy { from: 256, to: 4096, bytes: 128 };
        assert_eq!(difference(&old, &sizes), None);
    }
}
