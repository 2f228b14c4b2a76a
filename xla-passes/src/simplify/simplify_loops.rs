//! Loop simplification: removes state that a loop does not need to carry.

use std::collections::HashSet;

use xla_hlo::effects::Effects;
use xla_hlo::ops::{GetTupleElement, Tuple};
use xla_hlo::{CompId, Computation, InstrId, Instruction, Module, Op, Result, Scalar, Shape};

use crate::analysis::loops::{self, LoopState, element_of, only_elements_used, renumber};
use crate::canonicalize::dead_code;
use crate::rewrite::graph;
use crate::rewrite::graph::clone_with_operands;
use crate::simplify::equal_state;
use crate::{Pass, PassContext};

/// Minimizes the state of `while` loops:
///
/// - a loop that never starts becomes its initial state;
/// - an element that the body passes on unchanged is replaced by its initial value after the loop;
/// - if such an element starts as a constant, it is replaced by that constant inside the loop;
/// - of elements that are always equal, only the first is used;
/// - an element that no result and no condition depends on is removed.
pub struct SimplifyLoops;

impl Pass for SimplifyLoops {
    fn name(&self) -> &'static str {
        "simplify-loops"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let callers = loops::caller_counts(module);
        let effects = Effects::of(module);
        for caller in module.post_order() {
            for id in loops::free_loops(module, caller) {
                if never_begins(module, caller, id) {
                    if cx.allow_rewrite(self.name()) {
                        let init = module[caller][id].operand(0);
                        module.computation_mut(caller).replace_all_uses(id, init);
                    }
                    continue;
                }
                let Some(state) = LoopState::of(module, caller, id) else { continue };
                if state.computations().iter().any(|c| callers.get(c) != Some(&1)) {
                    continue;
                }
                state.forward_invariants(module, cx)?;
                state.sink_constants(module, cx)?;
                state.merge_equal(module, cx, &effects);
                state.drop_dead(module, cx, &effects)?;
            }
        }
        Ok(())
    }
}

fn never_begins(module: &Module, caller: CompId, id: InstrId) -> bool {
    let Op::While(op) = module[caller][id].op() else { return false };
    let condition = &module[op.condition];
    match condition[condition.root()].op() {
        Op::Constant(constant) => constant.literal.get(0) == Scalar::Pred(false),
        _ => false,
    }
}

impl LoopState {
    fn forward_invariants(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let uses: Vec<InstrId> = module[self.caller][self.id].users().to_vec();
        for user in uses {
            let Some((_, i)) = element_of(&module[self.caller], user) else { continue };
            let Some(initial) = self.initial(module, i).filter(|_| self.invariant[i]) else { continue };
            if !cx.allow_rewrite(SimplifyLoops.name()) {
                continue;
            }
            let caller = module.computation_mut(self.caller);
            caller.replace_all_uses(user, initial);
            graph::remove_dead(caller, user)?;
        }
        Ok(())
    }

    fn sink_constants(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        for i in (0..self.elements.len()).filter(|&i| self.invariant[i]) {
            let Some(initial) = self.initial(module, i) else { continue };
            let constant = module[self.caller][initial].clone();
            if !matches!(constant.op(), Op::Constant(_)) {
                continue;
            }
            for id in self.computations() {
                // The body's root still passes the element on until it is found to be dead.
                let keep = (id == self.body).then(|| module[id].root());
                replace_element(module.computation_mut(id), i, &constant, keep, cx)?;
            }
        }
        Ok(())
    }

    fn merge_equal(&self, module: &mut Module, cx: &PassContext<'_>, effects: &Effects) {
        let first = equal_state::representatives(module, self, effects);
        for (computation, tuple) in self.tuples(module) {
            for user in module[computation][tuple].users().to_vec() {
                let Some((_, i)) = element_of(&module[computation], user) else { continue };
                let index = first[i];
                if index != i && cx.allow_rewrite(SimplifyLoops.name()) {
                    module.computation_mut(computation).set_op(user, GetTupleElement { index }.into());
                }
            }
        }
    }

    /// Returns the state in the condition, in the body and after the loop.
    fn tuples(&self, module: &Module) -> [(CompId, InstrId); 3] {
        let [condition, body] = self.computations().map(|c| (c, module[c].parameters()[0]));
        [condition, body, (self.caller, self.id)]
    }

    fn drop_dead(&self, module: &mut Module, cx: &PassContext<'_>, effects: &Effects) -> Result<()> {
        let live = self.live_elements(module, effects);
        if live.len() == self.elements.len() || live.is_empty() || !cx.allow_rewrite(SimplifyLoops.name()) {
            return Ok(());
        }
        let kept: Vec<usize> = (0..self.elements.len()).filter(|i| live.contains(i)).collect();
        let shape = Shape::Tuple(kept.iter().map(|&i| self.elements[i].clone()).collect());
        self.shrink_body(module, &kept, &shape)?;
        for id in self.computations() {
            dead_code::sweep(module, id, effects)?;
            let inner = module.computation_mut(id);
            let parameter = inner.parameters()[0];
            renumber(inner, parameter, &kept);
            inner.set_shape(parameter, shape.clone());
        }
        self.shrink_caller(module, &kept, &shape)
    }

