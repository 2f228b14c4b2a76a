//! Trip counts of counting loops.
//!
//! Recognizes a counter in the loop's state that runs from one constant to another in constant steps. Looks through
//! tuples, copies and fusions, at scalars only. All arithmetic is exact. A counter that would overflow its element type
//! is not counted.

use std::cell::Cell;

use xla_hlo::ops::{BinaryOp, CallContext, CompareDirection};
use xla_hlo::{CompId, ElementKind, ElementType, InstrId, Module, Op, Shape};

/// Returns the number of iterations of a loop that counts a state element from one constant up or down to another in
/// constant steps. The condition must only compute the predicate. Also works after fusion and copy insertion.
pub fn trip_count(module: &Module, caller: CompId, id: InstrId) -> Option<u64> {
    let Op::While(op) = module[caller][id].op() else { return None };
    if has_effects(module, op.condition) {
        return None;
    }
    let fuel = Cell::new(FUEL);
    let condition = Frame { module, computation: op.condition, outer: Outer::Loop, fuel: &fuel };
    let (counter, direction, bound) = condition.predicate(module[op.condition].root())?;
    let leaf = counter.leaf?;
    let body = Frame { module, computation: op.body, outer: Outer::Loop, fuel: &fuel };
    let next = body.element(module[op.body].root(), leaf)?;
    if next.leaf != Some(leaf) {
        return None;
    }
    let outside = Frame { module, computation: caller, outer: Outer::Nothing, fuel: &fuel };
    let init = outside.element(module[caller][id].operand(0), leaf)?.number()?;
    let ty = scalar_type(module, op.condition, leaf)?;
    let trips = steps(init + counter.plus, next.plus, direction, bound)?;
    let end = init + i128::from(trips) * next.plus;
    let touched = [init, end, init + counter.plus, end + counter.plus];
    touched.into_iter().all(|value| fits(ty, value)).then_some(trips)
}

/// Whether a computation may have effects: its own, or effects of computations that it calls.
fn has_effects(module: &Module, computation: CompId) -> bool {
    let has_effects = |op: &Op| op.has_side_effect() || op.call_context() == CallContext::Control;
    module[computation].iter().any(|(_, instruction)| has_effects(instruction.op()))
}

/// Loop that only counts: an iteration adds a constant to each element of the state.
pub(crate) struct CountingLoop {
    /// Element of the state that the condition compares, after a constant is added.
    pub counter: usize,
    /// Constant that is added to the counter.
    pub plus: i128,
    /// Element type of the counter.
    pub ty: ElementType,
    pub direction: CompareDirection,
    /// Value that the counter is compared with, which iterations do not change.
    pub bound: Linear,
    /// Number that an iteration adds to each element; elements of other types than integers are unchanged.
    pub steps: Vec<i128>,
}

/// Returns the loop if it only counts and has no effects. Sums wrap in the elements' types.
pub(crate) fn counting_loop(module: &Module, caller: CompId, id: InstrId) -> Option<CountingLoop> {
    let Op::While(op) = module[caller][id].op() else { return None };
    let elements = module[caller][id].shape().as_tuple()?;
    if [op.condition, op.body].into_iter().any(|computation| has_effects(module, computation)) {
        return None;
    }
    let fuel = Cell::new(FUEL);
    let frame = |computation| Frame { module, computation, outer: Outer::Loop, fuel: &fuel };
    let (a, direction, b) = frame(op.condition).comparison(module[op.condition].root())?;
    let (body, root) = (frame(op.body), module[op.body].root());
    let step = |i: usize| body.element(root, i).filter(|next| next.leaf == Some(i)).map(|next| next.plus);
    let steps = (0..elements.len()).map(step).collect::<Option<Vec<_>>>()?;
    let is_counter = |shape: &Shape| shape.as_array().is_some_and(|a| a.is_scalar() && a.element_type().is_integer());
    let counts = |(shape, &step): (&Shape, &i128)| step == 0 || is_counter(shape);
    let leaves = [a, b].into_iter().filter_map(|value| value.leaf);
    if !elements.iter().zip(&steps).all(counts) || !leaves.clone().all(|leaf| is_counter(&elements[leaf])) {
        return None;
    }
    let step = |value: Linear| value.leaf.map_or(0, |leaf| steps[leaf]);
    let (first, direction, bound) = match (step(a), step(b)) {
        (0, 0) => return None,
        (_, 0) => (a, direction, b),
        (0, _) => (b, flipped(direction), a),
        _ => return None,
    };
    let counter = first.leaf?;
    let ty = elements[counter].element_type()?;
    Some(CountingLoop { counter, plus: first.plus, ty, direction, bound, steps })
}

