//! Loops: the state of a `while` loop as loop passes model it.

use std::collections::HashMap;

use xla_hlo::ops::{GetTupleElement, Tuple};
use xla_hlo::{CompId, Computation, InstrId, Instruction, Module, Op, Shape};

use crate::rewrite::graph;

/// Counts the call sites of each computation.
pub(crate) fn caller_counts(module: &Module) -> HashMap<CompId, usize> {
    let mut counts = HashMap::new();
    for (_, computation) in module.iter() {
        for (_, instruction) in computation.iter() {
            for callee in instruction.op().called_computations() {
                *counts.entry(callee).or_default() += 1;
            }
        }
    }
    counts
}

/// Returns the loops of a computation whose results are used and which have no control dependencies.
pub(crate) fn free_loops(module: &Module, caller: CompId) -> Vec<InstrId> {
    let wanted = |id, i: &Instruction| !i.users().is_empty() || module[caller].root() == id;
    let is_loop = |id, i: &Instruction| matches!(i.op(), Op::While(_)) && graph::is_free(i) && wanted(id, i);
    module[caller].iter().filter(|&(id, i)| is_loop(id, i)).map(|(id, _)| id).collect()
}

/// A loop whose state is a tuple that the condition and the body only access by element, and that the body's root
/// builds.
pub(crate) struct LoopState {
    /// Computation that contains the loop.
    pub caller: CompId,
    /// The `while`.
    pub id: InstrId,
    /// Computation from the state to `pred[]`.
    pub condition: CompId,
    /// Computation from the state to the next state.
    pub body: CompId,
    /// Shapes of the state elements.
    pub elements: Vec<Shape>,
    /// Whether the body passes each element on unchanged.
    pub invariant: Vec<bool>,
}

impl LoopState {
    /// Returns the state of a loop; `None` if it has not this form.
    pub fn of(module: &Module, caller: CompId, id: InstrId) -> Option<LoopState> {
        let Op::While(op) = module[caller][id].op() else { return None };
        let elements = module[caller][id].shape().as_tuple()?.to_vec();
        let (condition, body) = (&module[op.condition], &module[op.body]);
        let root = &body[body.root()];
        let plain = matches!(root.op(), Op::Tuple(_))
            && root.users().is_empty()
            && [condition, body].iter().all(|c| only_elements_used(c, c.parameters()[0]));
        if !plain || op.condition == op.body {
            return None;
        }
        let parameter = body.parameters()[0];
        let handed_on = |(i, &o): (usize, &InstrId)| element_of(body, o) == Some((parameter, i));
        let invariant = root.operands().iter().enumerate().map(handed_on).collect();
        Some(LoopState { caller, id, condition: op.condition, body: op.body, elements, invariant })
    }

    /// Returns the condition and the body.
    pub fn computations(&self) -> [CompId; 2] {
        [self.condition, self.body]
    }

    /// Returns the initial value of element `i` if the loop's operand is a `tuple` instruction.
    pub fn initial(&self, module: &Module, i: usize) -> Option<InstrId> {
        let caller = &module[self.caller];
        let init = &caller[caller[self.id].operand(0)];
        matches!(init.op(), Op::Tuple(_)).then(|| init.operand(i))
    }

    /// Returns the initial value of element `i`; adds a `get-tuple-element` if the loop's operand is not a `tuple`
    /// instruction.
    pub fn initial_or_taken(&self, module: &mut Module, i: usize) -> InstrId {
        if let Some(initial) = self.initial(module, i) {
            return initial;
        }
        let caller = module.computation_mut(self.caller);
        let init = caller[self.id].operand(0);
        let op = GetTupleElement { index: i };
        caller.add(Instruction::new(op.into(), self.elements[i].clone(), [init]))
    }

    /// Adds loop-invariant elements to the state, with the initial values `begins` (instructions of the caller).
    /// Returns the instructions that read them in the condition and in the body.
    pub fn carry(&self, module: &mut Module, begins: &[InstrId]) -> [Vec<InstrId>; 2] {
        let mut shapes = self.elements.clone();
        shapes.extend(begins.iter().map(|&b| module[self.caller][b].shape().clone()));
        let state = Shape::Tuple(shapes);
        self.carry_outside(module, begins, &state);
        let elements = self.computations().map(|inner| {
            let inner = module.computation_mut(inner);
            let parameter = inner.parameters()[0];
            inner.set_shape(parameter, state.clone());
            take_elements(inner, parameter, self.elements.len())
        });
        let body = module.computation_mut(self.body);
        let root = body.root();
        let operands: Vec<InstrId> = body[root].operands().iter().chain(&elements[1]).copied().collect();
        body.set_operands(root, operands);
        body.set_shape(root, state);
        elements
    }

    fn carry_outside(&self, module: &mut Module, begins: &[InstrId], state: &Shape) {
        let mut operands: Vec<InstrId> = (0..self.elements.len()).map(|i| self.initial_or_taken(module, i)).collect();
        operands.extend(begins);
        let caller = module.computation_mut(self.caller);
        let whole: Vec<InstrId> = caller[self.id].users().to_vec();
        let whole: Vec<InstrId> = whole.into_iter().filter(|&u| element_of(caller, u).is_none()).collect();
        let is_root = caller.root() == self.id;
        let init = caller.add(Instruction::new(Tuple.into(), state.clone(), operands));
        caller.replace_operand(self.id, 0, init);
        caller.set_shape(self.id, state.clone());
        if whole.is_empty() && !is_root {
            return;
        }
        // Users of the whole state get a tuple without the new elements.
        let mut elements = take_elements(caller, self.id, 0);
        elements.truncate(self.elements.len());
        let before = caller.add(Instruction::new(Tuple.into(), Shape::Tuple(self.elements.clone()), elements));
        for user in whole {
            let operands = caller[user].operands().iter().map(|&o| if o == self.id { before } else { o }).collect();
            caller.set_operands(user, operands);
        }
        if is_root {
            caller.set_root(before);
        }
    }
}

/// Adds a `get-tuple-element` for each element of a tuple from number `first` on.
fn take_elements(computation: &mut Computation, tuple: InstrId, first: usize) -> Vec<InstrId> {
    let shapes = computation[tuple].shape().as_tuple().map(<[Shape]>::to_vec).unwrap_or_default();
    let take = |(index, shape): (usize, Shape)| {
        computation.add(Instruction::new(GetTupleElement { index }.into(), shape, [tuple]))
    };
    shapes.into_iter().enumerate().skip(first).map(take).collect()
}

/// Returns the tuple and the index that a `get-tuple-element` reads.
pub(crate) fn element_of(computation: &Computation, id: InstrId) -> Option<(InstrId, usize)> {
    match computation[id].op() {
        Op::GetTupleElement(element) => Some((computation[id].operand(0), element.index)),
        _ => None,
    }
}

/// Whether a tuple is only used through its elements.
pub(crate) fn only_elements_used(computation: &Computation, tuple: InstrId) -> bool {
    computation.root() != tuple && computation[tuple].users().iter().all(|&u| element_of(computation, u).is_some())
}

/// Renumbers the `get-tuple-element` users of `tuple` after all elements except `kept` (ascending) were removed.
pub(crate) fn renumber(computation: &mut Computation, tuple: InstrId, kept: &[usize]) {
    for user in computation[tuple].users().to_vec() {
        let Some((_, old)) = element_of(computation, user) else { continue };
        if let Some(index) = kept.binary_search(&old).ok().filter(|&index| index != old) {
            computation.set_op(user, GetTupleElement { index }.into());
        }
    }
}
