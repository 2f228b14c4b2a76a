//! Output fusion: merges kernels over the same loop into one kernel that writes several arrays.
//!
//! ```text
//! m' = b * m + c * g                  for each element:
//! v' = d * v + e * g * g       ─>       m' = ...; v' = ...; p' = p - m' / sqrt(v')
//! p' = p - m' / sqrt(v')                store all three
//! ```
//!
//! An operand of several of these kernels is read once, and a value that one kernel computes for another stays in
//! registers. Small kernels that share no data are merged as well if launches are expensive (horizontal fusion), for
//! example the kernels of an optimizer for each of many weights.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use xla_hlo::{CompId, Computation, InstrId, Module, Op, Result, Shape};

use super::fuse_rows::{Kernel, merged, replace};
use super::kernel_facts::KernelFacts;
use super::order::TopologicalOrder;
use super::programs;
use crate::analysis::kernel_needs::registers;
use crate::analysis::loops::element_of;
use crate::framework::explain::{FusionDecision, FusionReason};
use crate::{FusionProfile, Pass, PassContext, TargetProfile};

/// Merges loop kernels of equal dimensions that read the same large array, or if one reads the other's result element
/// by element. Runs after [`Fuse`](super::Fuse) and [`FuseRows`](super::FuseRows), if the target's kernels can write
/// several arrays.
pub struct FuseOutputs;

impl Pass for FuseOutputs {
    fn name(&self) -> &'static str {
        "fuse-outputs"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if !cx.profile().fusion.multi_output {
            return Ok(());
        }
        for program in programs(module) {
            merge_kernels(module, program, &KernelFacts::default(), cx)?;
        }
        Ok(())
    }
}

/// Merges the kernels of one program.
fn merge_kernels(module: &mut Module, program: CompId, facts: &KernelFacts, cx: &PassContext<'_>) -> Result<()> {
    let profile = cx.profile();
    let mut order = TopologicalOrder::new(&module[program]);
    let mut kernels = module[program].post_order();
    kernels.reverse();
    let mut recent = Recent::default();
    for mut kernel in kernels {
        loop {
            let candidates = Candidates { module, program, profile, order: &order, facts };
            let pair = candidates.partner(kernel).map(|partner| (kernel, partner));
            let Some((into, partner)) = pair.or_else(|| recent.pair(&candidates, kernel)) else { break };
            if !cx.allow_rewrite(FuseOutputs.name()) {
                break;
            }
            cx.explain(|| candidates.joined(partner, into));
            kernel = join(module, program, into, partner, &mut order)?;
        }
        let candidates = Candidates { module, program, profile, order: &order, facts };
        recent.add(&candidates, kernel);
        if cx.explainer().is_some() {
            candidates.explain_apart(kernel, cx);
        }
    }
    Ok(())
}

/// The most recent small kernels, by the dimensions of their loops.
#[derive(Default)]
struct Recent(HashMap<Rc<[usize]>, VecDeque<InstrId>>);

impl Recent {
    /// Number of remembered kernels for each list of dimensions.
    const MOST: usize = 4;

    /// Finds a small kernel that is independent of the small kernel `kernel`. Returns the two, the one with a single
    /// result second.
    fn pair(&self, candidates: &Candidates<'_>, kernel: InstrId) -> Option<(InstrId, InstrId)> {
        let limit = candidates.profile.fusion.horizontal_bytes;
        let graph = candidates.graph();
        let dims = (limit > 0).then(|| candidates.loop_dims(kernel))??;
        let bytes = |id: InstrId| graph[id].shape().leaves().iter().map(|(_, s)| s.byte_size()).sum::<usize>();
        let fits = |&(into, o): &(InstrId, InstrId)| {
            o != into && bytes(o) + bytes(into) <= limit && candidates.misfit(into, o, &dims).is_none()
        };
        let is_tuple = |id: InstrId| matches!(graph[id].shape(), Shape::Tuple(_));
        let known: Vec<InstrId> = self.0.get(&dims)?.iter().copied().filter(|&o| graph.get(o).is_some()).collect();
        let related = OnceCell::new();
        let apart = |o: InstrId| !related.get_or_init(|| candidates.order.related(graph, kernel, &known)).contains(&o);
        let pair = |o: InstrId| if is_tuple(o) { (o, kernel) } else { (kernel, o) };
        known.iter().find(|&&o| fits(&pair(o)) && apart(o)).map(|&o| pair(o))
    }

