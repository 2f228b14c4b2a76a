//! Control flow with dynamic sizes: passes sizes to and from computations as tuple elements.

use std::collections::{BTreeSet, HashMap};

use xla_hlo::ops::{Call, Conditional, While};
use xla_hlo::{CompId, Dynamism, InstrId, Module, Result, Shape};

use super::{Padder, Sizes};
use crate::rewrite::builder::Inserter;
use crate::rewrite::growth::Growth;

/// Pairs (leaf, dimension) of a value whose sizes are passed along with it.
type Carried = Vec<(usize, usize)>;

/// Returns the dimensions that are dynamic in any of these shapes, which are otherwise equal.
fn carried(shapes: &[&Shape]) -> Carried {
    let mut found = BTreeSet::new();
    for shape in shapes {
        for (leaf, (_, shape)) in shape.leaves().into_iter().enumerate() {
            let Some(array) = shape.as_array() else { continue };
            found.extend((0..array.rank()).filter(|&d| array.dynamism(d) != Dynamism::Static).map(|d| (leaf, d)));
        }
    }
    found.into_iter().collect()
}

fn parameter_shape(module: &Module, callee: CompId, number: usize) -> &Shape {
    let callee = &module[callee];
    callee[callee.parameters()[number]].shape()
}

impl Padder<'_> {
    pub(super) fn while_loop(&mut self, id: InstrId, op: &While, init: InstrId) -> Result<Vec<Sizes>> {
        let module = self.at.module();
        let shape = self.at.shape(id).clone();
        let state = carried(&[
            &shape,
            self.at.shape(init),
            parameter_shape(module, op.condition, 0),
            parameter_shape(module, op.body, 0),
            module[op.body].result_shape(),
        ]);
        if state.is_empty() {
            return Ok(Vec::new());
        }
        let init = self.packed(init, &state)?;
        let condition = self.adapted(op.condition, std::slice::from_ref(&state), &Vec::new())?;
        let body = self.adapted(op.body, std::slice::from_ref(&state), &state)?;
        let last = self.at.add(While { condition, body }, [init])?;
        self.stand_for_packed(id, last, &shape, &state)
    }

    pub(super) fn conditional(&mut self, id: InstrId, op: &Conditional, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let module = self.at.module();
        let shape = self.at.shape(id).clone();
        let mut results = vec![&shape];
        results.extend(op.branches.iter().map(|&branch| module[branch].result_shape()));
        let result = carried(&results);
        let arguments: Vec<Carried> = op
            .branches
            .iter()
            .zip(&operands[1..])
            .map(|(&branch, &operand)| carried(&[self.at.shape(operand), parameter_shape(module, branch, 0)]))
            .collect();
        if result.is_empty() && arguments.iter().all(Vec::is_empty) {
            return Ok(Vec::new());
        }
        let mut handed = vec![operands[0]];
        let mut branches = Vec::with_capacity(op.branches.len());
        for (i, argument) in arguments.iter().enumerate() {
            handed.push(self.packed(operands[i + 1], argument)?);
            branches.push(self.adapted(op.branches[i], std::slice::from_ref(argument), &result)?);
        }
        let value = self.at.add(Conditional { branches, ..op.clone() }, handed)?;
        self.stand_for_packed(id, value, &shape, &result)
    }

    pub(super) fn call(&mut self, id: InstrId, op: &Call, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let module = self.at.module();
        let shape = self.at.shape(id).clone();
        let result = carried(&[&shape, module[op.computation].result_shape()]);
        let argument = |(number, &operand): (usize, &InstrId)| {
            carried(&[self.at.shape(operand), parameter_shape(module, op.computation, number)])
        };
        let arguments: Vec<Carried> = operands.iter().enumerate().map(argument).collect();
        if result.is_empty() && arguments.iter().all(Vec::is_empty) {
            return Ok(Vec::new());
        }
        let mut handed = Vec::with_capacity(operands.len());
        for (&operand, argument) in operands.iter().zip(&arguments) {
            handed.push(self.packed(operand, argument)?);
        }
        let computation = self.adapted(op.computation, &arguments, &result)?;
        let value = self.at.add(Call { computation, ..op.clone() }, handed)?;
        self.stand_for_packed(id, value, &shape, &result)
    }

    /// Copies a computation and adapts the copy to take and return values with their sizes.
    fn adapted(&mut self, callee: CompId, arguments: &[Carried], result: &Carried) -> Result<CompId> {
        let copy = Growth::of(self.at.module()).copy(self.at.module_mut(), callee)?;
        let mut inside = Padder { at: Inserter::new(self.at.module_mut(), copy), sizes: HashMap::new() };
        for (number, argument) in arguments.iter().enumerate() {
            inside.take_packed(number, argument)?;
        }
        inside.walk()?;
        let root = inside.at.graph().root();
        if result.is_empty() {
            inside.check_result(root)?;
        }
        let root = inside.packed(root, result)?;
        inside.at.graph_mut().set_root(root);
        inside.forget()?;
        Ok(copy)
    }

    /// Returns a tuple of the elements of a value (or of the array itself) and its sizes; the value itself if there are
    /// none.
    fn packed(&mut self, value: InstrId, carried: &Carried) -> Result<InstrId> {
        if carried.is_empty() {
            return Ok(value);
        }
        let shape = self.at.shape(value).clone();
        let sizes = self.leaf_sizes(value);
        let mut parts = match shape.as_tuple() {
            Some(elements) => (0..elements.len()).map(|i| self.at.get(value, i)).collect::<Result<Vec<_>>>()?,
            None => vec![value],
        };
        let leaves = shape.leaves();
        for &(leaf, d) in carried {
            let bound = leaves[leaf].1.expect_array()?.dims()[d];
            parts.push(self.size_or(sizes[leaf][d], bound)?);
        }
        self.at.tuple(&parts)
    }

    /// Returns the value of that shape from the result of [`Padder::packed`], and records its sizes.
    fn unpacked(&mut self, packed: InstrId, shape: &Shape, carried: &Carried) -> Result<InstrId> {
        if carried.is_empty() {
            return Ok(packed);
        }
        let count = shape.as_tuple().map_or(1, <[Shape]>::len);
        let elements = (0..count).map(|i| self.at.get(packed, i)).collect::<Result<Vec<_>>>()?;
        let value = match shape.as_tuple() {
            Some(_) => self.at.tuple(&elements)?,
            None => elements[0],
        };
        let mut sizes: Vec<Sizes> =
            shape.leaves().iter().map(|(_, leaf)| vec![None; leaf.as_array().map_or(0, |a| a.rank())]).collect();
        for (i, &(leaf, d)) in carried.iter().enumerate() {
            sizes[leaf][d] = Some(self.at.get(packed, count + i)?);
        }
        self.sizes.insert(value, sizes);
        Ok(value)
    }

    /// Changes parameter `number` to a tuple that includes its sizes.
    fn take_packed(&mut self, number: usize, carried: &Carried) -> Result<()> {
        if carried.is_empty() {
            return Ok(());
        }
        let parameter = self.at.graph().parameters()[number];
        let shape = self.at.shape(parameter).clone();
        let users = self.at.graph()[parameter].users().to_vec();
        let is_root = self.at.graph().root() == parameter;
        let mut parts = match &shape {
            Shape::Tuple(elements) => elements.clone(),
            other => vec![other.clone()],
        };
        parts.extend(carried.iter().map(|_| Shape::scalar(xla_hlo::ElementType::S32)));
        self.at.graph_mut().set_shape(parameter, Shape::Tuple(parts).with_default_layouts());
        let value = self.unpacked(parameter, &shape, carried)?;
        // The elements of the parameter get their sizes from it.
        let mut sizes = self.sizes.get(&value).cloned().unwrap_or_default();
        sizes.extend(carried.iter().map(|_| Vec::new()));
        self.sizes.insert(parameter, sizes);
        for user in users {
            for i in 0..self.at.graph()[user].operands().len() {
                if self.at.graph()[user].operand(i) == parameter {
                    self.at.graph_mut().replace_operand(user, i, value);
                }
            }
        }
        if is_root {
            self.at.graph_mut().set_root(value);
        }
        Ok(())
    }

    fn stand_for_packed(
        &mut self,
        id: InstrId,
        packed: InstrId,
        shape: &Shape,
        carried: &Carried,
    ) -> Result<Vec<Sizes>> {
        let value = self.unpacked(packed, shape, carried)?;
        self.replace(id, value)?;
        Ok(Vec::new())
    }
}
