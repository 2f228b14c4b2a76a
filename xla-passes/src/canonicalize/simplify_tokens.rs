//! Token simplification: removes domains, and dependencies on tokens that order no effect.

use xla_hlo::{CompId, Computation, InstrId, Module, Op, Result};

use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Replaces `domain(x)` by `x`, and `add-dependency(x, t)` by `x` if `t` is an `after-all` of only such tokens.
pub struct SimplifyTokens;

impl Pass for SimplifyTokens {
    fn name(&self) -> &'static str {
        "simplify-tokens"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            rewrite(module.computation_mut(id), cx)?;
        }
        Ok(())
    }
}

fn rewrite(computation: &mut Computation, cx: &PassContext<'_>) -> Result<()> {
    let mut idle = xla_hlo::entity::SecondaryMap::<InstrId, bool>::new(false);
    for id in computation.post_order() {
        let instruction = &computation[id];
        if !graph::is_free(instruction) {
            continue;
        }
        let is_idle = match instruction.op() {
            Op::AfterAll(_) => {
                idle[id] = instruction.operands().iter().all(|&token| idle[token]);
                false
            }
            Op::AddDependency(_) => idle[instruction.operand(1)],
            Op::Domain(_) => true,
            _ => false,
        };
        if is_idle && cx.allow_rewrite(SimplifyTokens.name()) {
            let value = instruction.operand(0);
            computation.replace_all_uses(id, value);
            computation.remove(id)?;
        }
    }
    Ok(())
}
