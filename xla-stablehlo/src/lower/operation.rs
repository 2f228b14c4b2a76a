//! Lowering of one operation: selects the family, assigns the results, and adds the operation to errors.

use xla_hlo::entity::EntityId;
use xla_hlo::{Error, InstrId, Result, Sharding};

use super::attributes::Attributes;
use super::call::{Call, stem};
use super::context::Lowering;
use super::{
    annotations, asynchronous, broadcasting, collective, contraction, control_flow, custom, data, dynamic,
    dynamic_custom, einsum, elementwise, indexing, linalg, mhlo, movement, ragged, random, reduction, refinement,
    sharded, special, transfer,
};
use crate::ir::{Attribute, Module, OpId, ValueId};

/// Lowers an operation and records its results.
pub(super) fn lower(lowering: &mut Lowering<'_>, op: OpId) -> Result<()> {
    lower_named(lowering, op).map_err(|error| {
        let source = lowering.source;
        let (name, place) = (source.text(source.operations[op].name), source.place(op));
        // The innermost operation is the relevant one in an error.
        let is_named = [", byte ", ", line "].iter().any(|place| error.message().contains(place));
        if is_named { error } else { error.context(format!("{name}, {place}")) }
    })
}

fn lower_named(lowering: &mut Lowering<'_>, op: OpId) -> Result<()> {
    let source = lowering.source;
    let operation = &source.operations[op];
    let (dialect, name) = stem(source, op);
    let operand = |&value: &ValueId| match name {
        "async_done" => lowering.value(value),
        _ => lowering.operand(value),
    };
    let operands = operation.operands.iter().map(operand).collect::<Result<Vec<_>>>()?;
    // The shape of a start depends on its operation, so it is not computed from the type.
    let results = operation.results.iter().filter(|_| name != "async_start");
    let results = results.map(|&value| lowering.shape_of(value)).collect::<Result<Vec<_>>>()?;
    let attributes = Attributes { module: source, op };
    let annotated = annotations::of_operation(lowering, attributes)?;
    let is_plain = annotated.sharding.is_none() && annotated.frontend_attributes.is_empty();
    if let ("vhlo" | "stablehlo" | "mhlo" | "chlo" | "arith", "constant", true, &[result]) =
        (dialect, name, is_plain, &operation.results[..])
    {
        return data::constant(lowering, attributes, result);
    }
    lowering.begin_operation(op, annotated.frontend_attributes);
    let first = lowering.len();
    let mut call = Call { name, attributes, operands, results, regions: &operation.regions, op, kept_operands: None };
    refinement::resolve_results(lowering, &mut call)?;
    let values = match dialect {
        "vhlo" | "stablehlo" | "chlo" | "mhlo" | "func" => values(lowering, &call)?,
        "arith" if name == "constant" => values(lowering, &call)?,
        "shape" if name == "const_shape" => vec![lowering.constant(attributes.literal("shape")?)?],
        "tensor" if name == "cast" => call.exactly::<1>()?.to_vec(),
        "sdy" => sharded::lower(lowering, &call).unwrap_or_else(|| Err(unknown(source, op)))?,
        "builtin" if name == "unrealized_conversion_cast" => call.operands.clone(),
        _ => return Err(unknown(source, op)),
    };
    if let Some(sharding) = annotated.sharding {
        shard(lowering, &values, sharding, first)?;
    }
    for (&result, value) in operation.results.iter().zip(values) {
        lowering.set_value(result, value);
    }
    lowering.end_operation();
    Ok(())
}

