//! Rewrites a computation into the chosen orders of dimensions.

use std::collections::HashMap;

use xla_hlo::ops::Transpose;
use xla_hlo::{ArrayShape, Computation, InstrId, Instruction, Result, Shape};

use super::member::{is_array, reordered, reordered_operands};
use super::order::DimOrder;
use super::view::LayoutPlan;

/// Writer that caches each value in the orders needed so far.
struct LayoutWriter<'c, 'p> {
    computation: &'c mut Computation,
    plan: &'p LayoutPlan,
    there: HashMap<InstrId, Vec<(DimOrder, InstrId)>>,
}

/// Rewrites members into the orders of their regions, with transposes for readers of another order.
pub(super) fn apply(computation: &mut Computation, plan: &LayoutPlan) -> Result<()> {
    let sequence = computation.post_order();
    let mut writer = LayoutWriter { computation, plan, there: HashMap::new() };
    for &id in &sequence {
        match plan.moved.get(&id) {
            // A transpose of a value that keeps its order already is the value in the transpose's order.
            Some((base, order)) if plan.order(*base).is_identity() => {
                writer.there.entry(*base).or_default().push((order.clone(), id));
            }
            Some(_) => {}
            None if plan.order(id).is_identity() => writer.read_as_before(id),
            None => writer.reorder(id),
        }
    }
    let root = writer.computation.root();
    let new = writer.as_before(root);
    writer.computation.set_root(new);
    for id in sequence.into_iter().rev().filter(|id| plan.moved.contains_key(id)) {
        if computation[id].users().is_empty() && computation.root() != id {
            computation.remove(id)?;
        }
    }
    Ok(())
}

impl LayoutWriter<'_, '_> {
    /// Returns a value, or its replacement, in its old order.
    fn as_before(&mut self, id: InstrId) -> InstrId {
        let (base, order) = self.plan.source(id);
        if self.plan.order(base).is_identity() { id } else { self.version(base, &order) }
    }

    /// Replaces the operands of an instruction that keeps its order by values in their old order.
    fn read_as_before(&mut self, id: InstrId) {
        for (i, operand) in self.computation[id].operands().to_vec().into_iter().enumerate() {
            let new = self.as_before(operand);
            self.computation.replace_operand(id, i, new);
        }
    }

    /// Rewrites an instruction into the order of its region.
    fn reorder(&mut self, id: InstrId) {
        let own = self.plan.order(id);
        let Some(shape) = self.computation[id].shape().as_array() else { return };
        let shape = ArrayShape::new(shape.element_type(), own.apply(shape.dims()));
        let op = self.computation[id].op().clone();
        let operands = reordered_operands(&op, self.computation[id].operands(), &own);
        let mut new = Vec::with_capacity(operands.len());
        for operand in operands {
            new.push(if self.was_array(id, operand) {
                let (base, order) = self.plan.source(operand);
                self.version(base, &order.then(&own))
            } else {
                operand
            });
        }
        self.computation.set_op(id, reordered(&op, &own));
        self.computation.set_shape(id, Shape::Array(shape).with_default_layouts());
        self.computation.set_operands(id, new);
    }

    /// Whether an operand is an array with the dimensions of `id`. The current shapes suffice, since a change of order
    /// keeps the number of dimensions.
    fn was_array(&self, id: InstrId, operand: InstrId) -> bool {
        is_array(self.computation, id, operand)
    }

    /// Returns the value `base` in the given order, relative to its old order.
    fn version(&mut self, base: InstrId, order: &DimOrder) -> InstrId {
        let stored = self.plan.order(base);
        if *order == stored {
            return base;
        }
        let there = self.there.get(&base).into_iter().flatten();
        if let Some((_, id)) = there.into_iter().find(|(o, _)| o == order) {
            return *id;
        }
        let Some(shape) = self.computation[base].shape().as_array() else { return base };
        let permutation = stored.inverse().then(order).permutation(shape.rank());
        let dims: Vec<usize> = permutation.iter().map(|&d| shape.dims()[d]).collect();
        let shape = Shape::Array(ArrayShape::new(shape.element_type(), dims)).with_default_layouts();
        let id = self.computation.add(Instruction::new(Transpose { permutation }.into(), shape, [base]));
        self.there.entry(base).or_default().push((order.clone(), id));
        id
    }
}
