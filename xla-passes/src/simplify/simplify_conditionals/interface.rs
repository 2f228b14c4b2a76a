//! Simplifies operands and results of a conditional's branches.

use xla_hlo::effects::Effects;
use xla_hlo::ops::{GetTupleElement, Tuple};
use xla_hlo::{CompId, Computation, InstrId, Instruction, Literal, Module, Op, Result, Shape};

use super::{SimplifyConditionals, conditional};
use crate::analysis::loops::{element_of, only_elements_used, renumber};
use crate::canonicalize::dead_code;
use crate::rewrite::graph::{self, clone_with_operands};
use crate::{Pass, PassContext};

/// Forwards results around the branches, and removes unused results and operand elements. The branches must have no
/// other caller.
pub(super) fn simplify(
    module: &mut Module,
    caller: CompId,
    id: InstrId,
    cx: &PassContext<'_>,
    effects: &Effects,
) -> Result<()> {
    let Some(branches) = conditional(module, caller, id).map(|op| op.branches.clone()) else { return Ok(()) };
    let it = Interface { caller, id, branches };
    it.take_around(module, cx)?;
    it.drop_results(module, cx, effects)?;
    for branch in 0..it.branches.len() {
        it.sink_constants(module, branch, cx)?;
        it.drop_operands(module, branch, cx)?;
    }
    Ok(())
}

struct Interface {
    caller: CompId,
    id: InstrId,
    branches: Vec<CompId>,
}

/// A value that a branch returns, expressed as a value of the caller.
#[derive(PartialEq)]
enum Origin {
    /// A value of the caller.
    Value(InstrId),
    /// An element of a tuple of the caller.
    Element(InstrId, usize),
    Constant(Box<(Literal, Shape)>),
}

impl Interface {
    /// Replaces results that are equal in all branches by that value.
    fn take_around(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let is_tuple = module[self.caller][self.id].shape().as_tuple().is_some();
        let results = if is_tuple { module[self.caller][self.id].users().to_vec() } else { vec![self.id] };
        for result in results {
            let caller = &module[self.caller];
            let index = if is_tuple { element_of(caller, result).map(|(_, i)| i) } else { None };
            let wanted = !caller[result].users().is_empty() || caller.root() == result;
            if is_tuple != index.is_some() || !wanted || !graph::is_free(&caller[result]) {
                continue;
            }
            let Some(origin) = self.common_origin(module, index) else { continue };
            if !cx.allow_rewrite(SimplifyConditionals.name()) {
                break;
            }
            let value = self.bring(module, origin, result);
            let caller = module.computation_mut(self.caller);
            caller.replace_all_uses(result, value);
            if is_tuple {
                graph::remove_dead(caller, result)?;
            }
        }
        Ok(())
    }

    /// Returns the origin of a result (result `index` if there are several) if all branches agree on it.
    fn common_origin(&self, module: &Module, index: Option<usize>) -> Option<Origin> {
        let mut origins = (0..self.branches.len()).map(|branch| self.origin(module, branch, index));
        let first = origins.next()??;
        origins.all(|other| other.as_ref() == Some(&first)).then_some(first)
    }

    fn origin(&self, module: &Module, branch: usize, index: Option<usize>) -> Option<Origin> {
        let computation = &module[self.branches[branch]];
        let result = match (index, computation[computation.root()].op()) {
            (None, _) => computation.root(),
            (Some(index), Op::Tuple(_)) => computation[computation.root()].operand(index),
            (Some(_), _) => return None,
        };
        let operand = module[self.caller][self.id].operand(branch + 1);
        match (computation[result].op(), element_of(computation, result)) {
            (Op::Parameter(_), _) => Some(Origin::Value(operand)),
            (Op::Constant(constant), _) => {
                Some(Origin::Constant(Box::new((constant.literal.clone(), computation[result].shape().clone()))))
            }
            (_, Some((tuple, i))) if tuple == computation.parameters()[0] => match module[self.caller][operand].op() {
                Op::Tuple(_) => Some(Origin::Value(module[self.caller][operand].operand(i))),
                _ => Some(Origin::Element(operand, i)),
            },
            _ => None,
        }
    }

    /// Adds the value to the caller; `result` is the instruction that it replaces.
    fn bring(&self, module: &mut Module, origin: Origin, result: InstrId) -> InstrId {
        let shape = module[self.caller][result].shape().clone();
        let caller = module.computation_mut(self.caller);
        match origin {
            Origin::Value(value) => value,
            Origin::Element(tuple, index) => {
                caller.add(Instruction::new(GetTupleElement { index }.into(), shape, [tuple]))
            }
            Origin::Constant(constant) => {
                let (literal, shape) = *constant;
                caller.add(Instruction::new(xla_hlo::ops::Constant { literal }.into(), shape, []))
            }
        }
    }

