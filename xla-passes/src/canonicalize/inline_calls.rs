//! Call inlining: a call, or a fusion that came with the program, becomes the instructions it calls.

use xla_hlo::{CompId, InstrId, Module, Op, Result};

use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Instructions beyond which modules are not grown by inlining; the others stay calls, which backends can run.
///
/// Thirty functions that each call the one before twice would be a billion instructions.
const MAX_INSTRUCTIONS: usize = 1 << 18;

/// Inlines every `call` and `fusion`, innermost first, composites included. Calls onto another execution thread stay.
///
/// Fusions of a program's author (or of another compiler) for some other target are fused anew for this one.
pub struct InlineCalls;

impl Pass for InlineCalls {
    fn name(&self) -> &'static str {
        "inline-calls"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let mut total = module.instruction_count();
        for caller in module.post_order() {
            for (call, callee) in calls(module, caller) {
                let growth = module[callee].len();
                if total.saturating_add(growth) > MAX_INSTRUCTIONS {
                    tracing::warn!(callee = module[callee].name(), "not inlined: the module would become too large");
                    continue;
                }
                if !cx.allow_rewrite(self.name()) {
                    continue;
                }
                total += growth;
                let arguments = module[caller][call].operands().to_vec();
                graph::inline(module, caller, call, callee, &arguments)?;
            }
        }
        Ok(())
    }
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
