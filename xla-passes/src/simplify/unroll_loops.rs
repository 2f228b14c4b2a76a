//! Loop unrolling: replaces a short loop with few iterations by its iterations.

use std::collections::HashMap;

use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, InstrId, Instruction, Module, Op, Result};

use crate::analysis::loops;
use crate::analysis::trip_count::trip_count;
use crate::rewrite::graph;
use crate::rewrite::growth::Growth;
use crate::{Pass, PassContext};

/// Maximum trip count of unrolled loops.
const MAX_ITERATIONS: u64 = 8;

/// Maximum number of instructions in all iterations together.
const MAX_INSTRUCTIONS: usize = 512;

/// Fully unrolls counting loops of at most 8 iterations, if the iterations have at most 512 instructions in total and
/// contain no loop, branch or call. A loop of one iteration is replaced by its body whatever that contains, and a loop
/// without iterations by its initial state.
///
/// The iterations can then fuse with each other and with surrounding code: the iterations of a random number generator
/// over a large array become one kernel instead of one for each iteration.
pub struct UnrollLoops;

impl Pass for UnrollLoops {
    fn name(&self) -> &'static str {
        "unroll-loops"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let callers = loops::caller_counts(module);
        let mut growth = Growth::of(module);
        for caller in module.post_order() {
            for (id, body, iterations) in short_loops(module, caller, &callers) {
                let copied = if iterations > 1 { module[body].len().saturating_mul(iterations as usize) } else { 0 };
                if !growth.admits(copied) || !cx.allow_rewrite(self.name()) {
                    continue;
                }
                match iterations {
                    1 => run_once(module, caller, id, body, &callers)?,
                    _ => unroll(module, caller, id, body, iterations)?,
                }
            }
        }
        Ok(())
    }
}

fn short_loops(module: &Module, caller: CompId, callers: &HashMap<CompId, usize>) -> Vec<(InstrId, CompId, u64)> {
    let short = |(id, instruction): (InstrId, &Instruction)| {
        let Op::While(op) = instruction.op() else { return None };
        let iterations = trip_count(module, caller, id).filter(|&n| n <= MAX_ITERATIONS)?;
        let body = &module[op.body];
        let straight = body.iter().all(|(_, i)| i.op().call_context() != CallContext::Control);
        let few = body.len().saturating_mul(iterations as usize) <= MAX_INSTRUCTIONS;
        // Computations that a body calls have one caller, so that the body may be moved but not copied.
        let moved = iterations == 0 || (iterations == 1 && callers.get(&op.body) == Some(&1));
        ((moved || (straight && few)) && graph::is_free(instruction)).then_some((id, op.body, iterations))
    };
    module[caller].iter().filter_map(short).collect()
}

/// Replaces a loop of one iteration by its body. The body is removed if it has no other caller.
fn run_once(
    module: &mut Module,
    caller: CompId,
    id: InstrId,
    body: CompId,
    callers: &HashMap<CompId, usize>,
) -> Result<()> {
    let state = module[caller][id].operand(0);
    graph::inline(module, caller, id, body, &[state])?;
    if callers.get(&body) == Some(&1) { module.remove(body) } else { Ok(()) }
}

fn unroll(module: &mut Module, caller: CompId, id: InstrId, body: CompId, iterations: u64) -> Result<()> {
    let body = module[body].clone();
    let graph = module.computation_mut(caller);
    let mut state = graph[id].operand(0);
    for _ in 0..iterations {
        state = graph::splice(graph, &body, &[state]);
    }
    graph.replace_all_uses(id, state);
    graph.remove(id)
}
