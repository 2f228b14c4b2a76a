//! Candidates for rematerialization: values that are live at the peak, with the bytes that recomputing them frees.

use std::collections::HashMap;

use xla_hlo::ops::{Family, FusionKind};
use xla_hlo::{CompId, InstrId, Module, Op, Result};

use super::edit::{Edit, Read};
use super::trial::Trial;
use crate::analysis::alias::ValueRef;
use crate::analysis::alias::flow::{Flow, ValueKind};
use crate::analysis::alias::role::{Role, role};
use crate::analysis::cost::{Cost, Costs};
use crate::buffers::LiveValue;
use crate::rewrite::graph::is_free;

/// Maximum number of operations per byte read or written for which recomputation is cheap.
const CHEAP: u64 = 16;

/// A value that can be recomputed.
pub(super) struct Candidate {
    pub(super) edit: Edit,
    /// Bytes that recomputation frees at the peak.
    pub(super) bytes: u64,
    /// Index of the value in the assignment.
    pub(super) value: usize,
    /// Values that the recomputation reads.
    pub(super) reads: Vec<usize>,
}

/// Returns all values that are live at the peak and can be recomputed, ordered by work per freed byte.
pub(super) fn candidates(trial: &Trial) -> Result<Vec<Candidate>> {
    let flow = Flow::new(&trial.copied)?;
    let mut steps: HashMap<(CompId, InstrId), (usize, usize)> = HashMap::new();
    let last = trial.buffers.steps().len().saturating_sub(1);
    // The first and the last step are the program's own, with the name of its root.
    for (step, &at) in trial.buffers.steps().iter().enumerate().take(last).skip(1) {
        steps.entry(at).or_insert((step, step)).1 = step;
    }
    let values: HashMap<&ValueRef, usize> =
        trial.buffers.values().iter().enumerate().map(|(i, v)| (&v.value, i)).collect();
    let peak = Peak { trial, flow, steps, values, step: trial.buffers.peak().step };
    let mut costs = Costs::new(&trial.module);
    let mut found: Vec<(Candidate, u64)> =
        trial.buffers.peak().values.iter().filter_map(|&value| peak.candidate(value, &mut costs)).collect();
    // Work in thousandths of an operation per byte. Ties are resolved in favor of the larger value, which comes first.
    let rate = |(candidate, work): &(Candidate, u64)| work.saturating_mul(1000) / candidate.bytes.max(1);
    found.sort_by_key(rate);
    Ok(found.into_iter().map(|(candidate, _)| candidate).collect())
}

/// The time of peak memory usage.
struct Peak<'t> {
    trial: &'t Trial,
    flow: Flow,
    /// First and last step of each instruction.
    steps: HashMap<(CompId, InstrId), (usize, usize)>,
    values: HashMap<&'t ValueRef, usize>,
    step: usize,
}

