//! Refinement of dynamic dimensions during the lowering: functions are lowered once per list of shapes and sizes, shape
//! assertions are checked, and result shapes that are operands are resolved.

use xla_hlo::ops::Tuple;
use xla_hlo::{ArrayShape, CompId, Dynamism, Error, InstrId, Literal, Result, Shape};

use super::call::Call;
use super::context::{Argument, Lowering};
use super::{fold, types};
use crate::ir::{Attribute, OpId, RegionId};

/// Limit on the elements of constants that count as sizes. Functions are lowered separately for different sizes.
const MOST_SIZES: usize = 64;

/// Custom call target with which JAX asserts that argument shapes satisfy the constraints of the exported program.
const ASSERTION: &str = "shape_assertion";

/// Custom call attribute with the indices of the operands that are the shapes of the results.
const SHAPE_OPERANDS: &str = "indices_of_shape_operands";

impl Lowering<'_> {
    /// Evaluates an instruction, if its value is a small integer constant that sizes may depend on.
    fn size_constant(&mut self, id: InstrId) -> Option<Literal> {
        let shape = self.shape(id);
        let array = shape.as_array()?;
        let is_small = array.is_static() && array.element_count() <= MOST_SIZES;
        let is_integer = array.element_type().is_integer() || array.element_type() == xla_hlo::ElementType::Pred;
        if is_small && is_integer { self.evaluated(id) } else { None }
    }

    /// Evaluates a captured value, if it is a constant that sizes may depend on; `None` without dynamic dimensions.
    pub fn captured_size(&mut self, value: crate::ir::ValueId) -> Result<Option<Literal>> {
        if self.refinement.is_none() {
            return Ok(None);
        }
        let id = self.value(value)?;
        Ok(self.size_constant(id))
    }

    /// Returns the computation for a call of a function with these operands.
    pub fn computation_of_call(&mut self, name: &str, operands: &[InstrId]) -> Result<CompId> {
        let unknown = || Error::invalid_argument(format!("function {name} does not exist"));
        if self.refinement.is_none() {
            return self.functions.get(name).copied().ok_or_else(unknown);
        }
        let mut arguments = Vec::with_capacity(operands.len());
        let is_dynamic = self.refinement.as_ref().is_some_and(|refinement| refinement.dynamic.contains(name));
        for &operand in operands {
            let shape = self.shape(operand).without_layout();
            let constant = if is_dynamic { self.size_constant(operand) } else { None };
            arguments.push(Argument { shape, constant });
        }
        self.lowered_function(name, arguments)
    }

    /// Returns the computation of a function for these arguments, which is lowered on first use.
    fn lowered_function(&mut self, name: &str, arguments: Vec<Argument>) -> Result<CompId> {
        let Some(refinement) = &mut self.refinement else {
            return Err(Error::internal("functions are lowered for argument shapes only during a refinement"));
        };
        let op = refinement.functions.get(name).copied();
        let op = op.ok_or_else(|| Error::invalid_argument(format!("function {name} does not exist")))?;
        let key = (name.to_string(), arguments);
        if let Some(&known) = refinement.lowered.get(&key) {
            return Ok(known);
        }
        refinement.count()?;
        let lower = refinement.lower_function;
        let id = lower(self, name, op, &key.1)?;
        if let Some(refinement) = &mut self.refinement {
            refinement.lowered.insert(key, id);
        }
        Ok(id)
    }

    /// Evaluates a call that computes sizes, with constant arguments and results; `None` for another call.
    pub fn evaluated_call(&mut self, name: &str, call: &Call<'_>) -> Result<Option<Vec<InstrId>>> {
        let Some(op) = self.refinement.as_ref().and_then(|refinement| refinement.functions.get(name).copied()) else {
            return Ok(None);
        };
        let is_size =
            |shape: &Shape| shape.as_array().is_some_and(|array| array.rank() <= 1 && !array.element_type().is_float());
        if call.results.is_empty() || !call.results.iter().all(is_size) {
            return Ok(None);
        }
        let constants: Option<Vec<Literal>> = call.operands.iter().map(|&id| self.size_constant(id)).collect();
        let (Some(constants), Some(region)) = (constants, self.region_of(op)) else { return Ok(None) };
        if let Some(refinement) = &mut self.refinement {
            refinement.count()?;
        }
        self.evaluated_region(region, constants)
    }

    /// Returns the computation of a function for its declared argument types.
    pub fn computation_as_written(&mut self, name: &str) -> Result<CompId> {
        let op = self.refinement.as_ref().and_then(|refinement| refinement.functions.get(name).copied());
        let region = op.and_then(|op| self.region_of(op));
        let block = region.and_then(|region| self.source.regions[region].blocks.first());
        let arguments = block.map_or(&[][..], |&block| &self.source.blocks[block].arguments);
        let argument = |&value| Ok(Argument { shape: self.shape_of(value)?, constant: None });
        let arguments = arguments.iter().map(argument).collect::<Result<Vec<Argument>>>()?;
        self.lowered_function(name, arguments)
    }

    fn region_of(&self, op: OpId) -> Option<RegionId> {
        self.source.operations[op].regions.first().copied()
    }

    /// Lowers a function's region in a temporary computation and evaluates the returned values.
    fn evaluated_region(&mut self, region: RegionId, constants: Vec<Literal>) -> Result<Option<Vec<InstrId>>> {
        let mut results = None;
        self.discarded(|lowering| {
            let arguments = constants.into_iter().map(|literal| lowering.constant(literal));
            let arguments = arguments.collect::<Result<Vec<InstrId>>>()?;
            lowering.region(region, &arguments, |lowering, values| {
                results = values.iter().map(|&value| lowering.size_constant(value)).collect::<Option<Vec<Literal>>>();
                lowering.tuple(Vec::new())
            })
        })?;
        let Some(results) = results else { return Ok(None) };
        results.into_iter().map(|literal| self.constant(literal)).collect::<Result<Vec<InstrId>>>().map(Some)
    }
}

