//! Call inlining: a call, or a fusion that came with the program, becomes the instructions it calls.

use xla_hlo::effects::Effects;
use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, InstrId, Module, Op, Result};

use super::dead_code;
use crate::rewrite::graph;
use crate::rewrite::growth::{self, Growth, MAX_INSTRUCTIONS};
use crate::simplify::common_subexpressions::merge_in;
use crate::{Pass, PassContext};

/// Inlines every `call` and `fusion`, innermost first, composites included. Calls onto another execution thread stay.
///
/// If copies for all calls would make the module too large, equal instructions of a caller become one before and after
/// its calls are inlined, so that functions that call others on the same values stay small. Calls that still do not fit
/// stay calls.
///
/// Fusions of a program's author (or of another compiler) for some other target are fused anew for this one.
pub struct InlineCalls;

impl Pass for InlineCalls {
    fn name(&self) -> &'static str {
        "inline-calls"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let mut growth = Growth::of(module);
        let shares = expanded_size(module) > MAX_INSTRUCTIONS;
        for caller in module.post_order() {
            if shares {
                merge_equal(module, caller, cx, &mut growth)?;
            }
            for (call, callee) in calls(module, caller) {
                if !growth.admits(module[callee].len()) {
                    tracing::warn!(callee = module[callee].name(), "not inlined: the module would become too large");
                    continue;
                }
                if !cx.allow_rewrite(self.name()) {
                    continue;
                }
                let arguments = module[caller][call].operands().to_vec();
                graph::inline(module, caller, call, callee, &arguments)?;
            }
            if shares {
                merge_equal(module, caller, cx, &mut growth)?;
            }
        }
        Ok(())
    }
}

/// Instructions of a module in which all calls and fusions are inlined.
fn expanded_size(module: &Module) -> usize {
    let sizes = growth::expanded_sizes(module, |context| matches!(context, CallContext::Control | CallContext::Fusion));
    module.ids().map(|id| sizes[id]).fold(0, usize::saturating_add)
}

/// Makes equal instructions of one computation one, and removes those without use.
fn merge_equal(module: &mut Module, id: CompId, cx: &PassContext<'_>, growth: &mut Growth) -> Result<()> {
    let before = module[id].len();
    let effects = Effects::of(module);
    merge_in(module, id, &effects, cx)?;
    dead_code::sweep(module, id, &effects)?;
    growth.shrinks(before - module[id].len());
    Ok(())
}

fn calls(module: &Module, caller: CompId) -> Vec<(InstrId, CompId)> {
    let thread = module[caller].execution_thread();
    let same_thread = |callee: CompId| module[callee].execution_thread() == thread;
    module[caller]
        .iter()
        .filter_map(|(id, instruction)| match instruction.op() {
            Op::Call(call) if same_thread(call.computation) => Some((id, call.computation)),
            Op::Fusion(fusion) if same_thread(fusion.computation) => Some((id, fusion.computation)),
            _ => None,
        })
        .collect()
}