impl Peak<'_> {
    /// Returns the candidate for one of the assignment's values, with the work that recomputation takes.
    fn candidate(&self, value: usize, costs: &mut Costs<'_>) -> Option<(Candidate, u64)> {
        let module = &self.trial.module;
        let live = self.trial.buffers.values().get(value)?;
        let ValueRef { computation, instruction, path } = &live.value;
        let (program, maker) = (*computation, *instruction);
        let graph = module.get(program)?;
        let index = match path[..] {
            [] => None,
            [index] => Some(index),
            _ => return None,
        };
        graph.get(maker).filter(|i| is_free(i))?;
        if index.is_some() && !stores_a_tuple(module, program, maker) {
            return None;
        }
        let cost = recomputing(module, program, maker, costs)?;
        let reads = self.late_reads(program, maker, index)?;
        let before = reads.iter().map(|read| read.user).min_by_key(|&user| self.steps[&(program, user)].0)?;
        let edit = Edit { program, maker, index, before, reads };
        let (extra, reads) = self.kept_for(&edit);
        let bytes = (live.slice.size as u64).checked_sub(extra).filter(|&bytes| bytes > 0)?;
        let work = cost.operations().saturating_add(cost.bytes());
        Some((Candidate { edit, bytes, value, reads }, work))
    }

    /// Returns the reads after the peak. `None` if there are none, if the instruction at the peak is one of them, or if
    /// the time of a read is unknown.
    fn late_reads(&self, program: CompId, maker: InstrId, index: Option<usize>) -> Option<Vec<Read>> {
        let graph = self.trial.module.get(program)?;
        let mut late = Vec::new();
        // Aliases of the value, each with the chain of aliases that leads to it.
        let mut names: Vec<(InstrId, Vec<InstrId>)> = match index {
            None => vec![(maker, Vec::new())],
            Some(index) => {
                let users = graph[maker].users().iter();
                let is_element = |&&u: &&InstrId| matches!(graph[u].op(), Op::GetTupleElement(e) if e.index == index);
                // The whole tuple must not have other users.
                let all_elements =
                    graph[maker].users().iter().all(|&u| matches!(graph[u].op(), Op::GetTupleElement(_)));
                all_elements.then(|| users.filter(is_element).map(|&u| (u, Vec::new())).collect())?
            }
        };
        while let Some((name, way)) = names.pop() {
            if graph.root() == name || (name != maker && !is_free(&graph[name])) {
                return None;
            }
            for &user in graph[name].users() {
                if matches!(graph[user].op(), Op::Bitcast(_) | Op::Reshape(_)) && role(graph, user) == Role::Forward {
                    let mut way = way.clone();
                    way.push(user);
                    names.push((user, way));
                    continue;
                }
                if role(graph, user) != Role::Compute {
                    return None;
                }
                let &(first, last) = self.steps.get(&(program, user))?;
                if first > self.step {
                    let operands = graph[user].operands().iter().enumerate();
                    let at = operands.filter(|(_, o)| **o == name).map(|(i, _)| i);
                    late.extend(at.map(|operand| Read { user, operand, way: way.clone() }));
                } else if last >= self.step {
                    return None;
                }
            }
        }
        (!late.is_empty()).then_some(late)
    }

    /// Returns the bytes that must stay live over the peak for the recomputation, and the values that it reads.
    fn kept_for(&self, edit: &Edit) -> (u64, Vec<usize>) {
        let mut bytes = 0;
        let mut reads = Vec::new();
        let until = self.steps[&(edit.program, edit.before)].0;
        let operands = edit.operands(&self.trial.copied);
        for &value in operands.iter().flat_map(|&operand| self.flow.leaves(edit.program, operand)) {
            let value = self.flow.value(value);
            if matches!(value.kind, ValueKind::Parameter(_) | ValueKind::Constant) {
                continue;
            }
            let Some(&number) = self.values.get(&value.origin) else { continue };
            let LiveValue { slice, until: last, .. } = &self.trial.buffers.values()[number];
            if *last < until && *last < self.step && !reads.contains(&number) {
                bytes += slice.size as u64;
            }
            reads.push(number);
        }
        (bytes, reads)
    }
}

/// Returns the cost of running an instruction again; `None` if that is expensive or has effects.
fn recomputing(module: &Module, program: CompId, id: InstrId, costs: &mut Costs<'_>) -> Option<Cost> {
    let graph = &module[program];
    if role(graph, id) != Role::Compute {
        return None;
    }
    let is_cheap = match graph[id].op() {
        Op::Fusion(fusion) => {
            let updates = fusion.kind == FusionKind::Loop && !fusion.aliases.is_empty();
            let known = matches!(fusion.kind, FusionKind::Loop | FusionKind::Input);
            known && !updates && module[fusion.computation].iter().all(|(_, i)| is_pure(i.op(), true))
        }
        op => is_pure(op, false),
    };
    let cost = is_cheap.then(|| costs.of(program, id))?;
    let work = cost.operations();
    (work <= CHEAP.saturating_mul(cost.bytes())).then_some(cost)
}

/// Whether the instruction is a fusion that computes each of its results separately.
fn stores_a_tuple(module: &Module, program: CompId, id: InstrId) -> bool {
    let Op::Fusion(fusion) = module[program][id].op() else { return false };
    let body = &module[fusion.computation];
    matches!(body[body.root()].op(), Op::Tuple(_))
}

/// Whether the operation is an elementwise operation, data movement or a reduction.
fn is_pure(op: &Op, inside: bool) -> bool {
    match op.opcode().family() {
        Family::Elementwise => !matches!(op, Op::Map(_)),
        Family::Movement => !matches!(op, Op::Copy(_) | Op::DynamicUpdateSlice(_)),
        Family::Reduction => matches!(op, Op::Reduce(_)),
        _ => inside && matches!(op, Op::Parameter(_) | Op::Constant(_) | Op::Tuple(_) | Op::GetTupleElement(_)),
    }
}