    fn add(&mut self, candidates: &Candidates<'_>, kernel: InstrId) {
        if candidates.profile.fusion.horizontal_bytes == 0 {
            return;
        }
        let Some(dims) = candidates.loop_dims(kernel) else { return };
        let known = self.0.entry(dims).or_default();
        known.push_front(kernel);
        known.truncate(Recent::MOST);
    }
}

/// Maximum number of readers of one operand that are tried as partners. Kernels that do not fit are retried for each.
const MOST_READERS: usize = 64;

/// Pairs of kernels of a program that may be merged next.
struct Candidates<'a> {
    module: &'a Module,
    program: CompId,
    profile: &'a TargetProfile,
    order: &'a TopologicalOrder,
    facts: &'a KernelFacts,
}

impl Candidates<'_> {
    fn graph(&self) -> &Computation {
        &self.module[self.program]
    }

    fn loop_dims(&self, id: InstrId) -> Option<Rc<[usize]>> {
        self.facts.loop_dims(self.module, self.program, id, self.profile)
    }

    fn reads_in_place(&self, kernel: InstrId, operand: InstrId) -> bool {
        self.facts.reads_in_place(self.module, self.program, kernel, operand)
    }

    /// Returns a kernel that `kernel` can be merged with: one of its operands, or another reader of one of its
    /// operands.
    fn partner(&self, kernel: InstrId) -> Option<InstrId> {
        let graph = self.graph();
        let dims = self.loop_dims(kernel)?;
        let least = graph[kernel].shape().leaves().iter().map(|(_, s)| s.byte_size()).min()? / 2;
        let fits = |other: InstrId| other != kernel && self.misfit(kernel, other, &dims).is_none();
        let operands = graph[kernel].operands();
        let producer = |&o: &InstrId| fits(o) && self.passing(kernel, o).is_none();
        if let Some(found) = operands.iter().copied().find(|o| producer(o)) {
            return Some(found);
        }
        let large = operands.iter().filter(|&&o| graph[o].shape().byte_size() >= least.max(1));
        let readers: Vec<InstrId> = large.flat_map(|&o| graph[o].users().iter().copied().take(MOST_READERS)).collect();
        let related = OnceCell::new();
        let apart = |o: InstrId| !related.get_or_init(|| self.order.related(graph, kernel, &readers)).contains(&o);
        readers.iter().copied().find(|&o| fits(o) && apart(o))
    }

    /// Returns the reason against merging a kernel with a kernel of these dimensions, regardless of their order.
    fn misfit(&self, kernel: InstrId, other: InstrId, dims: &[usize]) -> Option<FusionReason> {
        let graph = self.graph();
        if !matches!(graph[other].shape(), Shape::Array(_)) {
            return Some(FusionReason::NoArray);
        }
        match self.loop_dims(other) {
            None => return Some(FusionReason::NotFusible(graph[other].opcode())),
            Some(own) if *own != *dims => {
                return Some(FusionReason::OtherLoop { producer: own.to_vec(), consumer: dims.to_vec() });
            }
            Some(_) => {}
        }
        if self.loses_state(kernel, other) || self.loses_state(other, kernel) {
            return Some(FusionReason::UpdateInPlace);
        }
        let (count, arrays) = sizes(self.module, graph, kernel, other);
        let FusionProfile { max_instructions, max_operands, .. } = self.profile.fusion;
        if count > max_instructions {
            return Some(FusionReason::TooManyInstructions { count, limit: max_instructions });
        }
        if arrays > max_operands {
            return Some(FusionReason::TooManyOperands { count: arrays, limit: max_operands });
        }
        self.outgrows(kernel, other)
    }

    /// Returns the limit on code size or register pressure that a merged kernel would exceed.
    fn outgrows(&self, kernel: InstrId, other: InstrId) -> Option<FusionReason> {
        let (graph, limits) = (self.graph(), &self.profile.fusion);
        if (limits.max_code, limits.max_live_registers) == (u64::MAX, usize::MAX) {
            return None;
        }
        let [first, second] = [other, kernel].map(|id| self.facts.needs(self.module, self.program, id));
        let count = (first.code + second.code) as u64;
        if count > limits.max_code {
            return Some(FusionReason::TooMuchCode { count, limit: limits.max_code });
        }
        // Values that both kernels need stay in registers from one to the other.
        let others: HashSet<InstrId> = graph[other].operands().iter().copied().chain([other]).collect();
        let shared: HashSet<InstrId> =
            graph[kernel].operands().iter().copied().filter(|o| others.contains(o)).collect();
        let kept: usize = shared.into_iter().map(|o| registers(graph[o].shape())).sum();
        let registers = first.registers.max(second.registers + kept);
        let alone = first.registers.max(second.registers);
        (registers > limits.max_live_registers.max(alone))
            .then_some(FusionReason::TooManyLiveValues { registers, limit: limits.max_live_registers })
    }

    /// Returns the reason against passing a producer's result in registers.
    fn passing(&self, kernel: InstrId, producer: InstrId) -> Option<FusionReason> {
        if !self.reads_in_place(kernel, producer) {
            return Some(FusionReason::OtherElements);
        }
        self.order.reaches_around(self.graph(), producer, kernel).then_some(FusionReason::Cycle)
    }

    /// Returns the decision to merge two kernels, with its reason.
    fn joined(&self, partner: InstrId, kernel: InstrId) -> FusionDecision {
        let graph = self.graph();
        let (operands, others) = (graph[kernel].operands(), graph[partner].operands());
        let reason = if operands.contains(&partner) {
            FusionReason::SameLoop
        } else if operands.iter().any(|o| others.contains(o)) {
            FusionReason::SharedInput
        } else {
            FusionReason::SmallKernels
        };
        FusionDecision::new(FuseOutputs.name(), self.module, self.program, partner, kernel, reason)
    }

    /// Reports the reasons against merging a kernel with the producers of its operands.
    fn explain_apart(&self, kernel: InstrId, cx: &PassContext<'_>) {
        let Some(dims) = self.loop_dims(kernel) else { return };
        let operands: BTreeSet<InstrId> = self.graph()[kernel].operands().iter().copied().collect();
        for producer in operands.into_iter().filter(|&o| self.loop_dims(o).is_some()) {
            let misfit = self.misfit(kernel, producer, &dims);
            if let Some(reason) = misfit.or_else(|| self.passing(kernel, producer)) {
                let name = FuseOutputs.name();
                cx.explain(|| FusionDecision::new(name, self.module, self.program, producer, kernel, reason));
            }
        }
    }

    /// Whether `kernel` computes the next state of a loop in place while `other` reads other elements of the same
    /// state. A merged kernel would need a copy in each iteration.
    fn loses_state(&self, kernel: InstrId, other: InstrId) -> bool {
        let graph = self.graph();
        let root = &graph[graph.root()];
        let state = |id: InstrId| {
            element_of(graph, id)
                .filter(|&(tuple, _)| matches!(graph[tuple].op(), Op::Parameter(_)))
                .map(|(_, index)| index)
        };
        let made_by = |id: InstrId| id == kernel || element_of(graph, id).is_some_and(|(tuple, _)| tuple == kernel);
        let next =
            |index: usize| matches!(root.op(), Op::Tuple(_)) && root.operands().get(index).is_some_and(|&o| made_by(o));
        let reads = |id: InstrId, operand: InstrId| graph[id].operands().contains(&operand);
        let kept = |o: InstrId| reads(other, o) && self.reads_in_place(kernel, o) && !self.reads_in_place(other, o);
        graph[kernel].operands().iter().any(|&o| state(o).is_some_and(next) && kept(o))
    }
}

/// Returns the number of instructions and the number of arrays, read and written, of a merged kernel.
fn sizes(module: &Module, graph: &Computation, a: InstrId, b: InstrId) -> (usize, usize) {
    let size = |id: InstrId| match graph[id].op() {
        Op::Fusion(fusion) => module[fusion.computation].len(),
        _ => 1,
    };
    let outputs = graph[a].shape().leaves().len() + 1;
    let operands = graph[a].operands().len() + graph[b].operands().len();
    (size(a) + size(b), operands + outputs)
}

/// Merges two kernels into one that writes the results of both. Returns its id.
fn join(
    module: &mut Module,
    program: CompId,
    kernel: InstrId,
    partner: InstrId,
    order: &mut TopologicalOrder,
) -> Result<InstrId> {
    let graph = &module[program];
    let keep = graph.root() == partner || graph[partner].users().iter().any(|&u| u != kernel);
    let (Some(first), Some(second)) = (Kernel::of(module, program, partner), Kernel::of(module, program, kernel))
    else {
        return Ok(kernel);
    };
    let both = merged(partner, &first, &second, keep);
    replace(module, program, partner, kernel, both, keep, order)
}
