//! Topological order of a computation, maintained while kernels are merged, so that searches for paths stay short.
//!
//! Uses the algorithm of D. J. Pearce and P. H. J. Kelly ("A Dynamic Topological Sort Algorithm for Directed Acyclic
//! Graphs", 2006): a merge only moves instructions between the two in the order that depend on one of them.

use std::collections::HashSet;

use xla_hlo::entity::SecondaryMap;
use xla_hlo::{Computation, InstrId, Op};

use crate::rewrite::graph::is_free;

/// Position of each instruction, after its operands and control predecessors. Elements of a tuple have the position of
/// the tuple.
pub struct TopologicalOrder {
    /// Position of each instruction that is not an element of a tuple.
    pub places: SecondaryMap<InstrId, usize>,
}

impl TopologicalOrder {
    /// Computes the order of a computation.
    pub fn new(graph: &Computation) -> TopologicalOrder {
        let mut places = SecondaryMap::default();
        graph.post_order().into_iter().enumerate().for_each(|(place, id)| places[id] = place);
        TopologicalOrder { places }
    }

    /// Whether `to` depends on `from`, directly or through other instructions.
    pub fn reaches(&self, graph: &Computation, from: InstrId, to: InstrId) -> bool {
        successors(graph, from).contains(&to) || self.reaches_around(graph, from, to)
    }

    /// Returns the dependencies and the dependents of `id` between the first and the last of `others`, by one search
    /// for all of them.
    pub fn related(&self, graph: &Computation, id: InstrId, others: &[InstrId]) -> HashSet<InstrId> {
        let places = || others.iter().map(|&other| self.places[other]);
        let (Some(low), Some(high)) = (places().min(), places().max()) else { return HashSet::new() };
        let needed = |id: InstrId| self.places[id] >= low;
        let dependent = |id: InstrId| self.places[id] <= high;
        let mut found = visit(predecessors(graph, id), needed, |id| predecessors(graph, id));
        found.extend(visit(successors(graph, id), dependent, |id| successors(graph, id)));
        found
    }

    /// Whether `to` depends on `from` through another instruction.
    pub fn reaches_around(&self, graph: &Computation, from: InstrId, to: InstrId) -> bool {
        let last = self.places[to];
        let mut start = successors(graph, from);
        start.retain(|&next| next != to);
        visit(start, |id| self.places[id] <= last, |id| successors(graph, id)).contains(&to)
    }

    /// Prepares for the replacement of two instructions by one. There must be no path between them through other
    /// instructions. Returns the position of the new instruction, with the dependencies of both before it and the
    /// dependents of both after it. Call this before the graph is edited, and [`TopologicalOrder::put`] afterwards.
    pub fn meet(&mut self, graph: &Computation, a: InstrId, b: InstrId) -> usize {
        let (first, last) = if self.places[a] <= self.places[b] { (a, b) } else { (b, a) };
        let (low, high) = (self.places[first], self.places[last]);
        let between = |id: InstrId| (low..=high).contains(&self.places[id]) && id != first && id != last;
        let behind = visit(successors(graph, first), between, |id| successors(graph, id));
        let before = visit(predecessors(graph, last), between, |id| predecessors(graph, id));
        let sorted = |set: HashSet<InstrId>| {
            let mut list: Vec<InstrId> = set.into_iter().collect();
            list.sort_by_key(|&id| self.places[id]);
            list
        };
        let (before, behind) = (sorted(before), sorted(behind));
        let mut free: Vec<usize> = before.iter().chain(&behind).map(|&id| self.places[id]).chain([low, high]).collect();
        free.sort_unstable();
        let own = free[before.len()];
        // One position is left over, since two instructions become one.
        let places = free[..before.len()].iter().chain(&free[before.len() + 2..]);
        for (&id, &place) in before.iter().chain(&behind).zip(places) {
            self.places[id] = place;
        }
        own
    }

    /// Assigns a new instruction the position that [`TopologicalOrder::meet`] returned.
    pub fn put(&mut self, new: InstrId, place: usize) {
        self.places[new] = place;
    }
}

/// Whether an instruction shares the position of its operand.
pub fn is_element(graph: &Computation, id: InstrId) -> bool {
    matches!(graph[id].op(), Op::GetTupleElement(_)) && is_free(&graph[id])
}

/// Returns the successors of `id`: the users of it or of its elements.
fn successors(graph: &Computation, id: InstrId) -> Vec<InstrId> {
    let next = |id: InstrId| graph[id].users().iter().chain(graph[id].control_successors()).copied();
    let mut found: Vec<InstrId> = next(id).collect();
    while let Some(at) = found.iter().position(|&user| is_element(graph, user)) {
        let element = found.swap_remove(at);
        found.extend(next(element));
    }
    found
}

/// Returns the predecessors of `id`: tuples in place of their elements.
pub fn predecessors(graph: &Computation, id: InstrId) -> Vec<InstrId> {
    let operands = graph[id].operands().iter().chain(graph[id].control_predecessors());
    let whole = |mut id: InstrId| {
        while is_element(graph, id) {
            id = graph[id].operand(0);
        }
        id
    };
    operands.map(|&operand| whole(operand)).collect()
}

/// Returns all instructions that are reachable from `start` within `inside`.
fn visit(
    start: Vec<InstrId>,
    inside: impl Fn(InstrId) -> bool,
    next: impl Fn(InstrId) -> Vec<InstrId>,
) -> HashSet<InstrId> {
    let mut seen: HashSet<InstrId> = start.into_iter().filter(|&id| inside(id)).collect();
    let mut stack: Vec<InstrId> = seen.iter().copied().collect();
    while let Some(id) = stack.pop() {
        stack.extend(next(id).into_iter().filter(|&id| inside(id) && seen.insert(id)));
    }
    seen
}
