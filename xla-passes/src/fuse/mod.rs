//! Fusion: producers are evaluated inside the kernels that consume them.

pub(crate) mod access;
mod alias_row_outputs;
mod build;
pub(crate) mod cost;
mod fold_kernels;
mod fuse_attention;
mod fuse_epilogues;
mod fuse_outputs;
mod fuse_rows;
mod fuse_scores;
mod group;
mod kernel_facts;
pub(crate) mod order;
mod plan;
mod reshape_to_bitcast;
mod rules;

pub use alias_row_outputs::AliasRowOutputs;
pub use fold_kernels::FoldKernels;
pub use fuse_attention::FuseAttention;
pub use fuse_epilogues::FuseEpilogues;
pub use fuse_outputs::FuseOutputs;
pub use fuse_rows::FuseRows;
pub use fuse_scores::FuseScores;
pub use reshape_to_bitcast::ReshapeToBitcast;

use std::collections::HashSet;

use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, Module, Result};

use crate::{Pass, PassContext};

/// Fuses elementwise operations, data movement and constants into the kernels that use them.
///
/// A kernel has one root: an elementwise or data-movement operation (`kLoop`), a reduction or an elementwise user of
/// its results (`kInput`), or a `dynamic-update-slice` that writes its update in place (`kLoop` with an operand alias).
/// The results are bit-identical. Fusible operations and the cost of recomputation come from the
/// [`TargetProfile`](crate::TargetProfile).
///
/// Contract with backends: values that do not depend on an inner loop are evaluated before it (members with one element
/// before all loops). A member that several others read through the same index is evaluated once for that index.
/// Fusions are never nested.
pub struct Fuse;

impl Pass for Fuse {
    fn name(&self) -> &'static str {
        "fuse"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        for id in programs(module) {
            let mut plan = plan::plan(&module[id], cx.profile(), cx.explainer().is_some());
            plan.decisions.drain(..).for_each(|decision| cx.explain(|| decision));
            plan.groups.retain(|group| group.members.len() > 1 && cx.allow_rewrite(self.name()));
            build::build(module, id, &plan)?;
        }
        Ok(())
    }
}

/// Returns the computations that run as programs: the entry, loop bodies and conditions, branches and called functions.
pub(crate) fn programs(module: &Module) -> Vec<CompId> {
    let mut programs = vec![module.entry_id()];
    let mut seen = HashSet::from([module.entry_id()]);
    let mut next = 0;
    while let Some(&id) = programs.get(next) {
        next += 1;
        for (_, instruction) in module[id].iter() {
            if instruction.op().call_context() == CallContext::Control {
                programs.extend(instruction.op().called_computations().into_iter().filter(|&id| seen.insert(id)));
            }
        }
    }
    programs
}