/// Sets the sharding of the values that are instruction `first` or later, and of the tuple that they are elements of.
fn shard(lowering: &mut Lowering<'_>, values: &[InstrId], sharding: Sharding, first: usize) -> Result<()> {
    if let Some(call) = without_results(lowering, values, first) {
        // XLA encodes this sharding as a tuple sharding.
        let leaves = match sharding {
            Sharding::Leaf(leaf) => vec![leaf],
            Sharding::Tuple(leaves) => leaves,
        };
        lowering.set_sharding(call, Sharding::Tuple(leaves));
        return Ok(());
    }
    let leaves = match &sharding {
        Sharding::Leaf(leaf) => vec![leaf.clone(); values.len()],
        Sharding::Tuple(leaves) => leaves.clone(),
    };
    if leaves.len() != values.len() {
        let (has, wants) = (values.len(), leaves.len());
        return Err(Error::invalid_argument(format!("the operation has {has} results, but {wants} shardings")));
    }
    for (&value, leaf) in values.iter().zip(leaves) {
        if value.index() >= first {
            lowering.set_sharding(value, Sharding::Leaf(leaf));
        }
    }
    match lowering.tuple_of(values) {
        Some(tuple) if tuple.index() >= first => lowering.set_sharding(tuple, sharding),
        _ => {}
    }
    Ok(())
}

/// Returns the instruction of an operation that has no result or returns an empty tuple.
fn without_results(lowering: &mut Lowering<'_>, values: &[InstrId], first: usize) -> Option<InstrId> {
    let instruction = match values {
        [] => lowering.last().filter(|last| last.index() >= first)?,
        [one] => *one,
        _ => return None,
    };
    lowering.shape(instruction).as_tuple().is_some_and(<[_]>::is_empty).then_some(instruction)
}

/// Lowers an operation; returns one instruction per result.
fn values(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    if let Some(name) = recomposed(call) {
        let (attributes, operands, results) = (call.attributes, call.operands.clone(), call.results.clone());
        let function =
            Call { name, attributes, operands, results, regions: call.regions, op: call.op, kept_operands: None };
        if let Some(value) = of_families(lowering, &function) {
            return lowering.unpacked(value?, call.results.len());
        }
    }
    type ManyFamily = fn(&mut Lowering<'_>, &Call<'_>) -> Option<Result<Vec<InstrId>>>;
    // These families return one instruction per result.
    let families: [ManyFamily; 4] = [control_flow::lower, transfer::lower, asynchronous::lower, collective::lower_each];
    for family in families {
        if let Some(values) = family(lowering, call) {
            return values;
        }
    }
    match of_families(lowering, call) {
        Some(value) => lowering.unpacked(value?, call.results.len()),
        None => Err(unknown(lowering.source, call.op)),
    }
}

/// Returns the CHLO operation that a composite encodes, because artifacts do not contain CHLO, or the MHLO operation
/// that a custom call encodes.
fn recomposed<'s>(call: &Call<'s>) -> Option<&'s str> {
    let (attribute, dialect) = match call.name {
        "composite" => ("name", "chlo."),
        "custom_call" => ("call_target_name", "mhlo."),
        _ => return None,
    };
    let module = call.attributes.module;
    match &module.attributes[call.attributes.get(attribute)?] {
        Attribute::String(name) => std::str::from_utf8(&module.strings[*name]).ok()?.strip_prefix(dialect),
        _ => None,
    }
}

fn of_families(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    type Family = fn(&mut Lowering<'_>, &Call<'_>) -> Option<Result<InstrId>>;
    let families: [Family; 17] = [
        elementwise::lower,
        special::lower,
        broadcasting::lower,
        dynamic::lower,
        einsum::lower,
        movement::lower,
        data::lower,
        contraction::lower,
        reduction::lower,
        indexing::lower,
        linalg::lower,
        random::lower,
        ragged::lower,
        mhlo::lower,
        collective::lower,
        dynamic_custom::lower,
        custom::lower,
    ];
    families.into_iter().find_map(|family| family(lowering, call))
}

fn unknown(source: &Module, op: OpId) -> Error {
    let name = source.text(source.operations[op].name);
    Error::unimplemented(format!("operation {name} is not lowered to HLO yet"))
}
