//! Operations put in terms of others that every target has: one pass for each, one file for each pass.
//!
//! What an expansion gives is what the evaluator gives for the operation itself, up to rounding where the pass says so.

mod batch_norm;
mod bit_generator;
mod bitcast_convert;
mod cholesky;
mod clamp;
mod counted;
mod custom_call;
mod erf;
mod fft;
mod functions;
mod matrix;
mod philox;
mod ragged_dot;
mod rng;
mod scaled_dot;
mod scan;
mod select_and_scatter;
mod stochastic_convert;
mod threefry;
mod top_k;
mod triangular_solve;

pub use batch_norm::ExpandBatchNorms;
pub use bit_generator::ExpandBitGenerators;
pub use bitcast_convert::ExpandBitcastConverts;
pub(crate) use bitcast_convert::pattern_type;
pub use cholesky::ExpandCholesky;
pub use clamp::ExpandClamps;
pub use custom_call::ExpandCustomCalls;
pub use fft::ExpandFfts;
pub use functions::{ExpandFunctions, expandable as expandable_functions};
pub use ragged_dot::ExpandRaggedDots;
pub use rng::ExpandRng;
pub use scaled_dot::ExpandScaledDots;
pub use scan::ExpandScans;
pub use select_and_scatter::ExpandSelectAndScatter;
pub use stochastic_convert::ExpandStochasticConverts;
pub use top_k::ExpandTopK;
pub use triangular_solve::ExpandTriangularSolves;

use xla_hlo::{CompId, Computation, ElementType, InstrId, Module, Opcode, Result};

use crate::graph::is_static;
use crate::insert::Inserter;
use crate::{Pass, PassContext};

/// Replaces each instruction of that opcode, where the target lacks it. Sizes that are known only when running must be gone.
fn expand_lacking(
    pass: &dyn Pass,
    opcode: Opcode,
    module: &mut Module,
    cx: &PassContext<'_>,
    expand: impl Fn(&mut Inserter<'_>, InstrId) -> Result<InstrId>,
) -> Result<()> {
    if !cx.profile().lacks.contains(&opcode) {
        return Ok(());
    }
    expand_each(pass, module, cx, |graph, id| graph[id].opcode() == opcode && is_static(graph, id), expand)
}

/// The element type in which an expansion computes with arrays of type `ty`: `f32` for narrower floats.
fn computed_in(ty: ElementType) -> ElementType {
    if ty.is_float() && ty.bit_width() < 32 { ElementType::F32 } else { ty }
}

/// Replaces each instruction that `wanted` picks by what `expand` writes for it, as long as the pass may rewrite; `expand` gives
/// what stands for its value.
fn expand_each(
    pass: &dyn Pass,
    module: &mut Module,
    cx: &PassContext<'_>,
    wanted: impl Fn(&Computation, InstrId) -> bool,
    expand: impl Fn(&mut Inserter<'_>, InstrId) -> Result<InstrId>,
) -> Result<()> {
    let computations: Vec<CompId> = module.ids().collect();
    for id in computations {
        let found: Vec<InstrId> = module[id].ids().filter(|&i| wanted(&module[id], i)).collect();
        for old in found.into_iter().filter(|_| cx.allow_rewrite(pass.name())) {
            expand_one(module, id, old, &expand)?;
        }
    }
    Ok(())
}

/// Replaces one instruction by what `expand` writes for it, which takes over the control dependencies.
pub(crate) fn expand_one(
    module: &mut Module,
    id: CompId,
    old: InstrId,
    expand: impl Fn(&mut Inserter<'_>, InstrId) -> Result<InstrId>,
) -> Result<()> {
    let newest = module[id].ids().next_back();
    let new = expand(&mut Inserter::new(module, id), old)?;
    let computation = module.computation_mut(id);
    let before = computation[old].control_predecessors().to_vec();
    let after = computation[old].control_successors().to_vec();
    let written: Vec<InstrId> = computation.ids().rev().take_while(|i| Some(*i) != newest).collect();
    for instruction in written {
        before.iter().for_each(|&b| computation.add_control_dependency(b, instruction));
        after.iter().for_each(|&a| computation.add_control_dependency(instruction, a));
    }
    computation.set_schedule(None);
    computation.replace_all_uses(old, new);
    computation.remove(old)
}
