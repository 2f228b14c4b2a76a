//! Reachability: whether one instruction needs another, through any number of operands and control dependencies.
//!
//! Every instruction has an interval of the places in a depth-first order: of all that it needs (H. Yildirim, V. Chaoji
//! and M. J. Zaki, "GRAIL: Scalable Reachability Index for Large Graphs", 2010) and of what the search found below it.
//! The first says no, the second yes; only what neither decides is searched, past what the first rules out. Space is
//! linear, where a table of all pairs takes a gigabyte for 100,000 instructions. While a graph is edited, see the order
//! that fusion keeps instead (`fuse/order.rs`).

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use xla_hlo::entity::SecondaryMap;
use xla_hlo::{Computation, InstrId, Module};

/// Needs of the instructions of one computation, as it was when this was made.
#[derive(Clone, Debug)]
pub struct Reachability<'g> {
    graph: &'g Computation,
    labels: SecondaryMap<InstrId, Label>,
    order: Vec<InstrId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Label {
    /// Its place: after all that it needs.
    place: u32,
    /// The first place that the search found from here: from there to `place` it needs everything.
    found_from: u32,
    /// The first place of all that it needs.
    needs_from: u32,
    /// The longest chain of instructions in front of it.
    level: u32,
}

impl<'g> Reachability<'g> {
    /// Looks at a computation. Linear time.
    pub fn of(graph: &'g Computation) -> Reachability<'g> {
        let mut found = Reachability { graph, labels: SecondaryMap::default(), order: Vec::with_capacity(graph.len()) };
        let mut entered: SecondaryMap<InstrId, bool> = SecondaryMap::new(false);
        for start in graph.ids().rev() {
            // Instructions with how many of those they need were looked at, and the place at which that began.
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

    /// All that an instruction needs has its label.
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

    /// Whether `to` needs `from`, which is another instruction: nothing may run `to` in front of `from`.
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

    /// Verdict of the intervals on whether `to` needs `from`, or is it.
    fn at_once(&self, to: InstrId, from: InstrId) -> Option<bool> {
        let (to, from) = (self.labels[to], self.labels[from]);
        let may_need = to.needs_from <= from.needs_from && from.place <= to.place;
        match may_need {
            false => Some(false),
            true if to.found_from <= from.place => Some(true),
            true => None,
        }
    }

    /// Whether neither needs the other: they may run in any order, or at the same time.
    pub fn are_independent(&self, a: InstrId, b: InstrId) -> bool {
        a != b && !self.needs(a, b) && !self.needs(b, a)
    }

    /// Length of the longest chain of instructions that must run in front of one.
    pub fn level(&self, id: InstrId) -> usize {
        self.labels[id].level as usize
    }

    /// All instructions, each after its operands and control predecessors.
    pub fn order(&self) -> &[InstrId] {
        &self.order
    }

    /// A longest chain of instructions of which each needs the one in front; empty for no instructions.
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

/// Direct needs of an instruction.
fn direct(graph: &Computation, id: InstrId) -> impl Iterator<Item = InstrId> + '_ {
    graph[id].operands().iter().chain(graph[id].control_predecessors()).copied()
}

/// The same by number.
fn direct_at(graph: &Computation, id: InstrId, number: usize) -> Option<InstrId> {
    let operands = graph[id].operands();
    let after = number.checked_sub(operands.len());
    operands.get(number).or_else(|| graph[id].control_predecessors().get(after?)).copied()
}

/// Longest chains of dependences of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chains {
    /// The module's name.
    pub module: String,
    /// Computations, callees before callers.
    pub computations: Vec<ComputationChains>,
}

/// Longest chain of dependences of a computation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComputationChains {
    /// Its name.
    pub name: String,
    /// A longest chain of instructions of which each needs the one in front: no order, and no number of threads, makes
    /// it shorter.
    pub longest_chain: Vec<String>,
    /// The instructions by the longest chain in front of each: those of one list need nothing of each other.
    pub levels: Vec<Vec<String>>,
}

/// The chains of a module. Linear time.
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

/// Each computation with its longest chain, callers first.
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
                    others => writeln!(f, "  %{name} and {others} beside it")?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use xla_hlo::ops::Tuple;
    use xla_hlo::{Instruction, Shape};

    use super::*;

    fn add(graph: &mut Computation, operands: Vec<InstrId>) -> InstrId {
        graph.add(Instruction::new(Tuple.into(), Shape::Token, operands))
    }

    /// Random graphs of `count` instructions with up to three operands among those in front.
    fn random_graph(seed: u64, count: usize) -> Computation {
        let mut state = seed;
        let mut below = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        let mut graph = Computation::new("random");
        let mut all: Vec<InstrId> = Vec::new();
        for _ in 0..count {
            let operands = (0..if all.is_empty() { 0 } else { below(4) }).map(|_| all[below(all.len())]).collect();
            let id = add(&mut graph, operands);
            if let Some(&before) = all.get(below(2 * count)) {
                graph.add_control_dependency(before, id);
            }
            all.push(id);
        }
        graph
    }

    #[test]
    fn answers_are_those_of_a_search() {
        for seed in 0..40 {
            let graph = random_graph(seed, 40);
            let reachability = Reachability::of(&graph);
            let mut needs: SecondaryMap<InstrId, HashSet<InstrId>> = SecondaryMap::default();
            for id in graph.ids() {
                let all = direct(&graph, id).flat_map(|d| needs[d].iter().copied().chain([d]).collect::<Vec<_>>());
                needs[id] = all.collect();
            }
            for (to, from) in graph.ids().flat_map(|to| graph.ids().map(move |from| (to, from))) {
                assert_eq!(reachability.needs(to, from), needs[to].contains(&from), "{seed}: {to} {from}");
            }
            let place = |id: InstrId| reachability.order().iter().position(|&o| o == id);
            assert!(graph.ids().all(|id| direct(&graph, id).all(|needed| place(needed) < place(id))));
            let chain = reachability.longest_chain();
            assert!(chain.windows(2).all(|pair| direct(&graph, pair[1]).any(|needed| needed == pair[0])));
            assert_eq!(chain.len(), 1 + graph.ids().map(|id| reachability.level(id)).max().unwrap());
        }
    }

    #[test]
    fn a_hundred_thousand_instructions_are_no_trouble() {
        let mut graph = Computation::new("long");
        let mut last = [add(&mut graph, vec![]), add(&mut graph, vec![])];
        let first = last;
        for i in 0..50_000 {
            // Two long chains that cross now and then.
            let other = if i % 100 == 0 { 1 } else { 0 };
            last = [add(&mut graph, vec![last[0]]), add(&mut graph, vec![last[1], last[1 - other]])];
        }
        let reachability = Reachability::of(&graph);
        for _ in 0..1000 {
            assert!(reachability.needs(last[0], first[0]) && reachability.needs(last[1], first[1]));
            assert!(!reachability.needs(last[0], first[1]) && reachability.needs(last[1], first[0]));
            assert!(reachability.are_independent(last[0], last[1]));
        }
    }
}