    /// Removes unused elements of the result.
    fn drop_results(&self, module: &mut Module, cx: &PassContext<'_>, effects: &Effects) -> Result<()> {
        let caller = &module[self.caller];
        let Some(elements) = caller[self.id].shape().as_tuple().map(<[Shape]>::to_vec) else { return Ok(()) };
        let Some(kept) = kept_elements(caller, self.id, elements.len()) else { return Ok(()) };
        if !cx.allow_rewrite(SimplifyConditionals.name()) {
            return Ok(());
        }
        let shape = Shape::Tuple(kept.iter().map(|&i| elements[i].clone()).collect());
        for &branch in &self.branches {
            let computation = module.computation_mut(branch);
            let root = computation.root();
            let results: Vec<InstrId> = kept.iter().map(|&i| element(computation, root, i)).collect();
            let new = computation.add(Instruction::new(Tuple.into(), shape.clone(), results));
            computation.set_root(new);
            dead_code::sweep(module, branch, effects)?;
        }
        let caller = module.computation_mut(self.caller);
        caller.set_shape(self.id, shape);
        renumber(caller, self.id, &kept);
        Ok(())
    }

    /// Moves constant operands into a branch.
    fn sink_constants(&self, module: &mut Module, branch: usize, cx: &PassContext<'_>) -> Result<()> {
        let operand = module[self.caller][self.id].operand(branch + 1);
        let parameter = module[self.branches[branch]].parameters()[0];
        let mut taken = module[self.branches[branch]][parameter].users().to_vec();
        taken.push(parameter);
        for value in taken {
            let (caller, computation) = (&module[self.caller], &module[self.branches[branch]]);
            let source = match element_of(computation, value) {
                _ if value == parameter => operand,
                Some((tuple, i)) if tuple == parameter && matches!(caller[operand].op(), Op::Tuple(_)) => {
                    caller[operand].operand(i)
                }
                _ => continue,
            };
            let wanted = !computation[value].users().is_empty() || computation.root() == value;
            let is_constant = matches!(caller[source].op(), Op::Constant(_));
            if !is_constant || !wanted || !graph::is_free(&computation[value]) {
                continue;
            }
            if !cx.allow_rewrite(SimplifyConditionals.name()) {
                return Ok(());
            }
            let constant = clone_with_operands(&caller[source], Vec::new());
            let computation = module.computation_mut(self.branches[branch]);
            let copy = computation.add(constant);
            computation.replace_all_uses(value, copy);
            graph::remove_dead(computation, value)?;
        }
        Ok(())
    }

    /// Removes elements of a branch's operand that the branch does not use.
    fn drop_operands(&self, module: &mut Module, branch: usize, cx: &PassContext<'_>) -> Result<()> {
        let computation = &module[self.branches[branch]];
        let parameter = computation.parameters()[0];
        let Some(elements) = computation[parameter].shape().as_tuple().map(<[Shape]>::to_vec) else { return Ok(()) };
        let Some(kept) = kept_elements(computation, parameter, elements.len()) else { return Ok(()) };
        if !cx.allow_rewrite(SimplifyConditionals.name()) {
            return Ok(());
        }
        let shape = Shape::Tuple(kept.iter().map(|&i| elements[i].clone()).collect());
        let computation = module.computation_mut(self.branches[branch]);
        renumber(computation, parameter, &kept);
        computation.set_shape(parameter, shape.clone());
        let caller = module.computation_mut(self.caller);
        let whole = caller[self.id].operand(branch + 1);
        let values: Vec<InstrId> = kept.iter().map(|&i| element(caller, whole, i)).collect();
        let operand = caller.add(Instruction::new(Tuple.into(), shape, values));
        caller.replace_operand(self.id, branch + 1, operand);
        graph::remove_dead(caller, whole)
    }
}

/// Returns the used elements of a tuple that is only used by element, if any element can be removed. At least one is
/// kept.
fn kept_elements(computation: &Computation, tuple: InstrId, count: usize) -> Option<Vec<usize>> {
    if count < 2 || !only_elements_used(computation, tuple) {
        return None;
    }
    let taken = computation[tuple].users().iter();
    let mut kept: Vec<usize> = taken.filter_map(|&u| Some(element_of(computation, u)?.1)).collect();
    kept.sort_unstable();
    kept.dedup();
    if kept.is_empty() {
        kept.push(0);
    }
    (kept.len() < count).then_some(kept)
}

/// Returns element `index` of a tuple: the operand of a `tuple` instruction, otherwise a new `get-tuple-element`.
fn element(computation: &mut Computation, tuple: InstrId, index: usize) -> InstrId {
    if let Op::Tuple(_) = computation[tuple].op() {
        return computation[tuple].operand(index);
    }
    let shape = computation[tuple].shape().as_tuple().map(|e| e[index].clone()).unwrap_or(Shape::Token);
    computation.add(Instruction::new(GetTupleElement { index }.into(), shape, [tuple]))
}
