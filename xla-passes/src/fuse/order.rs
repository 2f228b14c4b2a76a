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
    places: SecondaryMap<InstrId, usize>,
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
fn is_element(graph: &Computation, id: InstrId) -> bool {
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
fn predecessors(graph: &Computation, id: InstrId) -> Vec<InstrId> {
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

#[cfg(test)]
mod tests {
    use xla_hlo::ops::{GetTupleElement, Tuple};
    use xla_hlo::{Instruction, Shape};

    use super::*;

    /// Linear congruential generator.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % n
        }
    }

    fn add(graph: &mut Computation, operands: Vec<InstrId>) -> InstrId {
        graph.add(Instruction::new(Tuple.into(), Shape::Token, operands))
    }

    /// Generates instructions with up to three operands among the preceding eight; the last one depends on all.
    fn random_graph(numbers: &mut Numbers) -> Computation {
        let mut graph = Computation::new("random");
        let mut all: Vec<InstrId> = Vec::new();
        for n in 0..40 {
            let near = &all[all.len().saturating_sub(8)..];
            let count = if near.is_empty() { 0 } else { numbers.below(4) };
            let mut operands: Vec<InstrId> = (0..count).map(|_| near[numbers.below(near.len())]).collect();
            operands.sort_unstable();
            operands.dedup();
            all.push(add(&mut graph, operands));
            assert_eq!(graph.len(), n + 1);
        }
        let root = add(&mut graph, all);
        graph.set_root(root);
        graph
    }

    fn needs(graph: &Computation, from: InstrId, to: InstrId) -> bool {
        graph[to].operands().iter().any(|&o| o == from || needs(graph, from, o))
    }

    /// Replaces two instructions by one, as in a merge of kernels.
    fn merge(graph: &mut Computation, order: &mut TopologicalOrder, producer: InstrId, consumer: InstrId) {
        let place = order.meet(graph, producer, consumer);
        let mut operands: Vec<InstrId> =
            [producer, consumer].iter().flat_map(|&id| graph[id].operands().to_vec()).collect();
        operands.retain(|&o| o != producer);
        operands.sort_unstable();
        operands.dedup();
        let new = add(graph, operands);
        for (index, old) in [consumer, producer].into_iter().enumerate() {
            let element = graph.add(Instruction::new(GetTupleElement { index }.into(), Shape::Token, [new]));
            graph.replace_all_uses(old, element);
            graph.remove(old).unwrap();
        }
        order.put(new, place);
    }

    #[test]
    fn it_stays_topological_while_instructions_merge() {
        let mut numbers = Numbers(1);
        for _ in 0..60 {
            let mut graph = random_graph(&mut numbers);
            let mut order = TopologicalOrder::new(&graph);
            for _ in 0..30 {
                let plain = |&id: &InstrId| id != graph.root() && !is_element(&graph, id);
                let ids: Vec<InstrId> = graph.ids().filter(plain).collect();
                let [a, b] = [ids[numbers.below(ids.len())], ids[numbers.below(ids.len())]];
                assert_eq!(order.reaches(&graph, a, b), needs(&graph, a, b));
                let related = order.related(&graph, a, &ids);
                assert!(
                    ids.iter()
                        .all(|&b| { b == a || related.contains(&b) == (needs(&graph, a, b) || needs(&graph, b, a)) })
                );
                let between = order.reaches_around(&graph, a, b) || order.reaches(&graph, b, a);
                // As with kernels, an instruction with several results absorbs others and is not absorbed itself.
                let is_single = !graph[a].users().iter().any(|&user| is_element(&graph, user));
                if a != b && !between && is_single {
                    merge(&mut graph, &mut order, a, b);
                }
                for id in graph.ids().filter(|&id| !is_element(&graph, id)) {
                    assert!(predecessors(&graph, id).iter().all(|&o| order.places[o] < order.places[id]));
                }
            }
        }
    }
}
