//! Conditionals whose choice is known become the branch that is chosen.

use xla_hlo::{CompId, Computation, InstrId, Literal, Module, Op, Result, Scalar};

use crate::{Pass, PassContext, graph};

/// `conditional(constant, ...)`, and one with a single branch, becomes the chosen branch.
pub struct SimplifyConditionals;

impl Pass for SimplifyConditionals {
    fn name(&self) -> &'static str {
        "simplify-conditionals"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        for caller in module.post_order() {
            for (conditional, branch) in decided(module, caller) {
                let Op::Conditional(op) = module[caller][conditional].op() else { continue };
                let callee = op.branches[branch];
                if !cx.allow_rewrite(self.name()) {
                    continue;
                }
                let argument = module[caller][conditional].operand(branch + 1);
                graph::inline(module, caller, conditional, callee, &[argument])?;
            }
        }
        Ok(())
    }
}

fn decided(module: &Module, caller: CompId) -> Vec<(InstrId, usize)> {
    let computation = &module[caller];
    computation
        .iter()
        .filter_map(|(id, instruction)| match instruction.op() {
            Op::Conditional(op) => Some((id, chosen(computation, instruction.operand(0), op.branches.len())?)),
            _ => None,
        })
        .collect()
}

/// The branch that runs, if it is known: a predicate takes branch 0 when true, an index out of range the last.
fn chosen(computation: &Computation, selector: InstrId, branches: usize) -> Option<usize> {
    let last = branches.checked_sub(1)?;
    if last == 0 {
        return Some(0);
    }
    let Op::Constant(constant) = computation[selector].op() else { return None };
    let scalar = |l: &Literal| l.shape().as_array().is_some_and(|s| s.element_count() == 1).then(|| l.get(0));
    match scalar(&constant.literal)? {
        Scalar::Pred(p) => Some(usize::from(!p)),
        index => Some(usize::try_from(index.as_i128()?).unwrap_or(last).min(last)),
    }
}
