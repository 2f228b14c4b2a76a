//! The graphs of one slot: a few, so that runs whose buffers alternate change nothing.

use xla_hlo::Result;

use super::driver::{Graph, GraphChange};
use super::recording::GraphNode;
use crate::cuda::library::Libraries;
use crate::cuda::stream::CudaStream;

/// Graphs of one slot. More would seldom be found again, and each takes memory of the driver.
const INSTANCES: usize = 4;

/// The addresses that all of a run's follow from: where its allocations begin, and its scratch memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GraphBases(pub Box<[u64]>);

/// Graphs for runs with different addresses, the one that was chosen last at the end.
#[derive(Debug, Default)]
pub(super) struct Instances(Vec<Instance>);

#[derive(Debug)]
struct Instance {
    /// The bases of its addresses, if they follow from any.
    bases: Option<GraphBases>,
    graph: Graph,
}

impl Instances {
    /// The graph that was chosen or added last.
    pub fn chosen(&self) -> Option<&Graph> {
        self.0.last().map(|instance| &instance.graph)
    }

    /// Chooses the graph of those bases on the stream's device, if there is one.
    pub fn choose_by_bases(&mut self, bases: &GraphBases, stream: &CudaStream) -> bool {
        let found = self.0.iter().position(|one| one.bases.as_ref() == Some(bases) && one.graph.is_on(stream));
        found.map(|number| self.choose(number)).is_some()
    }

    /// Chooses a graph that has those nodes, or that can be changed so that it has, and says how many were changed.
    /// With bases, a graph of its own is worth more than a change, as long as there are few.
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

    /// Makes room for another one: the graph that was not chosen for longest goes, and its memory with it.
    pub fn make_room(&mut self) {
        if self.0.len() >= INSTANCES {
            self.0.remove(0);
        }
    }

    /// Adds a graph, which is then chosen.
    pub fn add(&mut self, graph: Graph, bases: Option<GraphBases>) {
        self.0.push(Instance { bases, graph });
    }

    /// Moves an instance to the end.
    fn choose(&mut self, number: usize) {
        self.0[number..].rotate_left(1);
    }
}
