//! Operations of Shardy, as the custom calls and calls that XLA represents them by; see `xla_hlo::sdy`.

use xla_hlo::ops::{Call as CallOp, CustomCall};
use xla_hlo::sdy::{PerValue, attribute, target};
use xla_hlo::{CompId, Error, InstrId, Result, Shape, Sharding};

use super::annotations::named;
use super::call::Call;
use super::context::Lowering;
use super::sharding;
use super::types::packed_shape;

/// Name of the body computation of a manual computation.
const MANUAL_BODY: &str = "xla.sdy.manual_computation_body";

/// Lowers a Shardy operation; returns one instruction per result.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<Vec<InstrId>>> {
    Some(match call.name {
        "sharding_constraint" => constraint(lowering, call, false),
        "reshard" => constraint(lowering, call, true),
        "sharding_group" => group(lowering, call),
        "propagation_barrier" => barrier(lowering, call),
        "data_flow_edge" => data_flow_edge(lowering, call),
        "manual_computation" => manual_computation(lowering, call),
        "named_computation" => named_computation(lowering, call),
        _ => return None,
    })
}

fn custom_call(target: &str, has_side_effect: bool) -> CustomCall {
    CustomCall { has_side_effect, ..CustomCall::new(target) }
}

/// Returns the shardings in an attribute, over named meshes.
fn shardings(lowering: &mut Lowering<'_>, call: &Call<'_>, name: &str) -> Result<PerValue> {
    let id = call.attributes.get(name);
    let id = id.ok_or_else(|| Error::invalid_argument(format!("attribute {name} is missing")))?;
    let list = sharding::per_value(call.attributes.module, id)?;
    Ok(named(lowering, list))
}

fn constraint(lowering: &mut Lowering<'_>, call: &Call<'_>, is_reshard: bool) -> Result<Vec<InstrId>> {
    let list = shardings(lowering, call, "sharding")?;
    let [sharding] = &list.0[..] else { return Err(Error::invalid_argument("one sharding is needed")) };
    let tiles = sharding::tiles_of(&lowering.meshes, sharding)?;
    lowering.annotate(attribute::SHARDING, list.to_string());
    if is_reshard {
        lowering.annotate(attribute::RESHARD, "true".to_string());
    }
    let [x] = call.exactly()?;
    let result = lowering.add(custom_call(target::CONSTRAINT, false), call.shape(), [x])?;
    lowering.set_sharding(result, Sharding::Leaf(tiles));
    Ok(vec![result])
}

fn group(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    lowering.annotate(attribute::GROUP_ID, format!("{} : i64", call.attributes.int("group_id")?));
    let [x] = call.exactly()?;
    lowering.add(custom_call(target::GROUP, true), Shape::Tuple(Vec::new()), [x])?;
    Ok(Vec::new())
}

fn barrier(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    lowering.annotate(attribute::ALLOWED_DIRECTION, format!("{} : i32", call.attributes.int("allowed_direction")?));
    let [x] = call.exactly()?;
    Ok(vec![lowering.add(custom_call(target::BARRIER, true), call.shape(), [x])?])
}

fn data_flow_edge(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    if call.attributes.get("sharding").is_some() {
        let list = shardings(lowering, call, "sharding")?;
        lowering.annotate(attribute::SHARDING, list.to_string());
    }
    let [x] = call.exactly()?;
    Ok(vec![lowering.add(custom_call(target::DATA_FLOW_EDGE, true), call.shape(), [x])?])
}

/// Lowers a manual computation to a call of the body on local values, between custom calls that convert between global
/// and local shapes.
fn manual_computation(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let [region] = call.regions()?;
    let inside = shardings(lowering, call, "in_shardings")?;
    let outside = shardings(lowering, call, "out_shardings")?;
    let (operands, results) = (call.operands.len(), call.results.len());
    if (inside.0.len(), outside.0.len()) != (operands, results) {
        return Err(Error::invalid_argument(format!(
            "the operation has {operands} operands with {} shardings and {results} results with {}",
            inside.0.len(),
            outside.0.len()
        )));
    }
    let axes = call.attributes.get("manual_axes").map(|id| sharding::manual_axes(call.attributes.module, id));
    let axes = axes.transpose()?.unwrap_or_default();
    let computation = lowering.closed_region(MANUAL_BODY, region)?;
    let by_hand = !axes.0.is_empty();
    let axes = (attribute::MANUAL_AXES, axes.to_string());
    let mut locals = call.operands.clone();
    if by_hand && operands > 0 {
        let annotations = [(attribute::IN_SHARDINGS, inside.to_string()), axes.clone()];
        let shape = packed_shape(parameter_shapes(lowering, computation));
        let op = custom_call(target::GLOBAL_TO_LOCAL, true);
        let local = lowering.add_annotated(op, shape, locals, &annotations)?;
        locals = lowering.unpacked(local, operands)?;
    }
    let body = CallOp { computation, is_composite: false };
    let shape = lowering.hlo[computation].result_shape().clone();
    let inlineable = [("inlineable", (!by_hand).to_string())];
    let result = lowering.add_annotated(body, shape, locals, &inlineable[..usize::from(by_hand)])?;
    let locals = lowering.unpacked(result, results)?;
    if !by_hand || results == 0 {
        return Ok(locals);
    }
    let annotations = [(attribute::OUT_SHARDINGS, outside.to_string()), axes];
    let op = custom_call(target::LOCAL_TO_GLOBAL, true);
    let global = lowering.add_annotated(op, call.shape(), locals, &annotations)?;
    lowering.unpacked(global, results)
}

fn parameter_shapes(lowering: &Lowering<'_>, computation: CompId) -> Vec<Shape> {
    let computation = &lowering.hlo[computation];
    computation.parameters().iter().map(|&parameter| computation[parameter].shape().clone()).collect()
}

/// Lowers a named computation to a call of a computation with that name, annotated with its shardings.
fn named_computation(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    let [region] = call.regions()?;
    let mut annotations = Vec::new();
    for (name, attribute) in [("in_shardings", attribute::IN_SHARDINGS), ("out_shardings", attribute::OUT_SHARDINGS)] {
        if call.attributes.get(name).is_some() {
            annotations.push((attribute, shardings(lowering, call, name)?.to_string()));
        }
    }
    let computation = lowering.closed_region(&call.attributes.string("name")?, region)?;
    let op = CallOp { computation, is_composite: false };
    let result = lowering.add_annotated(op, call.shape(), call.operands.clone(), &annotations)?;
    lowering.unpacked(result, call.results.len())
}
