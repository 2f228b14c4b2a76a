//! Bodies, conditions and branches in the new program: loops and branches share a computation as in the original
//! program, if the places of its parameter and of its result are equal.

use xla_hlo::ops::Parameter;
use xla_hlo::{CompId, Computation, Result, Shape};

use super::parts::local_shape;
use super::place::{Form, Place, Value, found};
use super::rewrite::{Rewriter, weight};

impl Rewriter<'_> {
    /// Returns the known form of a computation for a parameter at these places.
    pub(super) fn known_form(&self, source: CompId, places: &[Place]) -> Option<Form> {
        found(self.forms.get(&source), places)
    }

    /// Records a form for other loops and branches.
    pub(super) fn share_form(&mut self, source: CompId, places: &[Place], form: &Form) {
        self.forms.entry(source).or_default().push((places.into(), form.clone()));
    }

    /// Returns the form of a computation for a parameter of a global shape at these places.
    pub(super) fn form(&mut self, source: CompId, shape: &Shape, places: &[Place]) -> Result<Form> {
        if let Some(known) = self.known_form(source, places) {
            return Ok(known);
        }
        let form = self.new_form(source, shape, places)?;
        self.share_form(source, places, &form);
        Ok(form)
    }

    /// Emits a computation of one parameter as a computation of its own.
    pub(super) fn new_form(&mut self, source: CompId, shape: &Shape, places: &[Place]) -> Result<Form> {
        let graph = &self.source[source];
        let id = self.target.add(Computation::new(graph.name()));
        let around = std::mem::replace(&mut self.at, id);
        let mut at = self.inserter();
        let parameter = at.add_as(Parameter { number: 0 }, local_shape(shape, places), [])?;
        if let Some(&own) = graph.parameters().first() {
            at.graph_mut().rename(parameter, graph[own].name());
        }
        let result = self.computation(source, &[Value { id: parameter, places: places.into() }])?;
        self.target.computation_mut(id).set_root(result.id);
        self.at = around;
        Ok(Form { id, result })
    }

    /// Returns the computation of a form whose result of a global shape is converted to other places.
    pub(super) fn form_to(&mut self, form: &Form, shape: &Shape, places: &[Place]) -> Result<CompId> {
        if form.result.is_placed(places) {
            return Ok(form.id);
        }
        if let Some(known) = found(self.converted_forms.get(&form.id), places) {
            return Ok(known);
        }
        let copy = self.target[form.id].clone();
        self.count(weight(&copy))?;
        let copy = self.target.add(copy);
        let around = std::mem::replace(&mut self.at, copy);
        let root = self.placed(&form.result, shape, places)?;
        self.target.computation_mut(copy).set_root(root);
        self.at = around;
        self.converted_forms.entry(form.id).or_default().push((places.into(), copy));
        Ok(copy)
    }
}
