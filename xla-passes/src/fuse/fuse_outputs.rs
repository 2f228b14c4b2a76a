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

use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, Computation, InstrId, Module, Op, Result, Shape};

use super::access::{ElementAccess, accesses, is_elementwise};
use super::fuse_rows::{Kernel, merged, replace};
use super::order::TopologicalOrder;
use super::{programs, rules};
use crate::analysis::kernel_needs::{Needs, registers};
use crate::analysis::loops::element_of;
use crate::framework::explain::{FusionDecision, FusionReason};
use crate::rewrite::graph;
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
        let profile = cx.profile();
        if !profile.fusion.multi_output {
            return Ok(());
        }
        for program in programs(module) {
            let mut order = TopologicalOrder::new(&module[program]);
            let mut kernels = module[program].post_order();
            kernels.reverse();
            let mut recent = Recent::default();
            for mut kernel in kernels {
                while let Some((into, partner)) = partner(module, program, kernel, profile, &order)
                    .map(|partner| (kernel, partner))
                    .or_else(|| recent.pair(module, program, kernel, profile, &order))
                    && cx.allow_rewrite(self.name())
                {
                    cx.explain(|| joined(module, program, partner, into));
                    kernel = join(module, program, into, partner, &mut order)?;
                }
                recent.add(module, program, kernel, profile);
                if cx.explainer().is_some() {
                    explain_apart(module, program, kernel, &order, cx);
                }
            }
        }
        Ok(())
    }
}

/// The most recent small kernels, by the dimensions of their loops.
#[derive(Default)]
struct Recent(HashMap<Vec<usize>, VecDeque<InstrId>>);

impl Recent {
    /// Number of remembered kernels for each list of dimensions.
    const MOST: usize = 4;

    /// Finds a small kernel that is independent of the small kernel `kernel`. Returns the two, the one with a single
    /// result second.
    fn pair(
        &self,
        module: &Module,
        program: CompId,
        kernel: InstrId,
        profile: &TargetProfile,
        order: &TopologicalOrder,
    ) -> Option<(InstrId, InstrId)> {
        let limit = profile.fusion.horizontal_bytes;
        let graph = &module[program];
        let dims = (limit > 0).then(|| loop_dims(module, graph, kernel, profile))??;
        let bytes = |id: InstrId| graph[id].shape().leaves().iter().map(|(_, s)| s.byte_size()).sum::<usize>();
        let fits = |&(into, o): &(InstrId, InstrId)| {
            o != into && bytes(o) + bytes(into) <= limit && misfit(module, graph, into, o, &dims, profile).is_none()
        };
        let is_tuple = |id: InstrId| matches!(graph[id].shape(), Shape::Tuple(_));
        let known: Vec<InstrId> = self.0.get(&dims)?.iter().copied().filter(|&o| graph.get(o).is_some()).collect();
        let related = OnceCell::new();
        let apart = |o: InstrId| !related.get_or_init(|| order.related(graph, kernel, &known)).contains(&o);
        let pair = |o: InstrId| if is_tuple(o) { (o, kernel) } else { (kernel, o) };
        known.iter().find(|&&o| fits(&pair(o)) && apart(o)).map(|&o| pair(o))
    }

    fn add(&mut self, module: &Module, program: CompId, kernel: InstrId, profile: &TargetProfile) {
        if profile.fusion.horizontal_bytes == 0 {
            return;
        }
        let Some(dims) = loop_dims(module, &module[program], kernel, profile) else { return };
        let known = self.0.entry(dims).or_default();
        known.push_front(kernel);
        known.truncate(Recent::MOST);
    }
}

/// Returns the loop dimensions of an elementwise kernel; `None` for other instructions.
fn loop_dims(module: &Module, graph: &Computation, id: InstrId, profile: &TargetProfile) -> Option<Vec<usize>> {
    let instruction = graph.get(id)?;
    let plain = match instruction.op() {
        Op::Fusion(fusion) => fusion.aliases.is_empty() && reduces_at_loop(&module[fusion.computation], profile),
        op => is_elementwise(op),
    };
    let mut outputs = instruction.shape().leaves().into_iter().map(|(_, s)| s.as_array().map(|a| a.dims().to_vec()));
    let first = outputs.next()??;
    (plain && graph::is_free(instruction) && outputs.all(|o| o.as_ref() == Some(&first))).then_some(first)
}

