//! CUDA graphs: a run of launches that the driver is told once, and starts with one call from then on.
//!
//! ```text
//! Recording: kernels, copies, library calls, each behind some before it      hazards finds out behind which
//!    └─ GraphSlot::run(recording, stream)   one for each run of thunks of an executable
//!          first time     build: nodes, edges, instantiate
//!          later          diff: only nodes whose addresses or numbers changed are told to the driver
//! ```
//!
//! A graph is built again only where the driver refuses a change, or the run has another shape. An executable records a run of
//! thunks that need no host in between; short runs are cheaper to send one by one ([`Recording::send`]).

mod driver;
pub(crate) mod hazards;

use std::sync::{Mutex, PoisonError};

use xla_hlo::Result;

use super::code::Call;
use super::executor::{CudaMemory, scratch};
use super::library::{Libraries, LibraryCall};
use super::stream::CudaStream;
use driver::Graph;

/// Fewer launches than this are as fast one by one.
const WORTH_A_GRAPH: usize = 4;

/// Work that is known and not sent yet.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    nodes: Vec<Node>,
    /// Scratch memory, until the work is sent.
    kept: Vec<CudaMemory>,
}

/// A piece of work, and the earlier ones that it comes behind.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    work: Work,
    after: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Work {
    Kernel(Call),
    Copy { from: u64, to: u64, bytes: usize },
    Library { call: LibraryCall, addresses: Vec<u64>, workspace: u64 },
}

impl Recording {
    /// Adds a launch behind the nodes numbered `after`, all of which are earlier. Gives its number.
    pub fn kernel(&mut self, call: Call, after: &[usize]) -> usize {
        self.push(Work::Kernel(call), after)
    }

    /// Adds a copy of device memory; the ranges do not overlap, and it is not empty.
    pub fn copy(&mut self, from: u64, to: u64, bytes: usize, after: &[usize]) -> usize {
        self.push(Work::Copy { from, to, bytes }, after)
    }

    /// Adds a call of a library, with memory for itself that `stream` will use.
    pub fn library(
        &mut self,
        libraries: &Libraries,
        call: &LibraryCall,
        addresses: &[u64],
        stream: &CudaStream,
        after: &[usize],
    ) -> Result<usize> {
        let bytes = libraries.workspace(call, addresses)?;
        let memory = scratch(stream, bytes)?;
        let workspace = memory.address_on(stream, 0, bytes)?;
        self.keep(memory);
        Ok(self.push(Work::Library { call: call.clone(), addresses: addresses.to_vec(), workspace }, after))
    }

    /// Keeps memory until the work is sent; it is given back behind that.
    pub fn keep(&mut self, memory: CudaMemory) {
        self.kept.push(memory);
    }

    /// How many launches it has.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it is long enough for a graph to be faster.
    pub fn is_worth_a_graph(&self) -> bool {
        self.len() >= WORTH_A_GRAPH
    }

    /// Sends the work one by one, in the order in which it was recorded.
    pub fn send(self, libraries: &Libraries, stream: &CudaStream) -> Result<()> {
        for node in self.nodes {
            match node.work {
                Work::Kernel(call) => call.send(stream.queue())?,
                Work::Copy { from, to, bytes } => stream.queue().copy(from, to, bytes)?,
                Work::Library { call, addresses, workspace } => {
                    libraries.send(&call, &addresses, workspace, stream.queue())?;
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, work: Work, after: &[usize]) -> usize {
        let number = self.nodes.len();
        let after = after.iter().copied().filter(|&earlier| earlier < number).collect();
        self.nodes.push(Node { work, after });
        number
    }
}

/// Where an executable keeps the graph of one run of its thunks.
#[derive(Debug, Default)]
pub(crate) struct GraphSlot(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    graph: Option<Graph>,
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
}

impl GraphSlot {
    /// Runs recorded work as a graph on `stream`. Recordings of one slot are of the same program on the same device: they differ in
    /// addresses and numbers alone, or the graph is built again.
    pub fn run(&self, recording: Recording, libraries: &Libraries, stream: &CudaStream) -> Result<()> {
        let Recording { nodes, kept } = recording;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = match &mut state.graph {
            Some(graph) => graph.change(&nodes, libraries, stream)?,
            None => None,
        };
        match changed {
            Some(changes) => state.counts.changes += changes,
            None => {
                // The old one goes first: its memory is the driver's.
                state.graph = None;
                state.graph = Some(Graph::build(nodes, libraries, stream)?);
                state.counts.builds += 1;
            }
        }
        if let Some(graph) = &state.graph {
            graph.launch(stream)?;
        }
        state.counts.launches += 1;
        drop(kept);
        Ok(())
    }

    /// What became of the runs so far.
    pub fn counts(&self) -> GraphCounts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).counts
    }
}

/// Which nodes must be told to the driver anew; `None` if more changed than addresses and numbers.
fn difference(old: &[Node], new: &[Node]) -> Option<Vec<usize>> {
    let pairs = || old.iter().zip(new);
    let is_alike = old.len() == new.len() && pairs().all(|(old, new)| is_alike(old, new));
    is_alike.then(|| pairs().enumerate().filter(|(_, (old, new))| old != new).map(|(number, _)| number).collect())
}

/// Whether two nodes differ in addresses and numbers alone.
fn is_alike(old: &Node, new: &Node) -> bool {
    old.after == new.after
        && match (&old.work, &new.work) {
            (Work::Kernel(old), Work::Kernel(new)) => {
                let shape =
                    |call: &Call| (call.function, call.blocks, call.threads, call.shared_bytes, call.words.len());
                shape(old) == shape(new)
            }
            (Work::Copy { bytes: old, .. }, Work::Copy { bytes: new, .. }) => old == new,
            (Work::Library { call: old, .. }, Work::Library { call: new, .. }) => old == new,
            (Work::Kernel(_) | Work::Copy { .. } | Work::Library { .. }, _) => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, blocks: u32, words: &[u64]) -> Call {
        let function = std::ptr::without_provenance_mut(name.len());
        Call { name: name.into(), function, blocks, threads: 128, shared_bytes: 0, words: words.to_vec() }
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
        sizes[1].work = Work::Copy { from: 256, to: 4096, bytes: 128 };
        assert_eq!(difference(&old, &sizes), None);
    }

    #[test]
    fn short_runs_are_not_worth_it() {
        assert!(!recording(256, 2).is_worth_a_graph());
    }
}
