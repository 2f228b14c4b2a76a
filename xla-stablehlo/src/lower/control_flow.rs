//! Calls, loops and branches. Values that a region captures become loop state or branch operands.

use xla_hlo::ops::{Call as CallOp, Conditional, While};
use xla_hlo::{CompId, ElementType, Error, InstrId, Literal, Result, Shape};

use super::call::Call;
use super::context::Lowering;
use super::dictionary;
use super::refinement::found;
use crate::ir::{RegionId, ValueId};

/// Lowers an operation that runs computations; returns one instruction per result.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<Vec<InstrId>>> {
    Some(match call.name {
        "call" => function_call(lowering, call, "callee", false, &[]),
        "composite" => composite(lowering, call),
        "while" => while_loop(lowering, call),
        "case" | "if" => branches(lowering, call),
        _ => return None,
    })
}

fn function_call(
    lowering: &mut Lowering<'_>,
    call: &Call<'_>,
    attribute: &str,
    is_composite: bool,
    annotations: &[(&str, String)],
) -> Result<Vec<InstrId>> {
    let name = call.attributes.symbol(attribute)?;
    if let Some(values) = lowering.evaluated_call(&name, call)? {
        return Ok(values);
    }
    let computation = lowering.computation_of_call(&name, &call.operands)?;
    let (op, shape) = (CallOp { computation, is_composite }, lowering.hlo[computation].result_shape().clone());
    let result = lowering.add_annotated(op, shape, call.operands.clone(), annotations)?;
    lowering.unpacked(result, call.results.len())
}

/// Lowers a composite to a call of its decomposition, annotated with its name and attributes so that passes can match
/// it.
fn composite(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    if !call.regions.is_empty() {
        return Err(Error::unimplemented("a composite with regions is not supported"));
    }
    let attributes = call.attributes;
    let has = |name| attributes.get(name).is_some();
    let typed = attributes.get("composite_attributes").map(|id| dictionary::typed(attributes.module, id));
    let version = if has("version") { attributes.int("version")? } else { 0 };
    let annotations = [
        ("composite.attributes", typed.transpose()?.unwrap_or_default().to_string()),
        ("composite.name", attributes.string("name")?),
        ("composite.version", version.to_string()),
    ];
    function_call(lowering, call, "decomposition", true, &annotations)
}

/// Captures of a loop's or branch's regions: values that must be passed, and constants that are added in each region.
struct Captured {
    constants: Vec<(ValueId, Literal)>,
    values: Vec<ValueId>,
}

/// Builds the computation of a region. Its parameter combines the region's arguments and the captured values, and
/// `root` creates the root from the returned values and the captures. `shapes` replace the types of arguments and
/// captures where these have unbounded dimensions.
fn computation(
    lowering: &mut Lowering<'_>,
    name: &str,
    region: RegionId,
    captured: &Captured,
    shapes: &[Shape],
    root: impl FnOnce(&mut Lowering<'_>, Vec<InstrId>, &[InstrId]) -> Result<InstrId>,
) -> Result<CompId> {
    let source = lowering.source;
    let arguments = source.regions[region].blocks.first().map_or(&[][..], |&block| &source.blocks[block].arguments);
    let own = arguments.iter().copied().filter(|&argument| !lowering.captures.is_replaced(argument));
    let own: Vec<ValueId> = own.collect();
    let values: Vec<ValueId> = own.iter().chain(&captured.values).copied().collect();
    if values.len() != shapes.len() {
        let (has, gets) = (values.len(), shapes.len());
        return Err(Error::invalid_argument(format!("a region has {has} arguments, but gets {gets} values")));
    }
    lowering.computation(name, |lowering| {
        let elements = match values[..] {
            [one] => {
                let shape = found(lowering.shape_of(one)?, &shapes[0]);
                vec![lowering.parameter_of_shape(one, shape)?]
            }
            _ => {
                let written = |(&value, shape)| Ok(found(lowering.shape_of(value)?, shape));
                let shapes = values.iter().zip(shapes).map(written).collect::<Result<Vec<_>>>()?;
                let parameter = lowering.parameter(super::types::packed_shape(shapes))?;
                lowering.unpacked(parameter, values.len())?
            }
        };
        let (own, passed) = elements.split_at(own.len());
        for (&capture, &element) in captured.values.iter().zip(passed) {
            lowering.set_value(capture, element);
        }
        captured.constants.iter().for_each(|(value, literal)| lowering.set_constant(*value, literal.clone()));
        lowering.region(region, own, |lowering, returned| root(lowering, returned, passed))
    })
}

fn while_loop(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let [condition, body] = call.regions()?;
    let (constants, values) = lowering.captured(lowering.captures.of_loop(call.op))?;
    let captured = Captured { constants, values };
    let results = &lowering.source.operations[call.op].results;
    let is_state: Vec<bool> = results.iter().map(|&result| !lowering.captures.is_replaced(result)).collect();
    let state = |values: &[InstrId]| -> Vec<InstrId> {
        values.iter().zip(&is_state).filter(|(_, is_state)| **is_state).map(|(&value, _)| value).collect()
    };
    let mut init = state(&call.operands);
    for &capture in &captured.values {
        init.push(lowering.value(capture)?);
    }
    let count = init.len();
    let shapes: Vec<Shape> = init.iter().map(|&value| lowering.shape(value)).collect();
    let condition = computation(lowering, "condition", condition, &captured, &shapes, |lowering, returned, _| {
        lowering.packed(returned)
    })?;
    let body = computation(lowering, "body", body, &captured, &shapes, |lowering, returned, passed| {
        let mut next = state(&returned);
        next.extend(passed);
        lowering.packed(next)
    })?;
    let init = lowering.packed(init)?;
    let shape = lowering.shape(init);
    let after = lowering.add(While { condition, body }, shape, [init])?;
    let own = is_state.iter().filter(|is_state| **is_state).count();
    let mut after = lowering.unpacked_first(after, own, count)?.into_iter();
    let value = |(is_state, &begun): (&bool, &InstrId)| if *is_state { after.next() } else { Some(begun) };
    let values: Option<Vec<InstrId>> = is_state.iter().zip(&call.operands).map(value).collect();
    values.ok_or_else(|| Error::internal("the loop lacks a value of its state"))
}

fn branches(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let [selector] = call.exactly()?;
    let by_predicate = lowering.shape(selector).element_type() == Some(ElementType::Pred);
    let mut branches = Vec::with_capacity(call.regions.len());
    let mut operands = vec![selector];
    for &region in call.regions {
        let (constants, values) = lowering.captured(lowering.captures.of_regions(lowering.source, &[region]))?;
        let captured = Captured { constants, values };
        let values = captured.values.iter().map(|&capture| lowering.value(capture));
        let values = values.collect::<Result<Vec<InstrId>>>()?;
        let shapes: Vec<Shape> = values.iter().map(|&value| lowering.shape(value)).collect();
        let packed = |lowering: &mut Lowering<'_>, returned, _: &[InstrId]| lowering.packed(returned);
        branches.push(computation(lowering, "branch", region, &captured, &shapes, packed)?);
        operands.push(lowering.packed(values)?);
    }
    let shape = branches.first().map_or_else(|| call.shape(), |&branch| lowering.hlo[branch].result_shape().clone());
    let result = lowering.add(Conditional { branches, by_predicate }, shape, operands)?;
    lowering.unpacked(result, call.results.len())
}
