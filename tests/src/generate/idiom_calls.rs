//! Calls of idioms, with arguments whose values the error analysis knows.

use xla_hlo::{ArrayShape, InstrId, Literal};

use super::callee::CalleeRole;
use super::graph::{Graph, Value};
use super::idioms::Idiom;
use super::numbers::Numbers;
use super::values::{Temper, extent};
use crate::rounding::{MeasuredResult, measure, number};

impl Graph<'_> {
    /// Calls an idiom. Its arguments are parameters of the program, so that the error analysis knows their values.
    pub(super) fn idiom(&mut self) -> Option<Value> {
        self.inputs.as_ref()?;
        let callees = self.callees;
        let called: Vec<_> = callees.iter().filter(|c| matches!(c.role, CalleeRole::Idiom(_))).collect();
        let callee = called.get(self.random.below(called.len().max(1)))?;
        let CalleeRole::Idiom(idiom) = &callee.role else { return None };
        let temper = self.random.pick(&[Temper::Smooth, Temper::Grid]);
        let arguments = idiom.parameters.iter().map(|shape| self.given(shape, temper)).collect::<Option<Vec<_>>>()?;
        let (ids, literals): (Vec<InstrId>, Vec<Literal>) = arguments.into_iter().unzip();
        let results = measure(&idiom.module, &literals).ok()?;
        let call = self.b.call(callee.id, ids).ok()?;
        let is_tuple = self.b.shape(call).as_array().is_none();
        let mut last = None;
        for (i, result) in results.iter().enumerate() {
            let value = self.put(numbers(result), |b| if is_tuple { b.get_tuple_element(call, i) } else { Ok(call) });
            self.tolerances.extend(value.as_ref().map(|value| (value.id, result.tolerance)));
            last = value.or(last);
        }
        last
    }

    /// Returns a parameter of a shape with its argument: an existing one, which is then used twice, or a new one.
    fn given(&mut self, shape: &ArrayShape, temper: Temper) -> Option<(InstrId, Literal)> {
        let shape = shape.clone().with_layout(None);
        let bound = if shape.element_type().is_float() { 1.0 } else { extent(shape.element_type(), temper).0 };
        let fits = |v: &Value| v.shape == shape && v.numbers.is_exact() && v.numbers.bound <= bound;
        let argument = |v: &Value| {
            let at = self.parameters.iter().position(|&id| id == v.id)?;
            Some((v.id, self.inputs.as_ref()?.get(at)?.clone()))
        };
        let known: Vec<(InstrId, Literal)> = self.values.iter().filter(|v| fits(v)).filter_map(argument).collect();
        if !known.is_empty() && self.random.percent(40) {
            return Some(self.random.pick(&known));
        }
        let literal = Idiom::argument(self.random, &shape, temper).ok()?;
        let value = self.parameter(literal.clone(), Numbers::within(bound));
        Some((value.id, literal))
    }
}

/// Returns the properties of a result; `None` if it is not finite or has no useful error bound.
fn numbers(result: &MeasuredResult) -> Option<Numbers> {
    let (value, ty) = (&result.value, result.value.array_shape().element_type());
    let greatest = (0..value.array_shape().element_count()).map(|i| number(value, i).abs());
    let greatest = greatest.fold(0.0, |a: f64, b| if b.is_finite() { a.max(b) } else { f64::INFINITY });
    if greatest.is_infinite() {
        return None;
    }
    match result.noise {
        0.0 => Some(Numbers::within(greatest).as_values()),
        noise => Numbers::noisy(ty, greatest + noise, noise, 0.0),
    }
}