/// Whether a kernel computes each element independently.
pub(super) fn reduces_nothing(body: &Computation) -> bool {
    body.iter().all(|(_, i)| is_of_elements(i.op()))
}

fn is_of_elements(op: &Op) -> bool {
    op.call_context() == CallContext::None && !matches!(op, Op::Dot(_) | Op::Convolution(_))
}

/// Whether a kernel has no reductions, or only reductions that run once, for the element of the current loop iteration.
fn reduces_at_loop(body: &Computation, profile: &TargetProfile) -> bool {
    let reductions: Vec<InstrId> = body.ids().filter(|&id| matches!(body[id].op(), Op::Reduce(_))).collect();
    if reductions.is_empty() || !body.ids().all(|id| reductions.contains(&id) || is_of_elements(body[id].op())) {
        return reduces_nothing(body);
    }
    let accesses = accesses(body);
    let small = body.result_shape().byte_size() <= profile.l1_bytes;
    reductions.into_iter().all(|id| {
        rules::reads_in_order(body, id, profile)
            && (rules::is_long_reduction(body, id) || small)
            && matches!(body[id].shape(), Shape::Array(_))
            && rules::reduces_once(body, body.root(), id, &accesses[id])
    })
}

/// Maximum number of readers of one operand that are tried as partners. Kernels that do not fit are retried for each.
const MOST_READERS: usize = 64;

/// Returns a kernel that `kernel` can be merged with: one of its operands, or another reader of one of its operands.
fn partner(
    module: &Module,
    program: CompId,
    kernel: InstrId,
    profile: &TargetProfile,
    order: &TopologicalOrder,
) -> Option<InstrId> {
    let graph = &module[program];
    let dims = loop_dims(module, graph, kernel, profile)?;
    let least = graph[kernel].shape().leaves().iter().map(|(_, s)| s.byte_size()).min()? / 2;
    let fits = |other: InstrId| other != kernel && misfit(module, graph, kernel, other, &dims, profile).is_none();
    let operands = graph[kernel].operands();
    let producer = |&o: &InstrId| fits(o) && passing(module, graph, kernel, o, order).is_none();
    if let Some(found) = operands.iter().copied().find(|o| producer(o)) {
        return Some(found);
    }
    let large = operands.iter().filter(|&&o| graph[o].shape().byte_size() >= least.max(1));
    let readers: Vec<InstrId> = large.flat_map(|&o| graph[o].users().iter().copied().take(MOST_READERS)).collect();
    let related = OnceCell::new();
    let apart = |o: InstrId| !related.get_or_init(|| order.related(graph, kernel, &readers)).contains(&o);
    readers.iter().copied().find(|&o| fits(o) && apart(o))
}

/// Returns the reason against merging a kernel with a kernel of these dimensions, regardless of their order.
fn misfit(
    module: &Module,
    graph: &Computation,
    kernel: InstrId,
    other: InstrId,
    dims: &[usize],
    profile: &TargetProfile,
) -> Option<FusionReason> {
    if !matches!(graph[other].shape(), Shape::Array(_)) {
        return Some(FusionReason::NoArray);
    }
    match loop_dims(module, graph, other, profile) {
        None => return Some(FusionReason::NotFusible(graph[other].opcode())),
        Some(own) if own != dims => {
            return Some(FusionReason::OtherLoop { producer: own, consumer: dims.to_vec() });
        }
        Some(_) => {}
    }
    if loses_state(module, graph, kernel, other) || loses_state(module, graph, other, kernel) {
        return Some(FusionReason::UpdateInPlace);
    }
    let (count, arrays) = needs(module, graph, kernel, other);
    let FusionProfile { max_instructions, max_operands, .. } = profile.fusion;
    if count > max_instructions {
        return Some(FusionReason::TooManyInstructions { count, limit: max_instructions });
    }
    if arrays > max_operands {
        return Some(FusionReason::TooManyOperands { count: arrays, limit: max_operands });
    }
    outgrows(module, graph, kernel, other, &profile.fusion)
}

