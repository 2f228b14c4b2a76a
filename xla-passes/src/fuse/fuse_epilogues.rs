//! Epilogue fusion: fuses elementwise operations on a contraction's result with the contraction.
//!
//! ```text
//! d = dot(x, w)                        for each element: d = dot(x, w)
//! y = gelu(d + b)               ─>     y = gelu(d + b) in the memory of d
//! ```
//!
//! A backend computes the contraction into the memory of the fusion's result and then applies the epilogue in place: in
//! registers in its own contraction kernels, by a library's epilogue, or in a second loop right after the library call.

use xla_hlo::ops::FusionKind;
use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Module, Op, Result};

use super::fuse_rows::{Kernel, merged, replace};
use super::kernel_facts::{reads_in_place, reduces_nothing};
use super::order::TopologicalOrder;
use super::programs;
use crate::analysis::op_cost::{Arithmetic, arithmetic};
use crate::framework::explain::{FusionDecision, FusionReason};
use crate::framework::profile::EpilogueProfile;
use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Fuses a dot or a convolution with the only loop kernel that reads it, if that kernel is elementwise with the same
/// element type and the target's [`EpilogueProfile`] supports it. Runs after the other fusion passes. The result is a
/// fusion of kind `kOutput` that contains one contraction, whose operands are parameters.
pub struct FuseEpilogues;

impl Pass for FuseEpilogues {
    fn name(&self) -> &'static str {
        "fuse-epilogues"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let profile = &cx.profile().fusion.epilogues;
        if profile.of.is_empty() {
            return Ok(());
        }
        for program in programs(module) {
            let mut contractions = module[program].post_order();
            contractions.retain(|&id| takes_epilogue(&module[program], id, profile));
            if contractions.is_empty() {
                continue;
            }
            let mut order = TopologicalOrder::new(&module[program]);
            for contraction in contractions {
                let [reader] = module[program][contraction].users()[..] else { continue };
                let apart = apart(module, program, contraction, reader);
                let reason = apart.clone().unwrap_or(FusionReason::Epilogue);
                cx.explain(|| FusionDecision::new(self.name(), module, program, contraction, reader, reason));
                if apart.is_none() && cx.allow_rewrite(self.name()) {
                    join(module, program, contraction, reader, &mut order)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether the target supports an epilogue for this contraction.
fn takes_epilogue(computation: &Computation, id: InstrId, profile: &EpilogueProfile) -> bool {
    let instruction = &computation[id];
    let known = |o: InstrId| {
        computation[o].shape().as_array().is_some_and(|a| a.is_static() && profile.types.contains(&a.element_type()))
    };
    profile.of.contains(&instruction.opcode())
        && graph::is_free(instruction)
        && computation.root() != id
        && instruction.operands().iter().copied().chain([id]).all(known)
        && arithmetic(computation, id, Arithmetic::default()).flops >= profile.least_flops
}

/// Returns the reason against fusing a kernel with the contraction that it reads; `None` if they can be fused.
fn apart(module: &Module, program: CompId, contraction: InstrId, reader: InstrId) -> Option<FusionReason> {
    let graph = &module[program];
    let array = |id: InstrId| graph[id].shape().as_array();
    let (Some(from), Some(to)) = (array(contraction), array(reader)) else { return Some(FusionReason::NoArray) };
    let is_loop = match graph[reader].op() {
        Op::Fusion(f) => f.kind == FusionKind::Loop && f.aliases.is_empty() && reduces_nothing(&module[f.computation]),
        op => super::access::is_elementwise(op),
    };
    if !is_loop || !graph::is_free(&graph[reader]) {
        return Some(FusionReason::ReaderIsNoKernel(graph[reader].opcode()));
    }
    let same_places = |a: &ArrayShape, b: &ArrayShape| a.same_dims(b) && a.element_type() == b.element_type();
    (!same_places(from, to) || !reads_in_place(module, graph, reader, contraction))
        .then_some(FusionReason::OtherElements)
}

/// Replaces both by one fusion.
fn join(
    module: &mut Module,
    program: CompId,
    contraction: InstrId,
    reader: InstrId,
    order: &mut TopologicalOrder,
) -> Result<()> {
    let (first, second) = (Kernel::alone(&module[program], contraction), Kernel::of(module, program, reader));
    let Some(second) = second else { return Ok(()) };
    let graph = &module[program];
    let lone = !matches!(graph[reader].op(), Op::Fusion(_));
    let opcodes = || [contraction, reader].map(|id| graph[id].opcode().name().replace('-', "_")).join("_");
    let name = lone.then(|| format!("{}_fusion", opcodes()));
    let both = merged(contraction, &first, &second, false);
    let fusion = replace(module, program, contraction, reader, both, false, order)?;
    if let Some(name) = name {
        module.computation_mut(program).rename(fusion, &name);
    }
    Ok(())
}
