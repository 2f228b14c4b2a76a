//! Reachability: whether one instruction depends on another through any number of operands and control dependencies.
//!
//! Every instruction has two intervals of positions in a depth-first order: one covers all its dependencies (H.
//! Yildirim, V. Chaoji and M. J. Zaki, "GRAIL: Scalable Reachability Index for Large Graphs", 2010), the other covers
//! the positions that the depth-first search reached from it. A position outside of the first interval is not a
//! dependency, and a position inside the second is one. A search decides the remaining cases and prunes by the first
//! interval. Space is linear, whereas a table of all pairs takes a gigabyte for 100,000 instructions. For graphs under
//! edit, see the order that fusion maintains (`fuse/order.rs`).

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use xla_hlo::entity::SecondaryMap;
use xla_hlo::{Computation, InstrId, Module};

/// Dependencies between the instructions of one computation, for the graph as it was when this was built.
#[derive(Clone, Debug)]
pub struct Reachability<'g> {
    graph: &'g Computation,
    labels: SecondaryMap<InstrId, Label>,
    order: Vec<InstrId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Label {
    /// Position of the instruction, after all its dependencies.
    place: u32,
    /// First position that the search reached from here: all positions from it to `place` are dependencies.
    found_from: u32,
    /// First position among all dependencies.
    needs_from: u32,
    /// Length of the longest dependency chain before the instruction.
    level: u32,
}

impl<'g> Reachability<'g> {
    /// Indexes a computation in linear time.
    pub fn of(graph: &'g Computation) -> Reachability<'g> {
        let mut found = Reachability { graph, labels: SecondaryMap::default(), order: Vec::with_capacity(graph.len()) };
        let mut entered: SecondaryMap<InstrId, bool> = SecondaryMap::new(false);
        for start in graph.ids().rev() {
            // Stack of instructions with the number of their visited dependencies and the order's length when their
            // visit started.
            let mut stack: Vec<(InstrId, usize, u32)> = Vec::new();
            if !std::mem::replace(&mut entered[start], true) {
                stack.push((start, 0, found.order.len() as u32));
            }
            while let Some((id, next, from)) = stack.pop() {
                match direct_at(graph, id, next) {
                    Some(needed) => {
                        stack.push((id, next + 1, from));
                        if !std::mem::replace(&mut entered[needed], true) {
                            stack.push((needed, 0, found.order.len() as u32));
                        }
                    }
                    None => found.leave(id, from),
                }
            }
        }
        found
    }

    /// Assigns the label of an instruction after all its dependencies have theirs.
    fn leave(&mut self, id: InstrId, found_from: u32) {
        let place = self.order.len() as u32;
        let mut label = Label { place, found_from, needs_from: place, level: 0 };
        for needed in direct(self.graph, id) {
            label.needs_from = label.needs_from.min(self.labels[needed].needs_from);
            label.level = label.level.max(self.labels[needed].level + 1);
        }
        self.labels[id] = label;
        self.order.push(id);
    }

    /// Whether `to` depends on the different instruction `from`, so that `from` must run first.
    pub fn needs(&self, to: InstrId, from: InstrId) -> bool {
        if to == from {
            return false;
        }
        let mut seen = HashSet::new();
        let mut stack = vec![to];
        while let Some(id) = stack.pop() {
            match self.at_once(id, from) {
                Some(true) => return true,
                Some(false) => {}
                None => stack.extend(direct(self.graph, id).filter(|&next| seen.insert(next))),
            }
        }
        false
    }

    /// Decides by intervals alone whether `to` depends on `from` or is the same instruction; `None` if they do not
    /// decide it.
    fn at_once(&self, to: InstrId, from: InstrId) -> Option<bool> {
        let (to, from) = (self.labels[to], self.labels[from]);
        let may_need = to.needs_from <= from.needs_from && from.place <= to.place;
        match may_need {
            false => Some(false),
            true if to.found_from <= from.place => Some(true),
            true => None,
        }
    }

    /// Whether neither depends on the other, so that they may run in any order or concurrently.
    pub fn are_independent(&self, a: InstrId, b: InstrId) -> bool {
        a != b && !self.needs(a, b) && !self.needs(b, a)
    }

    /// Returns the length of the longest dependency chain before an instruction.
    pub fn level(&self, id: InstrId) -> usize {
        self.labels[id].level as usize
    }

    /// Returns all instructions in an order in which each follows its operands and control predecessors.
    pub fn order(&self) -> &[InstrId] {
        &self.order
    }

    /// Returns a longest dependency chain; empty for an empty computation.
    pub fn longest_chain(&self) -> Vec<InstrId> {
        let mut chain: Vec<InstrId> = self.order.iter().copied().max_by_key(|&id| self.level(id)).into_iter().collect();
        while let Some(&first) = chain.last() {
            let before = direct(self.graph, first).find(|&needed| self.level(needed) + 1 == self.level(first));
            match before {
                Some(needed) => chain.push(needed),
                None => break,
            }
        }
        chain.reverse();
        chain
    }
}

/// Iterates over the direct dependencies of an instruction.
fn direct(graph: &Computation, id: InstrId) -> impl Iterator<Item = InstrId> + '_ {
    graph[id].operands().iter().chain(graph[id].control_predecessors()).copied()
}

/// Returns the direct dependency with that number.
fn direct_at(graph: &Computation, id: InstrId, number: usize) -> Option<InstrId> {
    let operands = graph[id].operands();
    let after = number.checked_sub(operands.len());
    operands.get(number).or_else(|| graph[id].control_predecessors().get(after?)).copied()
}

/// Longest dependency chains of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chains {
    /// Name of the module.
    pub module: String,
    /// Chains of the computations, callees before callers.
    pub computations: Vec<ComputationChains>,
}

/// Longest dependency chain of a computation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComputationChains {
    /// Name of the computation.
    pub name: String,
    /// A longest dependency chain. It is the critical path: no order and no number of threads can shorten it.
    pub longest_chain: Vec<String>,
    /// Instructions grouped by the length of the longest chain before each. Those of one level are independent of each
    /// other.
    pub levels: Vec<Vec<String>>,
}

/// Computes the chains of a module in linear time.
pub fn chains(module: &Module) -> Chains {
    let computations = module.post_order().into_iter().map(|id| {
        let graph = &module[id];
        let reachability = Reachability::of(graph);
        let name = |id: &InstrId| graph[*id].name().to_string();
        let longest_chain: Vec<String> = reachability.longest_chain().iter().map(name).collect();
        let mut levels = vec![Vec::new(); longest_chain.len()];
        reachability.order().iter().for_each(|id| levels[reachability.level(*id)].push(name(id)));
        ComputationChains { name: graph.name().to_string(), longest_chain, levels }
    });
    Chains { module: module.name().to_string(), computations: computations.collect() }
}

/// Prints each computation with its longest chain, callers first.
impl fmt::Display for Chains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "chains of {}", self.module)?;
        for computation in self.computations.iter().rev() {
            let (count, length) =
                (computation.levels.iter().map(Vec::len).sum::<usize>(), computation.longest_chain.len());
            writeln!(f, "\n%{}: {count} instructions, {length} in the longest chain", computation.name)?;
            for (name, level) in computation.longest_chain.iter().zip(&computation.levels) {
                match level.len() - 1 {
                    0 => writeln!(f, "  %{name}")?,
                    others => writeln!(f, "  %{name} and {others} of the same level")?,
                }
            }
        }
        Ok(())
    }
}
