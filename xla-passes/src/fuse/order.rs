//! A topological order of a computation that stays one while kernels are merged, so that paths are looked for between two places only.
//!
//! Kept as D. J. Pearce and P. H. J. Kelly do it ("A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs", 2006): a merge moves only
//! what lies between the two in the order and depends on one of them.

use std::collections::HashSet;

use xla_hlo::entity::SecondaryMap;
use xla_hlo::{Computation, InstrId};

/// Places between two neighbours of the first order, for elements of tuples that merged kernels make.
const STRIDE: u64 = 1 << 16;

/// Where each instruction stands: behind its operands and control predecessors.
pub struct Order {
    places: SecondaryMap<InstrId, u64>,
}

impl Order {
    /// The order of a computation as it is.
    pub fn new(graph: &Computation) -> Order {
        let mut places = SecondaryMap::default();
        graph.post_order().into_iter().zip(1u64..).for_each(|(id, place)| places[id] = place * STRIDE);
        Order { places }
    }

    /// Whether `to` needs `from`: through something else in between, or directly.
    pub fn reaches(&self, graph: &Computation, from: InstrId, to: InstrId) -> bool {
        successors(graph, from).any(|next| next == to) || self.reaches_around(graph, from, to)
    }

    /// Whether `to` needs something that needs `from`.
    pub fn reaches_around(&self, graph: &Computation, from: InstrId, to: InstrId) -> bool {
        let start = successors(graph, from).filter(|&next| next != to);
        let last = self.places[to];
        visit(start, |id| self.places[id] <= last, |id| successors(graph, id)).contains(&to)
    }

    /// Prepares for one instruction in the place of two that nothing in between connects: gives the place where it will stand, with what
    /// either needs in front and what needs either behind. To be called before the graph is edited.
    pub fn meet(&mut self, graph: &Computation, a: InstrId, b: InstrId) -> u64 {
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
        let mut free: Vec<u64> = before.iter().chain(&behind).map(|&id| self.places[id]).chain([low, high]).collect();
        free.sort_unstable();
        let mut free = free.into_iter();
        for (&id, place) in before.iter().zip(&mut free) {
            self.places[id] = place;
        }
        let own = free.next().unwrap_or(high);
        // One place is left over, the two being one.
        free.next();
        for (&id, place) in behind.iter().zip(&mut free) {
            self.places[id] = place;
        }
        own
    }

    /// Puts a new instruction, and the elements of its tuple, in the place that [`Order::meet`] gave.
    pub fn put(&mut self, graph: &Computation, new: InstrId, place: u64) {
        self.places[new] = place;
        let elements = graph[new].users().iter().filter(|&&user| self.places[user] == 0);
        let elements: Vec<InstrId> = elements.copied().collect();
        for (id, place) in elements.into_iter().zip(place + 1..) {
            self.places[id] = place;
        }
    }
}

fn successors(graph: &Computation, id: InstrId) -> impl Iterator<Item = InstrId> + '_ {
    graph[id].users().iter().chain(graph[id].control_successors()).copied()
}

fn predecessors(graph: &Computation, id: InstrId) -> impl Iterator<Item = InstrId> + '_ {
    graph[id].operands().iter().chain(graph[id].control_predecessors()).copied()
}

/// All that is found from `start` on, as far as `inside` allows.
fn visit<I: Iterator<Item = InstrId>>(
    start: impl Iterator<Item = InstrId>,
    inside: impl Fn(InstrId) -> bool,
    next: impl Fn(InstrId) -> I,
) -> HashSet<InstrId> {
    let mut seen: HashSet<InstrId> = start.filter(|&id| inside(id)).collect();
    let mut stack: Vec<InstrId> = seen.iter().copied().collect();
    while let Some(id) = stack.pop() {
        stack.extend(next(id).filter(|&id| inside(id) && seen.insert(id)));
    }
    seen
}
