//! Calls, maps, loops and branches, and random bits.

use xla_hlo::ops::{Conditional, Map, RngAlgorithm};
use xla_hlo::{CompId, ElementType, InstrId, Shape};

use super::callees::{Callee, Role, Slot};
use super::graph::{Graph, Value};
use super::numbers::Numbers;
use super::values::Temper;

impl Graph<'_> {
    /// Parameters of a called computation, each an array or all in one tuple.
    pub(super) fn take_parameters(&mut self, slots: &[Slot], as_tuple: bool) {
        if !as_tuple {
            for slot in slots {
                let shape = Shape::Array(slot.shape.clone()).with_default_layouts();
                self.put(Some(slot.numbers), |b| b.parameter(shape));
            }
            return;
        }
        let tuple = Shape::Tuple(slots.iter().map(|slot| slot.shape.clone().into()).collect()).with_default_layouts();
        let tuple = self.b.parameter(tuple).expect("a parameter can always be made");
        for (i, slot) in slots.iter().enumerate() {
            self.put(Some(slot.numbers), |b| b.get_tuple_element(tuple, i));
        }
    }

    pub(super) fn call(&mut self) -> Option<Value> {
        let callee =
            self.callee(|role| !matches!(role, Role::Combiner { .. } | Role::Select { .. } | Role::Order { .. }))?;
        match &callee.role {
            Role::Scalar { parameters } => self.map(callee.id, parameters),
            Role::Function { parameters, results } => {
                let operands = self.operands(parameters);
                let call = self.b.call(callee.id, operands).ok()?;
                self.results(call, results)
            }
            Role::Branches { branches, by_predicate, results } => self.conditional(branches, *by_predicate, results),
            Role::Loop { condition, counter, start, state } => {
                let start = self.scalar(*counter, *start);
                let mut operands = vec![start];
                operands.extend(self.operands(&state[1..]));
                let init = self.b.tuple(operands).ok()?;
                let done = self.b.while_loop(*condition, callee.id, init).ok()?;
                let numbers: Vec<Numbers> = state.iter().map(|slot| slot.numbers).collect();
                self.results(done, &numbers)
            }
            Role::Combiner { .. } | Role::Replace { .. } | Role::Best { .. } => None,
            Role::Select { .. } | Role::Order { .. } => None,
        }
    }

    fn callee(&mut self, accept: impl Fn(&Role) -> bool) -> Option<Callee> {
        let fit: Vec<&Callee> = self.callees.iter().filter(|c| accept(&c.role)).collect();
        (!fit.is_empty()).then(|| self.random.pick(&fit).clone())
    }

    fn operands(&mut self, slots: &[Slot]) -> Vec<InstrId> {
        let operand = |slot: &Slot| self.like(slot.shape.element_type(), slot.shape.dims(), |n| slot.accepts(n)).id;
        slots.iter().map(operand).collect()
    }

    /// What a call gives: an array, or the elements of a tuple.
    fn results(&mut self, call: InstrId, numbers: &[Numbers]) -> Option<Value> {
        if self.b.shape(call).as_array().is_some() {
            return self.put(numbers.first().copied(), |_| Ok(call));
        }
        let mut last = None;
        for (i, &numbers) in numbers.iter().enumerate() {
            if i == 0 || self.random.percent(80) {
                last = self.put(Some(numbers), |b| b.get_tuple_element(call, i));
            }
        }
        last
    }

    fn map(&mut self, computation: CompId, parameters: &[ElementType]) -> Option<Value> {
        let first = self.any(|v| v.numbers.is_settled() && v.ty() == parameters[0])?;
        let mut operands = vec![first.id];
        for &ty in &parameters[1..] {
            operands.push(self.like(ty, first.dims(), Numbers::is_settled).id);
        }
        let op = Map { dimensions: (0..first.rank()).collect(), computation };
        self.put(Some(Numbers::EXACT), |b| b.instruction(op, None, operands))
    }

    fn conditional(
        &mut self,
        branches: &[(CompId, Vec<Slot>)],
        by_predicate: bool,
        results: &[Numbers],
    ) -> Option<Value> {
        let ty = if by_predicate { ElementType::Pred } else { ElementType::S32 };
        let selector = match self.any(|v| v.ty() == ty && v.rank() == 0) {
            Some(value) if self.random.percent(60) => value,
            _ => self.leaf(ty, &[], Temper::Grid),
        };
        let mut operands = vec![selector.id];
        for (_, parameters) in branches {
            let elements = self.operands(parameters);
            operands.push(self.b.tuple(elements).ok()?);
        }
        let op = Conditional { branches: branches.iter().map(|b| b.0).collect(), by_predicate };
        let chosen = self.b.instruction(op, None, operands).ok()?;
        self.results(chosen, results)
    }

    pub(super) fn rng_bit_generator(&mut self) -> Option<Value> {
        use RngAlgorithm::*;
        let algorithm = self.random.pick(&[Default, ThreeFry, Philox]);
        let length = if algorithm == ThreeFry { 2 } else { self.random.between(2, 3) };
        let state = self.like(ElementType::U64, &[length], |_| true);
        let (ty, dims) = (self.ty(), self.dims());
        let bits = Shape::array(ty, dims);
        let both = self.b.rng_bit_generator(algorithm, state.id, bits).ok()?;
        self.put(Some(Numbers::GIVEN), |b| b.get_tuple_element(both, 0));
        self.put(Some(Numbers::GIVEN), |b| b.get_tuple_element(both, 1))
    }
}
