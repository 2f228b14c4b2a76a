//! Ragged dots and scans, which exist in both CHLO and HLO.

use xla_hlo::ops::{DotDims, RaggedDot, Scan};
use xla_hlo::{Error, InstrId, Result};

use super::attributes::{Attributes, integers};
use super::call::Call;
use super::context::Lowering;
use super::contraction;
use crate::ir::{AttrId, Attribute};

/// Lowers a ragged dot or a scan.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    Some(match call.name {
        "ragged_dot" => ragged_dot(call).and_then(|op| lowering.add(op, call.shape(), call.operands.clone())),
        "scan" => scan(lowering, call),
        _ => return None,
    })
}

fn ragged_dot(call: &Call<'_>) -> Result<RaggedDot> {
    let lists = dimension_numbers(call.attributes)?;
    let [lhs_batch, rhs_batch, lhs_contracting, rhs_contracting, ragged, groups] = lists;
    let (&[ragged_dimension], [] | [_]) = (&ragged[..], &groups[..]) else {
        return Err(Error::unimplemented(format!(
            "a ragged dot must have one ragged dimension and at most one group dimension, not {ragged:?} and {groups:?}"
        )));
    };
    Ok(RaggedDot {
        dims: DotDims { lhs_batch, rhs_batch, lhs_contracting, rhs_contracting },
        ragged_dimension,
        group_dimension: groups.first().copied(),
        precision: contraction::precision(call)?,
    })
}

/// Returns the six dimension lists of a ragged dot: one attribute each, or a list of six in a composite.
fn dimension_numbers(attributes: Attributes<'_>) -> Result<[Vec<usize>; 6]> {
    const NAME: &str = "ragged_dot_dimension_numbers";
    let index = |value: i64| usize::try_from(value).ok();
    let of = |id: AttrId| {
        integers(attributes.module, id)?.into_iter().map(index).collect::<Option<Vec<usize>>>().ok_or_else(wrong)
    };
    if let Some(Attribute::Array(lists)) = attributes.get(NAME).map(|id| &attributes.module.attributes[id]) {
        let lists = lists.iter().map(|&id| of(id)).collect::<Result<Vec<_>>>()?;
        return lists.try_into().map_err(|_| wrong());
    }
    let one = |name| attributes.get(name).map_or(Ok(Vec::new()), of);
    Ok([
        one("lhs_batching_dimensions")?,
        one("rhs_batching_dimensions")?,
        one("lhs_contracting_dimensions")?,
        one("rhs_contracting_dimensions")?,
        one("lhs_ragged_dimensions")?,
        one("rhs_group_dimensions")?,
    ])
}

fn wrong() -> Error {
    Error::invalid_argument("ragged_dot_dimension_numbers must be six lists of dimensions")
}

fn scan(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let attributes = call.attributes;
    let [body] = call.regions()?;
    let &[inputs, num_carries] = &attributes.indices("operandSegmentSizes")?[..] else {
        return Err(Error::invalid_argument("operandSegmentSizes of a scan must be two numbers: inputs and carries"));
    };
    if inputs.checked_add(num_carries) != Some(call.operands.len()) {
        let count = call.operands.len();
        return Err(Error::invalid_argument(format!(
            "scan has {inputs} inputs and {num_carries} carries, but {count} operands"
        )));
    }
    let flag = |name| attributes.get(name).map_or(Ok(false), |_| attributes.flag(name));
    let op = Scan {
        dimension: attributes.index("dimension")?,
        num_carries,
        is_reverse: flag("is_reverse")?,
        is_associative: flag("is_associative")?,
        computation: lowering.closed_region("scan_body", body)?,
    };
    lowering.add(op, call.shape(), call.operands.clone())
}
