//! Movement of elements: broadcasts, reshapes, slices, paddings.

use xla_hlo::ops::{
    Broadcast, Concatenate, Convert, Dynamic, DynamicSlice, DynamicUpdateSlice, Pad, PadDim, Reshape, Reverse, Slice,
    SliceRange, Transpose,
};
use xla_hlo::{Error, InstrId, Result};

use super::broadcasting;
use super::call::Call;
use super::context::Lowering;

/// Lowers an operation that moves elements.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    Some(match call.name {
        "broadcast_in_dim" => broadcast(lowering, call, &call.operands),
        // The second operand is the result's shape, which its type says where it is static.
        "dynamic_broadcast_in_dim" if is_static(call) => broadcast(lowering, call, &call.operands[..1]),
        "dynamic_reshape" => dynamic_reshape(lowering, call),
        "broadcast" => broadcast_in_front(lowering, call),
        "reshape" => lowering.add(Reshape { inferred_dimension: None }, call.shape(), call.operands.clone()),
        "transpose" => call
            .attributes
            .indices("permutation")
            .and_then(|permutation| lowering.add(Transpose { permutation }, call.shape(), call.operands.clone())),
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

fn broadcast(lowering: &mut Lowering<'_>, call: &Call<'_>, operands: &[InstrId]) -> Result<InstrId> {
    let &[x] = operands else { return Err(Error::invalid_argument("a broadcast of several operands")) };
    let dimensions = call.attributes.indices("broadcast_dimensions")?;
    let (from, to) = (lowering.shape(x), call.shape());
    let (from, rank) = (from.expect_array()?, to.expect_array()?.rank());
    if dimensions.len() != from.rank() || dimensions.iter().any(|&d| d >= rank) {
        return Err(Error::invalid_argument(format!("broadcast_dimensions {dimensions:?} of {from} in {to}")));
    }
    broadcasting::repeat(lowering, x, to, dimensions)
}

fn is_static(call: &Call<'_>) -> bool {
    call.shape().as_array().is_some_and(xla_hlo::ArrayShape::is_static)
}

/// A reshape to a static shape, or to bounded dimensions whose sizes are the elements of the second operand.
fn dynamic_reshape(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [x, sizes] = call.exactly()?;
    if is_static(call) {
        return lowering.add(Reshape { inferred_dimension: None }, call.shape(), [x]);
    }
    let ty = lowering.shape(sizes).expect_array()?.element_type();
    let mut operands = vec![x];
    for d in 0..call.shape().expect_array()?.rank() {
        let ranges = vec![SliceRange { start: d, limit: d + 1, stride: 1 }];
        let size = lowering.infer(Slice { ranges }, [sizes])?;
        let size = lowering.add(Reshape { inferred_dimension: None }, xla_hlo::Shape::scalar(ty), [size])?;
        // HLO counts sizes in 32 bits.
        let narrow = xla_hlo::Shape::scalar(xla_hlo::ElementType::S32);
        let is_narrow = ty == xla_hlo::ElementType::S32;
        operands.push(if is_narrow { size } else { lowering.add(Convert, narrow, [size])? });
    }
    lowering.add(Dynamic::DynamicReshape, call.shape(), operands)
}

/// New dimensions in front of the old ones.
fn broadcast_in_front(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [x] = call.exactly()?;
    let (old, new) = (lowering.shape(x).expect_array()?.rank(), call.shape().expect_array()?.rank());
    let first = new.checked_sub(old).ok_or_else(|| Error::invalid_argument("a broadcast to fewer dimensions"))?;
    lowering.add(Broadcast { dimensions: (first..new).collect() }, call.shape(), [x])
}

fn slice(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let list = |name| call.attributes.indices(name);
    let (starts, limits, strides) = (list("start_indices")?, list("limit_indices")?, list("strides")?);
    if starts.len() != limits.len() || starts.len() != strides.len() {
        return Err(Error::invalid_argument("start_indices, limit_indices and strides must be equally long"));
    }
    let ranges = starts.into_iter().zip(limits).zip(strides);
    let ranges = ranges.map(|((start, limit), stride)| SliceRange { start, limit, stride }).collect();
    lowering.add(Slice { ranges }, call.shape(), call.operands.clone())
}

fn pad(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let (low, high) = (call.attributes.ints("edge_padding_low")?, call.attributes.ints("edge_padding_high")?);
    let interior = call.attributes.indices("interior_padding")?;
    if low.len() != high.len() || low.len() != interior.len() {
        return Err(Error::invalid_argument("the three lists of paddings must be equally long"));
    }
    let dims = low.into_iter().zip(high).zip(interior);
    let dims = dims.map(|((low, high), interior)| PadDim { low, high, interior }).collect();
    lowering.add(Pad { dims }, call.shape(), call.operands.clone())
}