/// Maximum number of instructions visited per loop. Counters are simple, and long chains of arithmetic cost stack.
const FUEL: u32 = 256;

/// The sum `leaf + plus` of a state leaf and a constant; only the constant if there is no leaf.
#[derive(Clone, Copy)]
pub(crate) struct Linear {
    pub leaf: Option<usize>,
    pub plus: i128,
}

impl Linear {
    fn number(self) -> Option<i128> {
        self.leaf.is_none().then_some(self.plus)
    }
}

/// A computation with known values of its parameters.
struct Frame<'a> {
    module: &'a Module,
    computation: CompId,
    outer: Outer<'a>,
    /// Remaining number of instructions to visit, shared by all frames.
    fuel: &'a Cell<u32>,
}

enum Outer<'a> {
    /// Nothing is known about the parameters.
    Nothing,
    /// The parameter is the state of the loop.
    Loop,
    /// The parameters are the operands of a fusion.
    Fusion(&'a Frame<'a>, &'a [InstrId]),
}

impl Frame<'_> {
    /// Returns the value of a scalar.
    fn scalar(&self, id: InstrId) -> Option<Linear> {
        self.fuel.set(self.fuel.get().checked_sub(1)?);
        let instruction = &self.module[self.computation][id];
        let operand = |i: usize| self.scalar(*instruction.operands().get(i)?);
        match instruction.op() {
            Op::Constant(constant) => {
                let array = constant.literal.shape().as_array().filter(|a| a.element_count() == 1)?;
                let is_integer = array.element_type().is_integer();
                let value = is_integer.then(|| constant.literal.get(0).as_i128())??;
                Some(Linear { leaf: None, plus: value })
            }
            Op::Parameter(parameter) => match self.outer {
                Outer::Nothing => None,
                Outer::Loop => instruction.shape().as_array().map(|_| Linear { leaf: Some(0), plus: 0 }),
                Outer::Fusion(frame, operands) => frame.scalar(*operands.get(parameter.number)?),
            },
            Op::GetTupleElement(element) => self.element(instruction.operand(0), element.index),
            Op::Copy(_) | Op::Bitcast(_) | Op::Reshape(_) | Op::OptBarrier(_) => operand(0),
            Op::Binary(binary) => {
                let (a, b) = (operand(0)?, operand(1)?);
                match (binary.op, a.leaf, b.leaf) {
                    (BinaryOp::Add, leaf, None) | (BinaryOp::Add, None, leaf) => {
                        Some(Linear { leaf, plus: a.plus + b.plus })
                    }
                    (BinaryOp::Subtract, leaf, None) => Some(Linear { leaf, plus: a.plus - b.plus }),
                    _ => None,
                }
            }
            Op::Fusion(_) => self.in_fusion(id, |inner, root| inner.scalar(root)),
            _ => None,
        }
    }

    /// Returns the value of element `index` of a tuple of scalars; the value itself if it is not a tuple.
    fn element(&self, id: InstrId, index: usize) -> Option<Linear> {
        self.fuel.set(self.fuel.get().checked_sub(1)?);
        let instruction = &self.module[self.computation][id];
        if instruction.shape().as_array().is_some() {
            return self.scalar(id);
        }
        match (instruction.op(), &self.outer) {
            (Op::Tuple(_), _) => self.scalar(*instruction.operands().get(index)?),
            (Op::Parameter(_), Outer::Loop) => Some(Linear { leaf: Some(index), plus: 0 }),
            (Op::Copy(_) | Op::OptBarrier(_), _) => self.element(instruction.operand(0), index),
            (Op::Fusion(_), _) => self.in_fusion(id, |inner, root| inner.element(root, index)),
            _ => None,
        }
    }

    /// Returns the parts of the predicate: counter, comparison and bound.
    fn predicate(&self, id: InstrId) -> Option<(Linear, CompareDirection, i128)> {
        let (a, direction, b) = self.comparison(id)?;
        match (a.leaf, b.leaf) {
            (Some(_), None) => Some((a, direction, b.plus)),
            (None, Some(_)) => Some((b, flipped(direction), a.plus)),
            _ => None,
        }
    }

    /// Returns the comparison that computes the predicate.
    fn comparison(&self, id: InstrId) -> Option<(Linear, CompareDirection, Linear)> {
        let instruction = &self.module[self.computation][id];
        match instruction.op() {
            Op::Compare(compare) => {
                let (a, b) = (self.scalar(instruction.operand(0))?, self.scalar(instruction.operand(1))?);
                Some((a, compare.direction, b))
            }
            Op::Fusion(_) => self.in_fusion(id, |inner, root| inner.comparison(root)),
            _ => None,
        }
    }

    fn in_fusion<T>(&self, id: InstrId, ask: impl FnOnce(&Frame<'_>, InstrId) -> Option<T>) -> Option<T> {
        let instruction = &self.module[self.computation][id];
        let Op::Fusion(fusion) = instruction.op() else { return None };
        let outer = Outer::Fusion(self, instruction.operands());
        let inner = Frame { module: self.module, computation: fusion.computation, outer, fuel: self.fuel };
        ask(&inner, self.module[fusion.computation].root())
    }
}

