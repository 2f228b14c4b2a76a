//! Replaces cheap conditionals by selects of the branches' results.

use xla_hlo::effects::Effects;
use xla_hlo::ops::{Compare, CompareDirection, Constant, Family, GetTupleElement, Select, Tuple};
use xla_hlo::{
    ArrayShape, CompId, Computation, ElementType, InstrId, Instruction, Literal, Module, Op, Result, Scalar, Shape,
};

use super::{SimplifyConditionals, conditional};
use crate::analysis::op_cost::{element_cost, elements};
use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Maximum work of all branches and selects together, in simple operations on elements. About the cost of selecting a
/// branch and launching its kernels.
const MAX_WORK: f64 = 1024.0;

/// Maximum number of branches.
const MAX_BRANCHES: usize = 4;

/// Whether all branches are cheap enough to compute, have no effects and cannot fail.
pub(super) fn fits(module: &Module, caller: CompId, id: InstrId, effects: &Effects) -> bool {
    let Some(op) = conditional(module, caller, id) else { return false };
    let shape = module[caller][id].shape();
    let results = match shape {
        Shape::Tuple(results) => &results[..],
        shape => std::slice::from_ref(shape),
    };
    let selected = elements(shape).saturating_mul(op.branches.len() as u64 - 1) as f64;
    let branches = || op.branches.iter().map(|&b| branch_work(&module[b], effects));
    op.branches.len() <= MAX_BRANCHES
        && !results.is_empty()
        && results.iter().all(is_static)
        && branches().try_fold(selected, |sum, work| Some(sum + work?)).is_some_and(|work| work <= MAX_WORK)
}

fn is_static(shape: &Shape) -> bool {
    shape.as_array().is_some_and(ArrayShape::is_static)
}

/// Returns the cost of a branch; `None` unless it only contains cheap operations.
fn branch_work(branch: &Computation, effects: &Effects) -> Option<f64> {
    let work = |instruction: &Instruction| {
        if !graph::is_free(instruction) || effects.has_effect(instruction) {
            return None;
        }
        match instruction.op() {
            Op::Parameter(_) | Op::Tuple(_) | Op::GetTupleElement(_) | Op::Constant(_) => Some(0.0),
            op if is_cheap(op) && is_static(instruction.shape()) => {
                let ty = instruction.shape().element_type()?;
                // Data movement without arithmetic also counts as work.
                Some(element_cost(op, ty).max(0.5) * elements(instruction.shape()) as f64)
            }
            _ => None,
        }
    };
    branch.iter().try_fold(0.0, |sum, (_, instruction)| Some(sum + work(instruction)?))
}

/// Whether a kernel computes the operation element by element, independently of values. Copies are deliberate, and an
/// update may be in place.
fn is_cheap(op: &Op) -> bool {
    match op {
        Op::Copy(_) | Op::Bitcast(_) | Op::DynamicUpdateSlice(_) => false,
        _ => matches!(op.opcode().family(), Family::Elementwise | Family::Movement),
    }
}

/// Computes all branches and selects among their results.
pub(super) fn write(module: &mut Module, caller: CompId, id: InstrId, cx: &PassContext<'_>) -> Result<()> {
    let Some(op) = conditional(module, caller, id).cloned() else { return Ok(()) };
    if !cx.allow_rewrite(SimplifyConditionals.name()) {
        return Ok(());
    }
    let branches: Vec<Computation> = op.branches.iter().map(|&b| module[b].clone()).collect();
    let computation = module.computation_mut(caller);
    let operands = computation[id].operands().to_vec();
    let place = |(branch, &operand): (&Computation, &InstrId)| graph::splice(computation, branch, &[operand]);
    let mut values: Vec<InstrId> = branches.iter().zip(&operands[1..]).map(place).collect();
    let computation = module.computation_mut(caller);
    // All other indices select the last branch.
    let mut result = values.pop().unwrap_or(id);
    for (i, value) in values.into_iter().enumerate().rev() {
        let takes = takes(computation, operands[0], i);
        result = choose(computation, takes, value, result);
    }
    computation.replace_all_uses(id, result);
    computation.remove(id)
}

/// Computes whether branch `i` is taken: a boolean selects the first branch if it is true, an index selects the branch
/// of its number.
fn takes(computation: &mut Computation, selector: InstrId, i: usize) -> InstrId {
    let Some(ty) = computation[selector].shape().element_type().filter(|&ty| ty != ElementType::Pred) else {
        return selector;
    };
    let literal = Literal::scalar(ty, Scalar::from_i64(ty, i as i64));
    let shape = computation[selector].shape().clone();
    let number = computation.add(Instruction::new(Constant { literal }.into(), shape.clone(), []));
    let compare = Compare::new(CompareDirection::Eq);
    let truth = Shape::scalar(ElementType::Pred).with_default_layouts();
    computation.add(Instruction::new(compare.into(), truth, [selector, number]))
}

/// Selects `on_true` or `on_false`, which are arrays or tuples of arrays.
fn choose(computation: &mut Computation, takes: InstrId, on_true: InstrId, on_false: InstrId) -> InstrId {
    if on_true == on_false {
        return on_true;
    }
    let shape = computation[on_true].shape().clone();
    let Some(results) = shape.as_tuple() else {
        return computation.add(Instruction::new(Select.into(), shape, [takes, on_true, on_false]));
    };
    let mut element = |tuple: InstrId, index: usize| match computation[tuple].op() {
        Op::Tuple(_) => computation[tuple].operand(index),
        _ => computation.add(Instruction::new(GetTupleElement { index }.into(), results[index].clone(), [tuple])),
    };
    let pairs: Vec<_> = (0..results.len()).map(|i| (element(on_true, i), element(on_false, i))).collect();
    let chosen: Vec<InstrId> = pairs.into_iter().map(|(a, b)| choose(computation, takes, a, b)).collect();
    computation.add(Instruction::new(Tuple.into(), shape, chosen))
}
