//! Scheduling graph of a computation: dependencies, and the memory that instructions allocate and free.

use std::collections::{HashMap, HashSet};

use xla_hlo::effects::Effects;
use xla_hlo::{CompId, Computation, InstrId, Module, ParameterLeaf};

use crate::analysis::alias::flow::{Flow, ValueId, ValueKind};
use crate::analysis::alias::role::{Role, role};
use crate::analysis::alias::timeline::{Donation, Timeline};
use crate::analysis::alias::{ReadOrder, Share, shares};

/// Dependencies of an instruction and its effect on memory.
#[derive(Clone, Debug, Default)]
pub(super) struct ScheduleNode {
    /// Nodes that must run before, in ascending order. For an in-place update, they include the other readers of the
    /// updated value.
    pub(super) before: Vec<usize>,
    /// Nodes that must run after this one.
    pub(super) after: Vec<usize>,
    /// Values that the node reads and that are freed after their last reader, without duplicates.
    pub(super) reads: Vec<usize>,
    /// Values that the node defines.
    pub(super) makes: Vec<usize>,
    /// Pairs `(read, made)` of values that may share a buffer.
    pub(super) in_place: Vec<(usize, usize)>,
    /// Bytes that are only needed while the node runs.
    pub(super) inner: u64,
}

/// A value that is defined in this computation.
#[derive(Clone, Debug, Default)]
pub(super) struct ScheduleValue {
    pub(super) bytes: u64,
    pub(super) readers: Vec<usize>,
    /// Whether the value is part of the result and therefore never freed.
    pub(super) stays: bool,
}

/// The instructions of a computation, numbered in their current order.
#[derive(Debug)]
pub(super) struct ScheduleGraph {
    pub(super) ids: Vec<InstrId>,
    pub(super) nodes: Vec<ScheduleNode>,
    pub(super) values: Vec<ScheduleValue>,
}

impl ScheduleGraph {
    pub(super) fn new(
        module: &Module,
        (flow, effects): (&Flow, &Effects),
        comp: CompId,
        inner: &HashMap<CompId, u64>,
    ) -> ScheduleGraph {
        let computation = &module[comp];
        let ids = computation.post_order();
        let number: HashMap<InstrId, usize> = ids.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        let mut graph = ScheduleGraph { nodes: vec![ScheduleNode::default(); ids.len()], ids, values: Vec::new() };
        let mut local = graph.number_values(module, flow, comp, inner);
        let root = flow.leaves(comp, computation.root());
        for &leaf in root {
            if let Some(value) = local.get(&leaf) {
                graph.values[*value].stays = true;
            }
        }
        let donations = Timeline::donations(module);
        let mut wishes: Vec<(usize, ValueId)> = Vec::new();
        for node in 0..graph.ids.len() {
            let id = graph.ids[node];
            let instruction = &computation[id];
            for before in instruction.operands().iter().chain(instruction.control_predecessors()) {
                graph.add_edge(number[before], node);
            }
            let (reads, pairs) = match role(computation, id) {
                Role::Parameter(_) | Role::Constant | Role::Forward | Role::First | Role::Element(_) => continue,
                Role::Compute => (flow.operand_leaves(module, comp, id), shares(module, computation, id)),
                Role::Call(_) | Role::Conditional(_) => (flow.operand_leaves(module, comp, id), Vec::new()),
                Role::While { .. } => {
                    let state = flow.operand_leaves(module, comp, id);
                    let pairs =
                        (0..state.len()).map(|i| Share { output: i, operand: i, order: ReadOrder::Update }).collect();
                    (state, pairs)
                }
            };
            let makes = flow.leaves(comp, id);
            for share in pairs {
                let (Some(&from), Some(&to)) = (reads.get(share.operand), makes.get(share.output)) else { continue };
                let is_state = flow.value(from).kind == ValueKind::Join && root.contains(&to);
                if (share.is_update() || is_state) && from != to && is_writable(&donations, flow, from) {
                    wishes.push((node, from));
                }
                if let (Some(&from), Some(&to)) = (local.get(&from), local.get(&to)) {
                    graph.nodes[node].in_place.push((from, to));
                }
            }
            graph.add_reads(node, &reads, flow, &mut local);
        }
        graph.keep_effects_in_order(computation, effects);
        let readers = |v: ValueId| local.get(&v).map(|&v| graph.values[v].readers.clone());
        let wishes: Vec<(usize, Vec<usize>)> = wishes.into_iter().filter_map(|(n, v)| Some((n, readers(v)?))).collect();
        graph.read_before_update(&wishes);
        for node in &mut graph.nodes {
            for edges in [&mut node.before, &mut node.after] {
                edges.sort_unstable();
                edges.dedup();
            }
        }
        graph
    }

