//! CUDA graphs: sequences of launches that the driver receives once and then starts with one call.
//!
//! ```text
//! Recording: kernels, copies, library calls, each with its predecessors      hazards computes the predecessors
//!    │     a capturing stream also makes one: `CudaStream::capture`
//!    └─ GraphSlot::run(recording, stream)   one for each run of thunks of an executable
//!          first time     build: nodes, edges, instantiate
//!          later          known bases: launched, without a recording (GraphSlot::launch)
//!                         others: another instance, up to four; after that, the nodes with other addresses or numbers
//!                         are updated
//! ```
//!
//! [`time`] measures the device time of a recording.
//!
//! A graph is rebuilt only if the driver refuses an update, or the run has another shape. An executable records runs of
//! thunks that do not need the host in between. For short runs, it is cheaper to send the commands one by one.

mod builder;
pub(crate) mod condition;
mod driver;
pub(crate) mod hazards;
mod instances;
pub(crate) mod recording;
mod refusal;
mod template;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use xla_hlo::{Error, Result};

use super::library::Libraries;
use super::stream::CudaStream;
use super::stream::clock::TimeMark;
use driver::Graph;
pub(crate) use instances::GraphBases;
use instances::Instances;
use recording::{GraphNode, NodeKind, Recording};
use refusal::Refusal;

/// Slot of an executable for the graphs of one run of its thunks.
#[derive(Debug, Default)]
pub(crate) struct GraphSlot(Mutex<GraphState>);

#[derive(Debug, Default)]
struct GraphState {
    instances: Instances,
    refusal: Refusal,
    counts: GraphCounts,
}

/// Counters for the runs of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GraphCounts {
    /// Number of launches.
    pub launches: u64,
    /// Number of attempts to build a graph: for a new instance, or after a refused update or a change of shape.
    pub builds: u64,
    /// Number of nodes that were updated in place.
    pub changes: u64,
    /// Number of runs whose commands were sent one by one, because the driver refused the graph.
    pub sent: u64,
}

impl GraphSlot {
    /// Launches the graph of a run with these bases. Returns `false` if there is none; the caller then records the run.
    pub fn launch(&self, bases: &GraphBases, stream: &CudaStream) -> Result<bool> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = state.instances.choose_by_bases(bases, stream);
        let Some(graph) = state.instances.chosen().filter(|_| found) else { return Ok(false) };
        graph.launch(stream)?;
        state.counts.launches += 1;
        Ok(true)
    }

    /// Runs recorded work as a graph on `stream`, or one by one if the driver refuses the graph. All recordings of a
    /// slot are of the same program on the same device. Usually they differ only in addresses and numbers; otherwise
    /// the graph is rebuilt. Recordings with equal bases must be equal.
    pub fn run(
        &self,
        recording: Recording,
        bases: Option<GraphBases>,
        libraries: &Libraries,
        stream: &CudaStream,
    ) -> Result<()> {
        let Recording { nodes, kept } = recording;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.graph_of(&nodes, bases, libraries, stream)? {
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
        // Scratch memory is freed in stream order, after the work.
        drop(kept);
        Ok(())
    }

    /// Returns the counters of the runs so far.
    #[cfg(test)]
    pub fn counts(&self) -> GraphCounts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).counts
    }
}

/// Runs a recording as a graph, once to warm up and `rounds` more times, and returns the device time of each of these
/// runs. [`Error::Unimplemented`] if the driver refuses the graph.
pub(crate) fn time(
    recording: Recording,
    libraries: &Libraries,
    stream: &CudaStream,
    rounds: usize,
) -> Result<Vec<Duration>> {
    let Recording { nodes, kept } = recording;
    let graph = match Graph::build(nodes, libraries, stream) {
        Ok(graph) => graph,
        Err(error) => {
            stream.queue().context().with(|| ())?;
            return Err(Error::unimplemented(format!(
                "the driver cannot build a graph of the runs to be timed: {error}"
            )));
        }
    };
    graph.launch(stream)?;
    // All launches are sent at once, so the device does not wait for the host in between.
    let mut marks = vec![TimeMark::new(stream.queue())?];
    for _ in 0..rounds {
        graph.launch(stream)?;
        marks.push(TimeMark::new(stream.queue())?);
    }
    stream.queue().synchronize()?;
    drop(kept);
    marks.windows(2).map(|pair| pair[1].since(&pair[0])).collect()
}

fn send(nodes: &[GraphNode], libraries: &Libraries, stream: &CudaStream) -> Result<()> {
    nodes.iter().try_for_each(|node| match &node.work {
        NodeKind::Kernel(call) => call.clone().send(stream.queue()),
        NodeKind::Copy { from, to, bytes } => stream.queue().copy(*from, *to, *bytes),
        NodeKind::Library { call, addresses, workspace } => libraries.send(call, addresses, *workspace, stream.queue()),
        NodeKind::While { condition, predicate, body } => loop {
            send(condition, libraries, stream)?;
            let mut byte = [0];
            stream.download(*predicate, &mut byte)?;
            if byte == [0] {
                return Ok(());
            }
            send(body, libraries, stream)?;
        },
        NodeKind::Choose { selector, address, branches } => {
            let mut bytes = [0; 4];
            stream.download(*address, &mut bytes[..selector.byte_size()])?;
            let branch = branches.get(selector.branch(bytes, branches.len()));
            send(branch.ok_or_else(|| Error::internal("a conditional lacks a branch"))?, libraries, stream)
        }
    })
}

impl GraphState {
    /// Returns the graph of these nodes; `None` if the driver refuses it. An error means that the device is lost.
    fn graph_of(
        &mut self,
        nodes: &[GraphNode],
        bases: Option<GraphBases>,
        libraries: &Libraries,
        stream: &CudaStream,
    ) -> Result<Option<&Graph>> {
        match self.instances.choose_by_nodes(nodes, bases.as_ref(), libraries, stream)? {
            Some(changes) => {
                if changes > 0 {
                    tracing::debug!(changes, "a graph is changed");
                }
                self.counts.changes += changes;
            }
            None if self.refusal.is_waiting() => return Ok(None),
            None => {
                self.instances.make_room();
                self.counts.builds += 1;
                match Graph::build(nodes.to_vec(), libraries, stream) {
                    Ok(graph) => {
                        tracing::debug!(nodes = nodes.len(), "a graph is built");
                        self.instances.add(graph, bases);
                    }
                    Err(error) => {
                        stream.queue().context().with(|| ())?;
                        self.refusal.add(&error);
                        return Ok(None);
                    }
                }
                self.refusal = Refusal::default();
            }
        }
        Ok(self.instances.chosen())
    }
}
