//! Folds small kernels without inputs into constants.

use xla_hlo::ops::CallContext;
use xla_hlo::{Computation, InstrId, Module, Op, Result};

use super::programs;
use crate::analysis::alias::shares;
use crate::rewrite::graph;
use crate::simplify::evaluation_budget::EvaluationBudget;
use crate::simplify::fold_constants::{MAX_MADE_ELEMENTS, replace, value};
use crate::{Pass, PassContext};

/// Evaluates fusions, broadcasts and iotas that are separate kernels because their readers need arrays in memory (a
/// dot, the updates of a scatter). Up to 1024 elements, a constant is read as fast as a kernel's result, and no kernel
/// runs. A value that its reader overwrites is kept, since a constant would be copied first.
pub struct FoldKernels;

/// Maximum number of visited elements and operations on them per kernel.
const MOST_WORK: u64 = 1 << 18;

impl Pass for FoldKernels {
    fn name(&self) -> &'static str {
        "fold-kernels"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let mut budget = EvaluationBudget::new();
        for program in programs(module) {
            for id in module[program].post_order() {
                // Few kernels have no inputs, so that readers with many operands are checked for these only.
                let graph = &module[program];
                if !is_made_from_nothing(graph, id) || !is_only_read(module, graph, id) {
                    continue;
                }
                if budget.spend(module, graph, id, MOST_WORK)
                    && let Some(literal) = value(module, graph, id)
                    && cx.allow_rewrite(self.name())
                {
                    replace(module, program, id, literal)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether all users only read the value and do not write to its memory.
fn is_only_read(module: &Module, graph: &Computation, id: InstrId) -> bool {
    let reads = |&user: &InstrId| {
        let instruction = &graph[user];
        let computes =
            instruction.op().call_context() != CallContext::Control && !matches!(instruction.op(), Op::Tuple(_));
        let mut places = instruction.operands().iter().enumerate().filter(|(_, o)| **o == id).map(|(place, _)| place);
        // Operands of computing instructions are arrays, so that operand numbers are leaf numbers.
        computes
            && instruction.operands().iter().all(|&o| graph[o].shape().as_array().is_some())
            && places.all(|place| !shares(module, graph, user).iter().any(|s| s.is_update() && s.operand == place))
    };
    let users = graph[id].users();
    graph.root() != id && !users.is_empty() && users.iter().all(reads)
}

/// Whether an instruction is a small kernel without inputs.
fn is_made_from_nothing(graph: &Computation, id: InstrId) -> bool {
    let instruction = &graph[id];
    let is_constant = |&o: &InstrId| matches!(graph[o].op(), Op::Constant(_));
    let reads_nothing = match instruction.op() {
        Op::Fusion(_) => instruction.operands().is_empty(),
        Op::Broadcast(_) => instruction.operands().iter().all(is_constant),
        Op::Iota(_) => true,
        _ => false,
    };
    let array = instruction.shape().as_array().filter(|array| array.is_static());
    reads_nothing && graph::is_free(instruction) && array.is_some_and(|a| a.element_count() <= MAX_MADE_ELEMENTS)
}