fn flipped(direction: CompareDirection) -> CompareDirection {
    match direction {
        CompareDirection::Eq => CompareDirection::Eq,
        CompareDirection::Ne => CompareDirection::Ne,
        CompareDirection::Ge => CompareDirection::Le,
        CompareDirection::Gt => CompareDirection::Lt,
        CompareDirection::Le => CompareDirection::Ge,
        CompareDirection::Lt => CompareDirection::Gt,
    }
}

/// Returns how often `first, first + step, ...` compares true consecutively; `None` if that is endless or exceeds 2^64.
fn steps(first: i128, step: i128, direction: CompareDirection, bound: i128) -> Option<u64> {
    let below = |first: i128, step: i128, bound: i128| match () {
        () if first >= bound => Some(0),
        () if step <= 0 => None,
        () => Some((bound - first + step - 1) / step),
    };
    let count = match direction {
        CompareDirection::Lt => below(first, step, bound),
        CompareDirection::Le => below(first, step, bound + 1),
        CompareDirection::Gt => below(-first, -step, -bound),
        CompareDirection::Ge => below(-first, -step, -bound + 1),
        CompareDirection::Eq if first != bound => Some(0),
        CompareDirection::Eq => (step != 0).then_some(1),
        CompareDirection::Ne if first == bound => Some(0),
        CompareDirection::Ne if step == 0 || (bound - first) % step != 0 => None,
        CompareDirection::Ne => Some((bound - first) / step),
    };
    u64::try_from(count?).ok()
}

/// Returns the element type of the counter, leaf `leaf` of the condition's parameter.
fn scalar_type(module: &Module, condition: CompId, leaf: usize) -> Option<ElementType> {
    let parameter = *module[condition].parameters().first()?;
    let shape = module[condition][parameter].shape();
    shape.as_tuple().map_or(Some(shape), |elements| elements.get(leaf))?.element_type()
}

fn fits(ty: ElementType, value: i128) -> bool {
    let bits = ty.bit_width();
    match ty.kind() {
        ElementKind::Signed => (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&value),
        ElementKind::Unsigned => (0..1i128 << bits).contains(&value),
        ElementKind::Pred | ElementKind::Float | ElementKind::Complex => false,
    }
}
