//! CUDA graphs: a sequence of launches that the driver is told once and then starts with one call.
//!
//! ```text
//! Recording: kernels, copies, library calls, each after some before it       hazards finds out after which
//!    │     a capturing stream makes one as well: `CudaStream::capture`
//!    └─ GraphSlot::run(recording, stream)   one for each run of thunks of an executable
//!          first time     build: nodes, edges, instantiate
//!          later          diff: only nodes whose addresses or numbers changed are told to the driver
//! ```
//!
//! Runs are timed as a graph of many of them ([`time`]).
//!
//! A graph is built again only where the driver refuses a change, or the run has another shape. An executable records a
//! run of thunks that need no host in between; short runs are cheaper to send one by one ([`Recording::send`]).

pub(crate) mod condition;
mod driver;
pub(crate) mod hazards;
pub(crate) mod recording;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use xla_hlo::{Error, Result};

use super::library::Libraries;
use super::stream::CudaStream;
use super::stream::clock::TimeMark;
use driver::Graph;
use recording::{GraphNode, NodeKind, Recording};

/// Slot of an executable for the graph of one run of its thunks.
#[derive(Debug, Default)]
pub(crate) struct GraphSlot(Mutex<GraphState>);

#[derive(Debug, Default)]
struct GraphState {
    graph: Option<Graph>,
    /// The driver refused to make a graph of it; it is not asked again.
    is_refused: bool,
    counts: GraphCounts,
}

/// Counts of the runs of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GraphCounts {
    /// Launches.
    pub launches: u64,
    /// Builds; more than one where the driver refused a change.
    pub builds: u64,
    /// Nodes that were updated in place.
    pub changes: u64,
    /// Runs whose work was sent one by one, since the driver makes no graph of it.
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
        // Freed after the work.
        drop(kept);
        Ok(())
    }

    /// Runs a loop of the device: the capture of `condition`, then, while the byte at `predicate` is not 0, those of
    /// `body` and `condition` again. Not used if `stream` is capturing itself: the loop is then a part of its
    /// recording.
    pub fn run_loop(
        &self,
        condition: &CudaStream,
        predicate: u64,
        body: &CudaStream,
        libraries: &Libraries,
        stream: &CudaStream,
    ) -> Result<()> {
        let (condition, body) = (condition.end_capture(), body.end_capture());
        let Some((condition, body)) = stream.capture_loop(condition, predicate, body) else { return Ok(()) };
        let mut recording = Recording::default();
        recording.repeat(condition, predicate, body, &[]);
        self.run(recording, libraries, stream)
    }

    /// Counts of the runs so far.
    #[cfg(test)]
    pub fn counts(&self) -> GraphCounts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).counts
    }
}

/// Runs a recording `rounds` times as a graph, after once to warm up, and returns the device's time of each.
/// [`Error::Unimplemented`] if the driver makes no graph of it.
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
            return Err(Error::unimplemented(format!("the driver makes no graph of its runs: {error}")));
        }
    };
    graph.launch(stream)?;
    // All are sent at once: the device goes from one to the next without the host.
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
            if stream.read_byte(*predicate)? == 0 {
                return Ok(());
            }
            send(body, libraries, stream)?;
        },
    })
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
