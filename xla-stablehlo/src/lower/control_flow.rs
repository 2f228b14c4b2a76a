//! Calls, loops and branches. Values that a region captures become state of a loop, or operands of a branch.

use xla_hlo::ops::{Call as CallOp, Conditional, While};
use xla_hlo::{CompId, ElementType, Error, InstrId, Result};

use super::call::Call;
use super::context::Lowering;
use crate::ir::{RegionId, ValueId};

/// Lowers an operation that runs computations; a value for each result.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<Vec<InstrId>>> {
    Some(match call.name {
        "call" => function_call(lowering, call, "callee"),
        // A call with a name, which passes may match; its meaning is the decomposition.
        "composite" => function_call(lowering, call, "decomposition"),
        "while" => while_loop(lowering, call),
        "case" | "if" => branches(lowering, call),
        _ => return None,
    })
}

fn function_call(lowering: &mut Lowering<'_>, call: &Call<'_>, attribute: &str) -> Result<Vec<InstrId>> {
    let name = call.attributes.symbol(attribute)?;
    let computation = lowering.functions.get(&name).copied();
    let computation = computation.ok_or_else(|| Error::invalid_argument(format!("there is no function {name}")))?;
    let result = lowering.add(CallOp { computation, is_composite: false }, call.shape(), call.operands.clone())?;
    lowering.unpacked(result, call.results.len())
}

/// A computation of one parameter, the arguments and then the captures of a region, with what it returns and, for the
/// body of a loop, the captures again.
fn computation(
    lowering: &mut Lowering<'_>,
    name: &str,
    region: RegionId,
    captures: &[ValueId],
    passes_on: bool,
) -> Result<CompId> {
    let source = lowering.source;
    let arguments = source.regions[region].blocks.first().map_or(&[][..], |&block| &source.blocks[block].arguments);
    let values: Vec<ValueId> = arguments.iter().chain(captures).copied().collect();
    let shapes = values.iter().map(|&value| lowering.shape_of(value)).collect::<Result<Vec<_>>>()?;
    lowering.computation(name, |lowering| {
        let parameter = lowering.parameter(super::types::packed_shape(shapes))?;
        let elements = lowering.unpacked(parameter, values.len())?;
        let (own, captured) = elements.split_at(arguments.len());
        for (&capture, &element) in captures.iter().zip(captured) {
            lowering.set_value(capture, element);
        }
        lowering.region(region, own, |lowering, mut returned| {
            returned.extend(captured.iter().filter(|_| passes_on));
            lowering.packed(returned)
        })
    })
}

fn while_loop(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let [condition, body] = call.regions()?;
    let mut captures = lowering.captures(condition);
    captures.extend(lowering.captures(body));
    captures.sort_unstable();
    captures.dedup();
    let mut init = call.operands.clone();
    for &capture in &captures {
        init.push(lowering.value(capture)?);
    }
    let count = init.len();
    let condition = computation(lowering, "condition", condition, &captures, false)?;
    let body = computation(lowering, "body", body, &captures, true)?;
    lowering.begin_operation(call.op);
    let init = lowering.packed(init)?;
    let state = lowering.infer(While { condition, body }, [init])?;
    let mut values = lowering.unpacked(state, count)?;
    values.truncate(call.results.len());
    Ok(values)
}

fn branches(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let [selector] = call.exactly()?;
    let by_predicate = lowering.shape(selector).element_type() == Some(ElementType::Pred);
    let mut branches = Vec::with_capacity(call.regions.len());
    let mut operands = vec![selector];
    for &region in call.regions {
        let captures = lowering.captures(region);
        let values = captures.iter().map(|&capture| lowering.value(capture)).collect::<Result<Vec<InstrId>>>()?;
        branches.push(computation(lowering, "branch", region, &captures, false)?);
        lowering.begin_operation(call.op);
        operands.push(lowering.packed(values)?);
    }
    let result = lowering.add(Conditional { branches, by_predicate }, call.shape(), operands)?;
    lowering.unpacked(result, call.results.len())
}