/// Returns the limit on code size or register pressure that a merged kernel would exceed.
fn outgrows(
    module: &Module,
    graph: &Computation,
    kernel: InstrId,
    other: InstrId,
    limits: &FusionProfile,
) -> Option<FusionReason> {
    let [first, second] = [other, kernel].map(|id| Needs::of(module, graph, id));
    let count = (first.code + second.code) as u64;
    if count > limits.max_code {
        return Some(FusionReason::TooMuchCode { count, limit: limits.max_code });
    }
    // Values that both kernels need stay in registers from one to the other.
    let others: HashSet<InstrId> = graph[other].operands().iter().copied().chain([other]).collect();
    let shared: HashSet<InstrId> = graph[kernel].operands().iter().copied().filter(|o| others.contains(o)).collect();
    let kept: usize = shared.into_iter().map(|o| registers(graph[o].shape())).sum();
    let registers = first.registers.max(second.registers + kept);
    let alone = first.registers.max(second.registers);
    (registers > limits.max_live_registers.max(alone))
        .then_some(FusionReason::TooManyLiveValues { registers, limit: limits.max_live_registers })
}

/// Returns the reason against passing a producer's result in registers.
fn passing(
    module: &Module,
    graph: &Computation,
    kernel: InstrId,
    producer: InstrId,
    order: &TopologicalOrder,
) -> Option<FusionReason> {
    if !reads_in_place(module, graph, kernel, producer) {
        return Some(FusionReason::OtherElements);
    }
    order.reaches_around(graph, producer, kernel).then_some(FusionReason::Cycle)
}

/// Returns the decision to merge two kernels, with its reason.
fn joined(module: &Module, program: CompId, partner: InstrId, kernel: InstrId) -> FusionDecision {
    let (operands, others) = (module[program][kernel].operands(), module[program][partner].operands());
    let reason = if operands.contains(&partner) {
        FusionReason::SameLoop
    } else if operands.iter().any(|o| others.contains(o)) {
        FusionReason::SharedInput
    } else {
        FusionReason::SmallKernels
    };
    FusionDecision::new(FuseOutputs.name(), module, program, partner, kernel, reason)
}

/// Reports the reasons against merging a kernel with the producers of its operands.
fn explain_apart(module: &Module, program: CompId, kernel: InstrId, order: &TopologicalOrder, cx: &PassContext<'_>) {
    let graph = &module[program];
    let profile = cx.profile();
    let Some(dims) = loop_dims(module, graph, kernel, profile) else { return };
    let operands: BTreeSet<InstrId> = graph[kernel].operands().iter().copied().collect();
    for producer in operands.into_iter().filter(|&o| loop_dims(module, graph, o, profile).is_some()) {
        let misfit = misfit(module, graph, kernel, producer, &dims, profile);
        if let Some(reason) = misfit.or_else(|| passing(module, graph, kernel, producer, order)) {
            cx.explain(|| FusionDecision::new(FuseOutputs.name(), module, program, producer, kernel, reason));
        }
    }
}

/// Whether `kernel` computes the next state of a loop in place while `other` reads other elements of the same state. A
/// merged kernel would need a copy in each iteration.
fn loses_state(module: &Module, graph: &Computation, kernel: InstrId, other: InstrId) -> bool {
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
    let kept = |o: InstrId| {
        reads_in_place(module, graph, kernel, o) && reads(other, o) && !reads_in_place(module, graph, other, o)
    };
    graph[kernel].operands().iter().any(|&o| state(o).is_some_and(next) && kept(o))
}

/// Returns the number of instructions and the number of arrays, read and written, of a merged kernel.
fn needs(module: &Module, graph: &Computation, a: InstrId, b: InstrId) -> (usize, usize) {
    let size = |id: InstrId| match graph[id].op() {
        Op::Fusion(fusion) => module[fusion.computation].len(),
        _ => 1,
    };
    let outputs = graph[a].shape().leaves().len() + 1;
    let operands = graph[a].operands().len() + graph[b].operands().len();
    (size(a) + size(b), operands + outputs)
}

/// Whether a kernel reads an operand only at the index of the current loop iteration.
pub(super) fn reads_in_place(module: &Module, graph: &Computation, kernel: InstrId, operand: InstrId) -> bool {
    let Op::Fusion(fusion) = graph[kernel].op() else {
        return graph[kernel]
            .operands()
            .iter()
            .all(|&o| o != operand || graph[o].shape().compatible(graph[kernel].shape()));
    };
    let body = &module[fusion.computation];
    let accesses = accesses(body);
    let positions = graph[kernel].operands().iter().enumerate().filter(|(_, o)| **o == operand);
    let parameters = positions.map(|(position, _)| body.parameters()[position]);
    parameters.into_iter().all(|p| accesses[p].iter().all(ElementAccess::is_loop_index))
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
