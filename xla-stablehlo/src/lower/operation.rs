//! One operation: its family's rule, its results, and errors that name it.

use xla_hlo::{InstrId, Result};

use super::attributes::Attributes;
use super::call::{Call, stem};
use super::context::Lowering;
use super::{
    broadcasting, collective, contraction, control_flow, custom, data, elementwise, indexing, linalg, movement, random,
    reduction, special,
};
use crate::ir::{Module, OpId};

/// Lowers an operation and makes its results known.
pub(super) fn lower(lowering: &mut Lowering<'_>, op: OpId) -> Result<()> {
    lower_named(lowering, op).map_err(|error| {
        let source = lowering.source;
        let (name, place) = (source.text(source.operations[op].name), source.place(op));
        // The innermost operation is the one that a person looks for.
        let is_named = [", byte ", ", line "].iter().any(|place| error.message().contains(place));
        if is_named { error } else { error.context(format!("{name}, {place}")) }
    })
}

fn lower_named(lowering: &mut Lowering<'_>, op: OpId) -> Result<()> {
    let source = lowering.source;
    lowering.begin_operation(op);
    let operation = &source.operations[op];
    let (dialect, name) = stem(source, op);
    let operands = operation.operands.iter().map(|&value| lowering.value(value)).collect::<Result<Vec<_>>>()?;
    let results = operation.results.iter().map(|&value| lowering.shape_of(value)).collect::<Result<Vec<_>>>()?;
    let attributes = Attributes { module: source, op };
    let call = Call { name, attributes, operands, results, regions: &operation.regions, op };
    let values = match dialect {
        "vhlo" | "stablehlo" | "chlo" | "mhlo" | "func" => values(lowering, &call)?,
        "builtin" if name == "unrealized_conversion_cast" => call.operands.clone(),
        _ => return Err(unknown(source, op)),
    };
    for (&result, value) in operation.results.iter().zip(values) {
        lowering.set_value(result, value);
    }
    Ok(())
}

/// Lowers an operation of StableHLO; a value for each result.
fn values(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Vec<InstrId>> {
    type Family = fn(&mut Lowering<'_>, &Call<'_>) -> Option<Result<InstrId>>;
    // Loops and branches give their results themselves.
    if let Some(values) = control_flow::lower(lowering, call) {
        return values;
    }
    let families: [Family; 12] = [
        elementwise::lower,
        special::lower,
        broadcasting::lower,
        movement::lower,
        data::lower,
        contraction::lower,
        reduction::lower,
        indexing::lower,
        linalg::lower,
        random::lower,
        collective::lower,
        custom::lower,
    ];
    for family in families {
        if let Some(value) = family(lowering, call) {
            return lowering.unpacked(value?, call.results.len());
        }
    }
    Err(unknown(lowering.source, call.op))
}

fn unknown(source: &Module, op: OpId) -> xla_hlo::Error {
    let name = source.text(source.operations[op].name);
    xla_hlo::Error::unimplemented(format!("operation {name} is not lowered to HLO yet"))
}