/// Returns the declared shape of a value, or the inferred one if the declared shape has unbounded dimensions.
pub(super) fn found(written: Shape, found: &Shape) -> Shape {
    if types::is_unbounded(&written) { found.without_layout() } else { written }
}

/// Resolves result shapes that are operands of a custom call, and removes these operands.
pub(super) fn resolve_results(lowering: &mut Lowering<'_>, call: &mut Call<'_>) -> Result<()> {
    if call.name != "custom_call" || call.attributes.get(SHAPE_OPERANDS).is_none() {
        return Ok(());
    }
    let indices = call.attributes.indices(SHAPE_OPERANDS)?;
    let results = match resolved(lowering, call, &indices) {
        Ok(results) => results,
        // A call with static results is valid without the attribute; it keeps all operands.
        Err(_) if call.results.iter().all(|result| result.leaves().iter().all(|(_, leaf)| is_static(leaf))) => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    call.results = results;
    let kept: Vec<usize> = (0..call.operands.len()).filter(|index| !indices.contains(index)).collect();
    call.operands = kept.iter().map(|&index| call.operands[index]).collect();
    call.kept_operands = Some(kept);
    Ok(())
}

fn is_static(leaf: &Shape) -> bool {
    leaf.as_array().is_none_or(ArrayShape::is_static)
}

/// Returns the result shapes of a custom call from the operands at these indices, one for each array.
fn resolved(lowering: &mut Lowering<'_>, call: &Call<'_>, indices: &[usize]) -> Result<Vec<Shape>> {
    let wrong = |why: &str| Error::invalid_argument(format!("{SHAPE_OPERANDS} {indices:?}: {why}"));
    let arrays: usize = call.results.iter().map(|result| result.leaves().len()).sum();
    if indices.len() != arrays {
        return Err(wrong("there must be one for each result"));
    }
    let mut shapes = Vec::with_capacity(arrays);
    let written = call.results.iter().flat_map(Shape::leaves);
    for (&index, (_, written)) in indices.iter().zip(written) {
        let operand = *call.operands.get(index).ok_or_else(|| wrong("there is no such operand"))?;
        let Shape::Array(written) = written else { return Err(wrong("a result is not an array")) };
        let sizes = lowering.evaluated(operand).as_ref().and_then(fold::integers);
        let dims: Option<Vec<usize>> = sizes.and_then(|sizes| sizes.into_iter().map(|s| s.try_into().ok()).collect());
        let Some(dims) = dims.filter(|dims| dims.len() == written.rank()) else {
            return Err(Error::unimplemented(
                "the result shapes of a custom call depend on values of the program; they must be constants",
            ));
        };
        let says = |d: usize| written.dynamism(d) != Dynamism::Static || written.dims()[d] == dims[d];
        if !(0..dims.len()).all(says) {
            return Err(wrong(&format!("the sizes {dims:?} do not fit the result {written}")));
        }
        let shape = ArrayShape::new(written.element_type(), dims);
        shape.checked_element_count()?;
        shapes.push(Shape::Array(shape));
    }
    let mut shapes = shapes.into_iter();
    Ok(call.results.iter().map(|result| with_leaves(result, &mut shapes)).collect())
}

/// Replaces the arrays of a shape by the next ones of an iterator.
fn with_leaves(shape: &Shape, arrays: &mut impl Iterator<Item = Shape>) -> Shape {
    match shape {
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(|element| with_leaves(element, arrays)).collect()),
        leaf => arrays.next().unwrap_or_else(|| leaf.clone()),
    }
}

/// Checks a shape assertion of JAX; `None` for another custom call.
pub(super) fn assertion(lowering: &mut Lowering<'_>, call: &Call<'_>, target: &str) -> Option<Result<InstrId>> {
    (target == ASSERTION && lowering.refinement.is_some()).then(|| {
        let (&condition, inputs) = match call.operands.split_first() {
            Some((condition, inputs)) => (condition, inputs),
            None => return Err(Error::invalid_argument(format!("{ASSERTION} has no operand"))),
        };
        let holds = lowering.evaluated(condition).filter(|literal| literal.array_shape().element_count() == 1);
        match holds.map(|literal| literal.get(0).as_bool()) {
            Some(true) => lowering.add(Tuple, Shape::Tuple(Vec::new()), Vec::new()),
            Some(false) => Err(Error::invalid_argument(failed(lowering, call, inputs))),
            None => Err(Error::unimplemented(format!("the condition of {ASSERTION} depends on values of the program"))),
        }
    })
}

/// Returns the message of a failed assertion, with sizes in place of `{0}`, `{1}` and so on.
fn failed(lowering: &mut Lowering<'_>, call: &Call<'_>, inputs: &[InstrId]) -> String {
    let message = match call.attributes.get("error_message").map(|id| &call.attributes.module.attributes[id]) {
        Some(Attribute::String(string)) => call.attributes.module.text(*string).into_owned(),
        _ => "a shape assertion failed".to_string(),
    };
    let mut result = message;
    for (i, &input) in inputs.iter().enumerate() {
        if let Some(sizes) = lowering.evaluated(input).as_ref().and_then(fold::integers) {
            let text = sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            result = result.replace(&format!("{{{i}}}"), &text);
        }
    }
    result
}
