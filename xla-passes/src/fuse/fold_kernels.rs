//! Folds small kernels that read nothing into constants.

use xla_hlo::ops::CallContext;
use xla_hlo::{Computation, InstrId, Literal, Module, Op, Result};

use super::programs;
use crate::analysis::alias::shares;
use crate::rewrite::graph;
use crate::simplify::fold_constants::{MAX_MADE_ELEMENTS, replace, value};
use crate::{Pass, PassContext};

/// Evaluates fusions, broadcasts and iotas that were left as kernels of their own, since their readers need arrays in
/// memory (a dot, the updates of a scatter). Up to 1024 elements are read from a constant as fast as from a kernel's
/// result, and the kernel need not run. A value that its reader overwrites stays: a constant would be copied first.
pub struct FoldKernels;

/// Evaluations of single elements that one kernel may take.
const MOST_WORK: usize = 1 << 16;

impl Pass for FoldKernels {
    fn name(&self) -> &'static str {
        "fold-kernels"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        for program in programs(module) {
            for id in module[program].post_order() {
                if !is_only_read(module, &module[program], id) {
                    continue;
                }
                if let Some(literal) = made(module, &module[program], id)
                    && cx.allow_rewrite(self.name())
                {
                    replace(module, program, id, literal)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether all users are operations that read the value and do not go on in its memory.
fn is_only_read(module: &Module, graph: &Computation, id: InstrId) -> bool {
    let reads = |&user: &InstrId| {
        let instruction = &graph[user];
        let computes =
            instruction.op().call_context() != CallContext::Control && !matches!(instruction.op(), Op::Tuple(_));
        let mut places = instruction.operands().iter().enumerate().filter(|(_, o)| **o == id).map(|(place, _)| place);
        // Operands of what computes are arrays: their places are the numbers of their leaves.
        computes
            && instruction.operands().iter().all(|&o| graph[o].shape().as_array().is_some())
            && places.all(|place| !shares(module, graph, user).iter().any(|s| s.is_update() && s.operand == place))
    };
    let users = graph[id].users();
    graph.root() != id && !users.is_empty() && users.iter().all(reads)
}

/// The value of a small kernel that reads nothing.
fn made(module: &Module, graph: &Computation, id: InstrId) -> Option<Literal> {
    let instruction = &graph[id];
    let elements = instruction.shape().as_array().filter(|s| s.is_static())?.element_count();
    let is_constant = |&o: &InstrId| matches!(graph[o].op(), Op::Constant(_));
    let work = match instruction.op() {
        Op::Fusion(fusion) if instruction.operands().is_empty() => module[fusion.computation].len(),
        Op::Broadcast(_) if instruction.operands().iter().all(is_constant) => 1,
        Op::Iota(_) => 1,
        _ => return None,
    };
    let small = elements <= MAX_MADE_ELEMENTS && elements.saturating_mul(work) <= MOST_WORK;
    (small && graph::is_free(instruction)).then(|| value(module, graph, id))?
}
