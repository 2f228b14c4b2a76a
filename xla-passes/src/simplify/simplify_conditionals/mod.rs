//! Conditional simplification: known predicates, equal branches, unused operands and results.

mod interface;
mod select;

use std::collections::HashMap;

use xla_hlo::effects::Effects;
use xla_hlo::ops::{Conditional, UnaryOp};
use xla_hlo::{CompId, Computation, ElementType, InstrId, Literal, Module, Op, Result, Scalar};

use crate::analysis::loops;
use crate::rewrite::graph;
use crate::simplify::common_subexpressions;
use crate::{Pass, PassContext};

/// Simplifies or removes conditionals:
///
/// - a conditional with a known choice, a single branch, or equal branches on equal operands becomes the branch;
/// - a conditional on `not p` becomes one on `p` with swapped branches, and one on a converted boolean becomes one on
///   the boolean;
/// - a result that is the same constant or outside value in all branches becomes that value;
/// - unused results and unused elements of operands are removed, and constants move into the branches;
/// - branches of a few cheap operations on small arrays become a `select` of their results.
pub struct SimplifyConditionals;

impl Pass for SimplifyConditionals {
    fn name(&self) -> &'static str {
        "simplify-conditionals"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let callers = loops::caller_counts(module);
        let effects = Effects::of(module);
        for caller in module.post_order() {
            for id in conditionals(&module[caller]) {
                if let Some(branch) = chosen(module, caller, id) {
                    take(module, caller, id, branch, cx)?;
                    continue;
                }
                turn(module, caller, id, cx);
                if !is_wanted(&module[caller], id) || !graph::is_free(&module[caller][id]) {
                    continue;
                }
                if select::fits(module, caller, id, &effects) {
                    select::write(module, caller, id, cx)?;
                } else if own_branches(module, caller, id, &callers) {
                    interface::simplify(module, caller, id, cx, &effects)?;
                }
            }
        }
        Ok(())
    }
}

fn conditionals(computation: &Computation) -> Vec<InstrId> {
    computation.iter().filter(|(_, i)| matches!(i.op(), Op::Conditional(_))).map(|(id, _)| id).collect()
}

fn is_wanted(computation: &Computation, id: InstrId) -> bool {
    !computation[id].users().is_empty() || computation.root() == id
}

fn conditional(module: &Module, caller: CompId, id: InstrId) -> Option<&Conditional> {
    match module[caller][id].op() {
        Op::Conditional(op) => Some(op),
        _ => None,
    }
}

/// Whether each branch has no other caller and occurs only once in this conditional.
fn own_branches(module: &Module, caller: CompId, id: InstrId, callers: &HashMap<CompId, usize>) -> bool {
    conditional(module, caller, id).is_some_and(|op| op.branches.iter().all(|b| callers.get(b) == Some(&1)))
}

/// Replaces a conditional by one of its branches.
fn take(module: &mut Module, caller: CompId, id: InstrId, branch: usize, cx: &PassContext<'_>) -> Result<()> {
    let Some(callee) = conditional(module, caller, id).map(|op| op.branches[branch]) else { return Ok(()) };
    if !cx.allow_rewrite(SimplifyConditionals.name()) {
        return Ok(());
    }
    let argument = module[caller][id].operand(branch + 1);
    graph::inline(module, caller, id, callee, &[argument])
}

/// Returns the branch that runs, or an equal one, if it is known. A true predicate selects branch 0, and an index out
/// of range selects the last branch.
fn chosen(module: &Module, caller: CompId, id: InstrId) -> Option<usize> {
    let branches = &conditional(module, caller, id)?.branches;
    let operands = module[caller][id].operands();
    let last = branches.len().checked_sub(1)?;
    let alike = |i: &usize| {
        operands[1] == operands[i + 1]
            && (branches[0] == branches[*i]
                || common_subexpressions::computations_equal(&module[branches[0]], &module[branches[*i]]))
    };
    if (1..=last).all(|i| alike(&i)) {
        return Some(0);
    }
    let Op::Constant(constant) = module[caller][operands[0]].op() else { return None };
    let scalar = |l: &Literal| l.shape().as_array().is_some_and(|s| s.element_count() == 1).then(|| l.get(0));
    match scalar(&constant.literal)? {
        Scalar::Pred(p) => Some(usize::from(!p)),
        index => Some(usize::try_from(index.as_i128()?).unwrap_or(last).min(last)),
    }
}

/// Replaces the selector by its operand if it is `not p` or a conversion of `p`, and swaps the branches.
fn turn(module: &mut Module, caller: CompId, id: InstrId, cx: &PassContext<'_>) {
    while let Some(asked) = turned(module, caller, id) {
        if !cx.allow_rewrite(SimplifyConditionals.name()) {
            return;
        }
        let Some(mut op) = conditional(module, caller, id).cloned() else { return };
        op.branches.swap(0, 1);
        op.by_predicate = true;
        let computation = module.computation_mut(caller);
        let (first, second) = (computation[id].operand(1), computation[id].operand(2));
        computation.set_op(id, op.into());
        computation.set_operands(id, vec![asked, second, first]);
    }
}

/// Returns the boolean that selects the second of two branches if it is true.
fn turned(module: &Module, caller: CompId, id: InstrId) -> Option<InstrId> {
    let computation = &module[caller];
    let selector = &computation[computation[id].operand(0)];
    let is_truth = |id: InstrId| computation[id].shape().element_type() == Some(ElementType::Pred);
    let turns = match selector.op() {
        Op::Unary(unary) => unary.op == UnaryOp::Not && is_truth(selector.operand(0)),
        // True converts to 1, which selects branch 1.
        Op::Convert(_) => is_truth(selector.operand(0)) && !is_truth(computation[id].operand(0)),
        _ => false,
    };
    let two = conditional(module, caller, id)?.branches.len() == 2;
    (turns && two).then(|| selector.operand(0))
}
