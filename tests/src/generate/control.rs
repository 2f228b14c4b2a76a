//! Calls, maps, loops and branches.

use xla_hlo::ops::{Conditional, Map};
use xla_hlo::{CompId, ElementType, InstrId, Shape};

use super::callee::{Callee, CalleeRole, Packing, Slot};
use super::graph::{Graph, Value};
use super::numbers::Numbers;
use super::values::Temper;

impl Graph<'_> {
    /// Adds the parameters of a called computation: separate arrays, or all in a tuple.
    pub(super) fn take_parameters(&mut self, slots: &[Slot], packing: Packing) {
        if packing == Packing::Separate {
            for slot in slots {
                let shape = Shape::Array(slot.shape.clone()).with_default_layouts();
                self.put(Some(slot.numbers), |b| b.parameter(shape));
            }
            return;
        }
        let shapes = slots.iter().map(|slot| slot.shape.clone().into()).collect();
        let tuple = self.b.parameter(packing.shape(shapes).with_default_layouts());
        let leaves = self.leaves(tuple.expect("a parameter can always be made"));
        for (slot, leaf) in slots.iter().zip(leaves) {
            self.put(Some(slot.numbers), |_| Ok(leaf));
        }
    }

    /// Returns the arrays in a value.
    fn leaves(&mut self, value: InstrId) -> Vec<InstrId> {
        let Some(count) = self.b.shape(value).as_tuple().map(<[Shape]>::len) else { return vec![value] };
        let element = |graph: &mut Self, i| graph.b.get_tuple_element(value, i).expect("the tuple has that element");
        (0..count)
            .flat_map(|i| {
                let element = element(self, i);
                self.leaves(element)
            })
            .collect()
    }

    pub(super) fn call(&mut self) -> Option<Value> {
        let callee = self.callee(|role| {
            !matches!(role, CalleeRole::Combiner { .. } | CalleeRole::Select { .. } | CalleeRole::Order { .. })
        })?;
        match &callee.role {
            CalleeRole::Scalar { parameters } => self.map(callee.id, parameters),
            CalleeRole::Function { parameters, results } => {
                let operands = self.operands(parameters);
                let call = self.b.call(callee.id, operands).ok()?;
                self.results(call, results)
            }
            CalleeRole::Branches { branches, by_predicate, packing, results } => {
                self.conditional(branches, *by_predicate, *packing, results)
            }
            CalleeRole::Loop { condition, counter, start, packing, state } => {
                let start = self.scalar(*counter, *start);
                let mut operands = vec![start];
                operands.extend(self.operands(&state[1..]));
                let init = packing.tuple(&mut self.b, operands).ok()?;
                let done = self.b.while_loop(*condition, callee.id, init).ok()?;
                let numbers: Vec<Numbers> = state.iter().map(|slot| slot.numbers).collect();
                self.results(done, &numbers)
            }
            CalleeRole::Async { .. } => self.async_call(),
            CalleeRole::Combiner { .. } | CalleeRole::Replace { .. } | CalleeRole::Best { .. } => None,
            CalleeRole::Select { .. } | CalleeRole::Order { .. } | CalleeRole::Idiom(_) => None,
        }
    }

    fn callee(&mut self, accept: impl Fn(&CalleeRole) -> bool) -> Option<Callee> {
        let fit: Vec<&Callee> = self.callees.iter().filter(|c| accept(&c.role)).collect();
        (!fit.is_empty()).then(|| self.random.pick(&fit).clone())
    }

    pub(super) fn operands(&mut self, slots: &[Slot]) -> Vec<InstrId> {
        let operand = |slot: &Slot| self.like(slot.shape.element_type(), slot.shape.dims(), |n| slot.accepts(n)).id;
        slots.iter().map(operand).collect()
    }

    /// Adds the results of a call to the pool: an array, or some of the elements of a tuple.
    pub(super) fn results(&mut self, call: InstrId, numbers: &[Numbers]) -> Option<Value> {
        let mut last = None;
        for (i, (leaf, &numbers)) in self.leaves(call).into_iter().zip(numbers).enumerate() {
            if i == 0 || self.random.percent(80) {
                last = self.put(Some(numbers), |_| Ok(leaf));
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
        packing: Packing,
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
            operands.push(packing.tuple(&mut self.b, elements).ok()?);
        }
        let op = Conditional { branches: branches.iter().map(|b| b.0).collect(), by_predicate };
        let chosen = self.b.instruction(op, None, operands).ok()?;
        self.results(chosen, results)
    }
}
