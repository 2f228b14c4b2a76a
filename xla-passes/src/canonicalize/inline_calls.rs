//! Call inlining: replaces calls, and fusions of the input program, by the called instructions.

use xla_hlo::effects::Effects;
use xla_hlo::entity::SecondaryMap;
use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, InstrId, Module, Op, Result};

use super::dead_code;
use crate::rewrite::graph;
use crate::rewrite::growth::{self, Growth, MAX_INSTRUCTIONS};
use crate::simplify::common_subexpressions::merge_in;
use crate::{Pass, PassContext};

/// Inlines every `call` and `fusion`, innermost first, composites included. Calls onto another execution thread are
/// kept.
///
/// If inlining all calls would make the module too large, equal instructions of a caller are merged before and after
/// its calls are inlined, so that functions that call others on the same values stay small. Calls that still exceed the
/// limit are kept.
///
/// Fusions in the input program were chosen for another target; this compiler fuses again for its own.
pub struct InlineCalls;

impl Pass for InlineCalls {
    fn name(&self) -> &'static str {
        "inline-calls"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if expanded_size(module) > MAX_INSTRUCTIONS {
            inline_called_once(module, cx)?;
        }
        let mut growth = Growth::of(module);
        let mut shared = (expanded_size(module) > MAX_INSTRUCTIONS).then(|| Effects::of(module));
        for caller in module.post_order() {
            if let Some(effects) = &shared {
                merge_equal(module, caller, effects, cx, &mut growth)?;
            }
            let computations = module.len();
            for (call, callee) in calls(module, caller) {
                if !growth.admits(module[callee].len()) {
                    tracing::warn!(callee = module[callee].name(), "not inlined: the module would become too large");
                    continue;
                }
                if cx.allow_rewrite(self.name()) {
                    inline(module, caller, call, callee)?;
                }
            }
            // Inlining changes no computation's effects, but copies of asynchronous computations are new.
            if shared.is_some() && module.len() > computations {
                shared = Some(Effects::of(module));
            }
            if let Some(effects) = &shared {
                merge_equal(module, caller, effects, cx, &mut growth)?;
            }
        }
        Ok(())
    }
}

/// Moves functions with a single call site to that site, callers first, so that each instruction is copied once for any
/// nesting depth. Innermost first, inlining `n` nested functions would copy `n²/2` function bodies.
fn inline_called_once(module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
    let mut sites = SecondaryMap::<CompId, usize>::new(0);
    for (_, computation) in module.iter() {
        let callees = computation.iter().flat_map(|(_, instruction)| instruction.op().called_computations());
        callees.for_each(|callee| sites[callee] += 1);
    }
    let mut callers = module.post_order();
    callers.reverse();
    for caller in callers {
        if module.get(caller).is_none() {
            continue;
        }
        let mut waiting = calls(module, caller);
        while let Some((call, callee)) = waiting.pop() {
            if sites[callee] != 1 || !cx.allow_rewrite(InlineCalls.name()) {
                continue;
            }
            let existing = module[caller].ids().next_back();
            inline(module, caller, call, callee)?;
            module.remove(callee)?;
            let new = module[caller].ids().rev().take_while(|id| Some(*id) > existing);
            let new: Vec<_> = new.filter_map(|id| Some((id, callee_of(module, caller, id)?))).collect();
            waiting.extend(new);
        }
    }
    Ok(())
}

fn inline(module: &mut Module, caller: CompId, call: InstrId, callee: CompId) -> Result<()> {
    let arguments = module[caller][call].operands().to_vec();
    graph::inline(module, caller, call, callee, &arguments)
}

/// Returns the number of instructions of a module after all calls and fusions are inlined.
fn expanded_size(module: &Module) -> usize {
    let sizes = growth::expanded_sizes(module, |context| matches!(context, CallContext::Control | CallContext::Fusion));
    module.ids().map(|id| sizes[id]).fold(0, usize::saturating_add)
}

/// Merges equal instructions of one computation, and removes unused ones.
fn merge_equal(
    module: &mut Module,
    id: CompId,
    effects: &Effects,
    cx: &PassContext<'_>,
    growth: &mut Growth,
) -> Result<()> {
    let before = module[id].len();
    merge_in(module, id, effects, cx)?;
    dead_code::sweep(module, id, effects)?;
    growth.shrinks(before - module[id].len());
    Ok(())
}

fn calls(module: &Module, caller: CompId) -> Vec<(InstrId, CompId)> {
    module[caller].ids().filter_map(|id| Some((id, callee_of(module, caller, id)?))).collect()
}

/// Returns the function that an instruction calls on its caller's execution thread.
fn callee_of(module: &Module, caller: CompId, id: InstrId) -> Option<CompId> {
    let callee = match module[caller][id].op() {
        Op::Call(call) => call.computation,
        Op::Fusion(fusion) => fusion.computation,
        _ => return None,
    };
    (module[callee].execution_thread() == module[caller].execution_thread()).then_some(callee)
}