    /// Numbers the values of this computation and returns the numbers.
    fn number_values(
        &mut self,
        module: &Module,
        flow: &Flow,
        comp: CompId,
        inner: &HashMap<CompId, u64>,
    ) -> HashMap<ValueId, usize> {
        let mut local: HashMap<ValueId, usize> = HashMap::new();
        for (node, id) in self.ids.iter().enumerate() {
            let needs = |c: &CompId| inner.get(c).copied().unwrap_or(0);
            match role(&module[comp], *id) {
                Role::Parameter(_) | Role::Constant | Role::Forward | Role::First | Role::Element(_) => continue,
                Role::Compute => {}
                Role::Call(callee) => self.nodes[node].inner = needs(&callee),
                Role::While { condition, body } => self.nodes[node].inner = needs(&condition).max(needs(&body)),
                Role::Conditional(branches) => {
                    self.nodes[node].inner = branches.iter().map(needs).max().unwrap_or(0);
                }
            }
            let read: HashSet<ValueId> = flow.operand_leaves(module, comp, *id).into_iter().collect();
            for &value in flow.leaves(comp, *id) {
                // A loop or branch may return an operand or a constant unchanged.
                let is_new = !read.contains(&value) && flow.value(value).kind != ValueKind::Constant;
                if is_new && !local.contains_key(&value) {
                    let bytes = flow.value(value).bytes as u64;
                    local.insert(value, self.values.len());
                    self.nodes[node].makes.push(self.values.len());
                    self.values.push(ScheduleValue { bytes, ..ScheduleValue::default() });
                }
            }
        }
        local
    }

    fn add_edge(&mut self, before: usize, after: usize) {
        self.nodes[after].before.push(before);
        self.nodes[before].after.push(after);
    }

    fn add_reads(&mut self, node: usize, reads: &[ValueId], flow: &Flow, local: &mut HashMap<ValueId, usize>) {
        for value in reads {
            // Values of the caller are never freed here, but their other readers matter for in-place updates.
            let number = *local.entry(*value).or_insert_with(|| {
                let bytes = 0;
                let stays = flow.value(*value).in_memory;
                self.values.push(ScheduleValue { bytes, stays, readers: Vec::new() });
                self.values.len() - 1
            });
            if self.values[number].readers.last() != Some(&node) {
                self.values[number].readers.push(node);
                self.nodes[node].reads.push(number);
            }
        }
    }

    /// Keeps instructions with side effects in their current order. For example, the iterations of an unrolled loop
    /// have no data dependencies that order them.
    fn keep_effects_in_order(&mut self, computation: &Computation, effects: &Effects) {
        let with_effect = (0..self.ids.len()).filter(|&node| effects.has_effect(&computation[self.ids[node]]));
        let with_effect: Vec<usize> = with_effect.collect();
        for (&before, &after) in with_effect.iter().zip(with_effect.iter().skip(1)) {
            self.add_edge(before, after);
        }
    }

    /// Orders each updating node after the other readers of the updated value, unless they depend on its result.
    fn read_before_update(&mut self, wishes: &[(usize, Vec<usize>)]) {
        // The search for dependent readers visits a bounded number of nodes. Beyond that, updates may need copies.
        let mut budget = 1_000_000 + 64 * self.nodes.len();
        for (update, readers) in wishes {
            if readers.iter().all(|r| r == update) {
                continue;
            }
            let Some(reached) = self.reachable(*update, &mut budget) else { return };
            for reader in readers.iter().filter(|r| **r != *update && !reached.contains(*r)) {
                self.add_edge(*reader, *update);
            }
        }
    }

    fn reachable(&self, from: usize, budget: &mut usize) -> Option<HashSet<usize>> {
        let mut reached = HashSet::new();
        let mut work = vec![from];
        while let Some(node) = work.pop() {
            *budget = budget.checked_sub(1 + self.nodes[node].after.len())?;
            work.extend(self.nodes[node].after.iter().copied().filter(|&next| reached.insert(next)));
        }
        Some(reached)
    }

    /// Returns the node numbers of instructions.
    pub(super) fn numbers(&self, order: &[InstrId]) -> Vec<usize> {
        let number: HashMap<InstrId, usize> = self.ids.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        order.iter().filter_map(|id| number.get(id).copied()).collect()
    }

    /// Returns the number of readers of each value that have not run, plus 1 if it is part of the result.
    pub(super) fn reader_counts(&self) -> Vec<usize> {
        self.values.iter().map(|v| v.readers.len() + usize::from(v.stays)).collect()
    }

    /// Returns the peak memory in bytes when the nodes run in this order.
    pub(super) fn peak(&self, order: &[usize]) -> u64 {
        let mut left = self.reader_counts();
        let (mut live, mut peak) = (0u64, 0u64);
        for &id in order {
            let node = &self.nodes[id];
            let made: u64 = node.makes.iter().map(|&v| self.values[v].bytes).sum();
            let mut reused: Vec<usize> = Vec::new();
            let mut saved = 0;
            for &(from, to) in &node.in_place {
                let dies = left[from] == 1 && self.values[from].bytes == self.values[to].bytes;
                if dies && !reused.contains(&from) && !reused.contains(&to) {
                    reused.extend([from, to]);
                    saved += self.values[to].bytes;
                }
            }
            peak = peak.max((live + made).saturating_sub(saved) + node.inner);
            live += made;
            for &value in &node.reads {
                left[value] -= 1;
                if left[value] == 0 {
                    live = live.saturating_sub(self.values[value].bytes);
                }
            }
            for &value in &node.makes {
                if left[value] == 0 {
                    live = live.saturating_sub(self.values[value].bytes);
                }
            }
        }
        peak
    }
}

/// Whether a value's memory may be written: not for constants and for parameters that were not donated.
fn is_writable(donations: &HashMap<ParameterLeaf, Donation>, flow: &Flow, value: ValueId) -> bool {
    let value = flow.value(value);
    match value.kind {
        ValueKind::Computed | ValueKind::Join => true,
        ValueKind::Constant => false,
        ValueKind::Parameter(parameter) => {
            donations.contains_key(&ParameterLeaf { parameter, path: value.origin.path.clone() })
        }
    }
}
