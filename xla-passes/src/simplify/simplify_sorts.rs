//! Sort simplification: removes sorts of single elements, redundant sorts, and unused operands.

use xla_hlo::ops::{
    Broadcast, Compare, CompareDirection, CompareType, Constant, GetTupleElement, Parameter, Sort, Tuple,
};
use xla_hlo::{CompId, Computation, ElementKind, InstrId, Instruction, Literal, Module, Op, Result, Scalar, Shape};

use crate::analysis::loops::{element_of, only_elements_used};
use crate::rewrite::graph::{self, clone_with_operands};
use crate::simplify::common_subexpressions;
use crate::{Pass, PassContext};

/// Simplifies sorts:
///
/// - a sort along a dimension of one element, or with a comparator that is always false, is removed;
/// - a sort of an array that was just sorted in the same total order is removed;
/// - an array is no longer sorted if its sorted form is unused and the comparator does not read it.
pub struct SimplifySorts;

impl Pass for SimplifySorts {
    fn name(&self) -> &'static str {
        "simplify-sorts"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            for sort in sorts(&module[id]) {
                if is_sorted(module, id, sort) {
                    if cx.allow_rewrite(self.name()) {
                        pass_on(module.computation_mut(id), sort)?;
                    }
                } else if let Some(kept) = kept_operands(module, id, sort)
                    && cx.allow_rewrite(self.name())
                {
                    keep(module, id, sort, &kept)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the used sorts, operands first.
fn sorts(computation: &Computation) -> Vec<InstrId> {
    let is_sort = |id: &InstrId| {
        let instruction = &computation[*id];
        let wanted = !instruction.users().is_empty() || computation.root() == *id;
        matches!(instruction.op(), Op::Sort(_) | Op::TopK(_)) && wanted && graph::is_free(instruction)
    };
    computation.post_order().into_iter().filter(is_sort).collect()
}

fn is_sorted(module: &Module, id: CompId, sort: InstrId) -> bool {
    let instruction = &module[id][sort];
    let Some(array) = module[id][instruction.operand(0)].shape().as_array().filter(|a| a.is_static()) else {
        return false;
    };
    match instruction.op() {
        Op::TopK(top) => array.dims().last() == Some(&1) && top.k == 1,
        Op::Sort(op) => {
            array.dims()[op.dimension] <= 1 || never(&module[op.computation]) || sorts_again(module, id, sort, op)
        }
        _ => false,
    }
}

/// Whether a comparator is always false. The order then stays unchanged, since sorting is stable.
fn never(comparator: &Computation) -> bool {
    match comparator[comparator.root()].op() {
        Op::Constant(constant) => constant.literal.get(0) == Scalar::Pred(false),
        _ => false,
    }
}

/// Whether the operand was already sorted in the same order, in which equal elements are indistinguishable.
fn sorts_again(module: &Module, id: CompId, sort: InstrId, op: &Sort) -> bool {
    let [operand] = module[id][sort].operands() else { return false };
    let Op::Sort(first) = module[id][*operand].op() else { return false };
    let (a, b) = (&module[first.computation], &module[op.computation]);
    first.dimension == op.dimension
        && is_total(b)
        && (first.computation == op.computation || common_subexpressions::computations_equal(a, b))
}

/// Whether a comparator of two elements is `<` or `>` in a total order.
fn is_total(comparator: &Computation) -> bool {
    let root = &comparator[comparator.root()];
    let Op::Compare(Compare { direction: CompareDirection::Lt | CompareDirection::Gt, order }) = root.op() else {
        return false;
    };
    let Some(ty) = comparator[root.operand(0)].shape().element_type() else { return false };
    let total = match ty.kind() {
        ElementKind::Float => *order == Some(CompareType::TotalOrder),
        ElementKind::Signed | ElementKind::Unsigned | ElementKind::Pred => true,
        ElementKind::Complex => false,
    };
    let parameters = comparator.parameters();
    let both = root.operands() == parameters || root.operands().iter().rev().eq(parameters);
    total && both
}

/// Replaces the results of a sort by its operands.
fn pass_on(computation: &mut Computation, sort: InstrId) -> Result<()> {
    let mut values = computation[sort].operands().to_vec();
    if let Op::TopK(_) = computation[sort].op() {
        values.push(first_places(computation, sort));
    }
    let value = match values[..] {
        [only] => only,
        _ => {
            let shape = Shape::Tuple(values.iter().map(|&v| computation[v].shape().clone()).collect());
            computation.add(Instruction::new(Tuple.into(), shape, values))
        }
    };
    computation.replace_all_uses(sort, value);
    computation.remove(sort)
}

/// Returns the indices of elements that are alone in their rows: zeros.
fn first_places(computation: &mut Computation, top: InstrId) -> InstrId {
    let places = computation[top].shape().as_tuple().and_then(|t| t.get(1)).cloned().unwrap_or(Shape::Token);
    let Some(ty) = places.element_type() else { return top };
    let scalar = Shape::scalar(ty).with_default_layouts();
    let literal = Literal::scalar(ty, Scalar::zero(ty));
    let zero = computation.add(Instruction::new(Constant { literal }.into(), scalar, []));
    computation.add(Instruction::new(Broadcast { dimensions: Vec::new() }.into(), places, [zero]))
}

/// Returns the indices of the needed operands of a sort; `None` if all are needed.
fn kept_operands(module: &Module, id: CompId, sort: InstrId) -> Option<Vec<usize>> {
    let computation = &module[id];
    let Op::Sort(op) = computation[sort].op() else { return None };
    let count = computation[sort].operands().len();
    if count < 2 || !only_elements_used(computation, sort) {
        return None;
    }
    let comparator = &module[op.computation];
    let is_read = |&p: &InstrId| !comparator[p].users().is_empty() || comparator.root() == p;
    let mut kept: Vec<bool> = comparator.parameters().chunks(2).map(|pair| pair.iter().any(is_read)).collect();
    for &user in computation[sort].users() {
        if let Some((_, i)) = element_of(computation, user) {
            kept[i] = true;
        }
    }
    let kept: Vec<usize> = (0..count).filter(|&i| kept[i]).collect();
    (!kept.is_empty() && kept.len() < count).then_some(kept)
}

/// Restricts a sort to some of the arrays.
fn keep(module: &mut Module, id: CompId, sort: InstrId, kept: &[usize]) -> Result<()> {
    let Op::Sort(mut op) = module[id][sort].op().clone() else { return Ok(()) };
    op.computation = module.add(comparator_of(&module[op.computation], kept));
    let computation = module.computation_mut(id);
    let operands: Vec<InstrId> = kept.iter().map(|&i| computation[sort].operand(i)).collect();
    let mut shapes: Vec<Shape> = operands.iter().map(|&o| computation[o].shape().clone()).collect();
    let shape = if shapes.len() == 1 { shapes.remove(0) } else { Shape::Tuple(shapes) };
    let new = Instruction::new(op.into(), shape, operands)
        .with_name(computation[sort].name())
        .with_annotations(computation[sort].annotations().cloned().map(Box::new));
    let new = computation.add(new);
    for user in computation[sort].users().to_vec() {
        let Some((_, old)) = element_of(computation, user) else { continue };
        let Ok(index) = kept.binary_search(&old) else { continue };
        let value = match kept.len() {
            1 => new,
            _ => {
                let shape = computation[user].shape().clone();
                computation.add(Instruction::new(GetTupleElement { index }.into(), shape, [new]))
            }
        };
        computation.replace_all_uses(user, value);
        graph::remove_dead(computation, user)?;
    }
    if computation[sort].users().is_empty() { computation.remove(sort) } else { Ok(()) }
}

/// Returns a comparator without the parameters of removed arrays, which it does not read.
fn comparator_of(comparator: &Computation, kept: &[usize]) -> Computation {
    let mut new = Computation::new(comparator.name());
    let mut map = std::collections::HashMap::with_capacity(comparator.len());
    for old in kept.iter().flat_map(|&k| [2 * k, 2 * k + 1]) {
        let parameter = &comparator[comparator.parameters()[old]];
        let op = Parameter { number: map.len() };
        let copy = Instruction::new(op.into(), parameter.shape().clone(), []).with_name(parameter.name());
        map.insert(comparator.parameters()[old], new.add(copy));
    }
    for id in comparator.post_order() {
        if !matches!(comparator[id].op(), Op::Parameter(_)) {
            let operands = comparator[id].operands().iter().map(|o| map[o]).collect();
            map.insert(id, new.add(clone_with_operands(&comparator[id], operands)));
        }
    }
    new.set_root(map[&comparator.root()]);
    new
}