    fn shrink_body(&self, module: &mut Module, kept: &[usize], shape: &Shape) -> Result<()> {
        let body = module.computation_mut(self.body);
        let root = body.root();
        let operands: Vec<InstrId> = kept.iter().map(|&i| body[root].operand(i)).collect();
        let new = body.add(Instruction::new(Tuple.into(), shape.clone(), operands));
        body.set_root(new);
        body.remove(root)
    }

    fn shrink_caller(&self, module: &mut Module, kept: &[usize], shape: &Shape) -> Result<()> {
        let caller = module.computation_mut(self.caller);
        let init = caller[self.id].operand(0);
        let element = |caller: &mut Computation, i: usize| match caller[init].op() {
            Op::Tuple(_) => caller[init].operand(i),
            _ => {
                let op = GetTupleElement { index: i };
                caller.add(Instruction::new(op.into(), self.elements[i].clone(), [init]))
            }
        };
        let elements: Vec<InstrId> = kept.iter().map(|&i| element(caller, i)).collect();
        let state = caller.add(Instruction::new(Tuple.into(), shape.clone(), elements));
        caller.replace_operand(self.id, 0, state);
        caller.set_shape(self.id, shape.clone());
        renumber(caller, self.id, kept);
        graph::remove_dead(caller, init)
    }

    /// Returns the elements that a result, the condition or an effect depends on, through any number of iterations.
    fn live_elements(&self, module: &Module, effects: &Effects) -> HashSet<usize> {
        let caller = &module[self.caller];
        let all = || (0..self.elements.len()).collect();
        if caller.root() == self.id || !only_elements_used(caller, self.id) {
            return all();
        }
        let mut live: Vec<usize> =
            caller[self.id].users().iter().filter_map(|&u| Some(element_of(caller, u)?.1)).collect();
        let forced = |c: &Computation| -> Vec<InstrId> {
            c.iter().filter(|(_, i)| effects.has_effect(i)).map(|(id, _)| id).collect()
        };
        let condition = &module[self.condition];
        let mut starts = forced(condition);
        starts.push(condition.root());
        needed(condition, starts, &mut HashSet::new(), &mut live);
        let body = &module[self.body];
        let mut seen = HashSet::new();
        needed(body, forced(body), &mut seen, &mut live);
        let mut found = HashSet::new();
        while let Some(i) = live.pop() {
            if found.insert(i) {
                needed(body, vec![body[body.root()].operand(i)], &mut seen, &mut live);
            }
        }
        found
    }
}

/// Adds the elements of the parameter that `starts` depend on to `live`.
fn needed(computation: &Computation, starts: Vec<InstrId>, seen: &mut HashSet<InstrId>, live: &mut Vec<usize>) {
    let parameter = computation.parameters()[0];
    let mut stack = starts;
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        match element_of(computation, id) {
            Some((tuple, i)) if tuple == parameter => live.push(i),
            _ => stack.extend_from_slice(computation[id].operands()),
        }
        stack.extend_from_slice(computation[id].control_predecessors());
    }
}

fn elements_used(computation: &Computation, index: usize) -> Vec<InstrId> {
    let parameter = computation.parameters()[0];
    let users = computation[parameter].users().iter().copied();
    users.filter(|&u| element_of(computation, u) == Some((parameter, index))).collect()
}

/// Replaces uses of element `index` of the parameter by a copy of `constant`, except in `keep`.
fn replace_element(
    computation: &mut Computation,
    index: usize,
    constant: &Instruction,
    keep: Option<InstrId>,
    cx: &PassContext<'_>,
) -> Result<()> {
    for element in elements_used(computation, index) {
        let users: Vec<InstrId> = computation[element].users().iter().copied().filter(|&u| Some(u) != keep).collect();
        let is_root = computation.root() == element;
        let used = graph::is_free(&computation[element]) && (!users.is_empty() || is_root);
        if !used || !cx.allow_rewrite(SimplifyLoops.name()) {
            continue;
        }
        let copy = computation.add(clone_with_operands(constant, Vec::new()));
        for user in users {
            let operands = computation[user].operands().iter().map(|&o| if o == element { copy } else { o }).collect();
            computation.set_operands(user, operands);
        }
        if is_root {
            computation.set_root(copy);
        }
        graph::remove_dead(computation, element)?;
    }
    Ok(())
}
