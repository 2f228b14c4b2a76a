//! Graph instances of one slot: a few, so that runs with alternating buffers need no updates.

use xla_hlo::Result;

use super::driver::{Graph, GraphChange};
use super::recording::GraphNode;
use crate::cuda::library::Libraries;
use crate::cuda::stream::CudaStream;

/// Maximum number of graphs of one slot. Further ones are rarely used again, and each takes driver memory.
const INSTANCES: usize = 4;

/// Base addresses of a run, which determine all of its addresses: those of its allocations and scratch memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GraphBases(pub Box<[u64]>);

/// Graphs for runs with different addresses, the last chosen one at the end.
#[derive(Debug, Default)]
pub(super) struct Instances(Vec<Instance>);

#[derive(Debug)]
struct Instance {
    /// Bases of its addresses, if they depend on bases alone.
    bases: Option<GraphBases>,
    graph: Graph,
}

impl Instances {
    /// Returns the graph that was chosen or added last.
    pub fn chosen(&self) -> Option<&Graph> {
        self.0.last().map(|instance| &instance.graph)
    }

    /// Chooses the graph with these bases on the stream's device. Returns whether there is one.
    pub fn choose_by_bases(&mut self, bases: &GraphBases, stream: &CudaStream) -> bool {
        let found = self.0.iter().position(|one| one.bases.as_ref() == Some(bases) && one.graph.is_on(stream));
        found.map(|number| self.choose(number)).is_some()
    }

    /// Chooses a graph that has these nodes or can be updated to have them, and returns the number of updated nodes.
    /// With bases, graphs are updated only if the slot is full; before that, a new instance is better.
    pub fn choose_by_nodes(
        &mut self,
        nodes: &[GraphNode],
        bases: Option<&GraphBases>,
        libraries: &Libraries,
        stream: &CudaStream,
    ) -> Result<Option<u64>> {
        let equal = self.0.iter().position(|one| one.graph.is_on(stream) && one.graph.nodes() == nodes);
        let mut found = equal.map(|number| (number, 0));
        if found.is_none() && (bases.is_none() || self.0.len() >= INSTANCES) {
            for (number, one) in self.0.iter_mut().enumerate() {
                match one.graph.change(nodes, libraries, stream)? {
                    GraphChange::Done(changes) => found = Some((number, changes)),
                    GraphChange::Unlike => continue,
                    GraphChange::Refused => _ = self.0.remove(number),
                }
                break;
            }
        }
        let Some((number, changes)) = found else { return Ok(None) };
        self.0[number].bases = bases.cloned();
        self.choose(number);
        Ok(Some(changes))
    }

    /// Makes room for another graph: drops the least recently chosen one, which frees its memory.
    pub fn make_room(&mut self) {
        if self.0.len() >= INSTANCES {
            self.0.remove(0);
        }
    }

    /// Adds a graph and chooses it.
    pub fn add(&mut self, graph: Graph, bases: Option<GraphBases>) {
        self.0.push(Instance { bases, graph });
    }

    /// Moves an instance to the end.
    fn choose(&mut self, number: usize) {
        self.0[number..].rotate_left(1);
    }
}
