//! Data movement: broadcasts, reshapes, slices, paddings.

use xla_hlo::ops::{
    Broadcast, Concatenate, DynamicSlice, DynamicUpdateSlice, Pad, PadDim, Reshape, Reverse, Slice, SliceRange,
};
use xla_hlo::{Error, InstrId, Result, Shape};

use super::call::Call;
use super::context::Lowering;
use super::dimensions::{repeat, transpose};

/// Lowers an operation that moves elements.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    Some(match call.name {
        "broadcast_in_dim" => call.exactly().and_then(|[x]| broadcast(lowering, call, x, call.shape())),
        "broadcast" => broadcast_in_front(lowering, call),
        "reshape" => call.exactly().and_then(|[x]| match lowering.shape(x).without_layout() == call.shape() {
            true => Ok(x),
            false => lowering.add(Reshape { inferred_dimension: None }, call.shape(), [x]),
        }),
        "transpose" => {
            let permutation = call.attributes.indices("permutation");
            permutation.and_then(|permutation| transpose(lowering, call.exactly::<1>()?[0], call.shape(), permutation))
        }
        "reverse" => call
            .attributes
            .indices("dimensions")
            .and_then(|dimensions| lowering.add(Reverse { dimensions }, call.shape(), call.operands.clone())),
        "concatenate" => call
            .attributes
            .index("dimension")
            .and_then(|dimension| lowering.add(Concatenate { dimension }, call.shape(), call.operands.clone())),
        "slice" => slice(lowering, call),
        "pad" => pad(lowering, call),
        "dynamic_slice" => call
            .attributes
            .indices("slice_sizes")
            .and_then(|sizes| lowering.add(DynamicSlice { sizes }, call.shape(), call.operands.clone())),
        "dynamic_update_slice" => lowering.add(DynamicUpdateSlice, call.shape(), call.operands.clone()),
        _ => return None,
    })
}

/// Broadcasts `x` to the shape `to` along `broadcast_dimensions`.
pub(super) fn broadcast(lowering: &mut Lowering<'_>, call: &Call<'_>, x: InstrId, to: Shape) -> Result<InstrId> {
    let dimensions = call.attributes.indices("broadcast_dimensions")?;
    let from = lowering.shape(x);
    let (from, rank) = (from.expect_array()?, to.expect_array()?.rank());
    if dimensions.len() != from.rank() || dimensions.iter().any(|&d| d >= rank) {
        return Err(Error::invalid_argument(format!("broadcast_dimensions {dimensions:?} do not map {from} to {to}")));
    }
    repeat(lowering, x, to, dimensions)
}

/// Lowers `broadcast`, which adds leading dimensions.
fn broadcast_in_front(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [x] = call.exactly()?;
    let (old, new) = (lowering.shape(x).expect_array()?.rank(), call.shape().expect_array()?.rank());
    let first = new
        .checked_sub(old)
        .ok_or_else(|| Error::invalid_argument("the result of a broadcast has fewer dimensions than its operand"))?;
    lowering.add(Broadcast { dimensions: (first..new).collect() }, call.shape(), [x])
}

fn slice(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let list = |name| call.attributes.indices(name);
    let ranges = ranges(list("start_indices")?, list("limit_indices")?, list("strides")?)?;
    lowering.add(Slice { ranges }, call.shape(), call.operands.clone())
}

/// Combines starts, limits and strides into the ranges of a slice.
pub(super) fn ranges(starts: Vec<usize>, limits: Vec<usize>, strides: Vec<usize>) -> Result<Vec<SliceRange>> {
    if starts.len() != limits.len() || starts.len() != strides.len() {
        return Err(Error::invalid_argument("start_indices, limit_indices and strides must be equally long"));
    }
    let ranges = starts.into_iter().zip(limits).zip(strides);
    Ok(ranges.map(|((start, limit), stride)| SliceRange { start, limit, stride }).collect())
}

fn pad(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let (low, high) = (call.attributes.ints("edge_padding_low")?, call.attributes.ints("edge_padding_high")?);
    let dims = pad_dims(low, high, call.attributes.indices("interior_padding")?)?;
    lowering.add(Pad { dims }, call.shape(), call.operands.clone())
}

/// Combines low, high and interior paddings into one entry per dimension.
pub(super) fn pad_dims(low: Vec<i64>, high: Vec<i64>, interior: Vec<usize>) -> Result<Vec<PadDim>> {
    if low.len() != high.len() || low.len() != interior.len() {
        return Err(Error::invalid_argument("the three lists of paddings must be equally long"));
    }
    let dims = low.into_iter().zip(high).zip(interior);
    Ok(dims.map(|((low, high), interior)| PadDim { low, high, interior }).collect())
}
