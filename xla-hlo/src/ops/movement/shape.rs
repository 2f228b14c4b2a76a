//! Shape rules of the movement family.

use super::*;
use crate::ops::checks::{self, ensure};
use crate::{ArrayShape, ElementKind};

/// Returns the written shape as the result; layouts are handled separately.
fn as_written(shape: &ArrayShape) -> Shape {
    shape.clone().with_layout(None).into()
}

/// Checks that each operand dimension has the size of its result dimension; returns the written shape.
pub(super) fn broadcast(op: &Broadcast, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (operand, result) = (cx.array(0)?, cx.written_array()?);
    checks::same_element_type(("the operand", operand), ("the result", result))?;
    ensure!(
        op.dimensions.len() == operand.rank(),
        "dimensions {:?} must name a result dimension for each of the {} dimensions of the operand {operand}",
        op.dimensions,
        operand.rank()
    );
    checks::distinct("dimensions", &op.dimensions, result.rank())?;
    for (d, (&size, &to)) in operand.dims().iter().zip(&op.dimensions).enumerate() {
        ensure!(
            size == result.dims()[to],
            "dimension {d} of the operand {operand} has size {size}, so dimension {to} of the result {result} must have it too"
        );
    }
    Ok(as_written(result))
}

/// Checks that operand and result have the same number of elements; returns the written shape.
pub(super) fn reshape(op: &Reshape, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (operand, result) = (cx.array(0)?, cx.written_array()?);
    checks::same_element_type(("the operand", operand), ("the result", result))?;
    let (before, after) = (operand.checked_element_count()?, result.checked_element_count()?);
    ensure!(before == after, "the operand {operand} has {before} elements, the result {result} has {after}");
    if let Some(d) = op.inferred_dimension {
        ensure!(d < result.rank(), "inferred_dimension={d} is not a dimension of the result {result}");
    }
    Ok(as_written(result))
}

/// Returns the permuted shape; the permutation must name each operand dimension once.
pub(super) fn transpose(op: &Transpose, cx: &ShapeContext<'_>) -> Result<Shape> {
    let operand = cx.array(0)?;
    checks::distinct("dimensions", &op.permutation, operand.rank())?;
    ensure!(
        op.permutation.len() == operand.rank(),
        "dimensions {:?} must name each of the {} dimensions of the operand {operand} once",
        op.permutation,
        operand.rank()
    );
    checks::array(operand.element_type(), op.permutation.iter().map(|&d| operand.dims()[d]).collect())
}

/// Checks that every range is in bounds. A result dimension has ceil((limit - start) / stride) elements.
pub(super) fn slice(op: &Slice, cx: &ShapeContext<'_>) -> Result<Shape> {
    let operand = cx.array(0)?;
    ensure!(
        op.ranges.len() == operand.rank(),
        "slice has {} ranges, but the operand {operand} has {} dimensions",
        op.ranges.len(),
        operand.rank()
    );
    let mut dims = Vec::with_capacity(operand.rank());
    for (d, (range, &size)) in op.ranges.iter().zip(operand.dims()).enumerate() {
        let SliceRange { start, limit, stride } = *range;
        ensure!(stride > 0, "the slice of dimension {d} has stride 0; it must be at least 1");
        ensure!(
            start <= limit && limit <= size,
            "the slice [{start}:{limit}] of dimension {d} must satisfy start <= limit <= {size} (operand {operand})"
        );
        dims.push((limit - start).div_ceil(stride));
    }
    checks::array(operand.element_type(), dims)
}

/// Returns the padded shape: a dimension of d elements becomes low + d + (d - 1) * interior + high.
pub(super) fn pad(op: &Pad, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (operand, value) = (cx.array(0)?, cx.array(1)?);
    checks::scalar("the padding value", value)?;
    checks::same_element_type(("the operand", operand), ("the padding value", value))?;
    ensure!(
        op.dims.len() == operand.rank(),
        "padding has {} entries, but the operand {operand} has {} dimensions",
        op.dims.len(),
        operand.rank()
    );
    let padded = |(d, (pad, &size)): (usize, (&PadDim, &usize))| {
        let between = (size as i128 - 1).max(0).checked_mul(pad.interior as i128);
        let total = between.and_then(|b| b.checked_add(size as i128 + i128::from(pad.low) + i128::from(pad.high)));
        checks::size(format_args!("dimension {d} of {operand} after padding"), total)
    };
    let dims = op.dims.iter().zip(operand.dims()).enumerate().map(padded).collect::<Result<_>>()?;
    checks::array(operand.element_type(), dims)
}

/// Returns the shape of the concatenation. Operands may differ only in the size of the concatenated dimension.
pub(super) fn concatenate(op: &Concatenate, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (first, d) = (cx.array(0)?, op.dimension);
    ensure!(d < first.rank(), "dimension {d} is not a dimension of operand 0, which is {first}");
    let mut dims = first.dims().to_vec();
    for i in 1..cx.operands().len() {
        let operand = cx.array(i)?;
        let others_agree = operand.rank() == first.rank()
            && operand.dims().iter().zip(first.dims()).enumerate().all(|(k, (a, b))| k == d || a == b);
        ensure!(
            others_agree && operand.element_type() == first.element_type(),
            "operand {i} is {operand}, which differs from operand 0, {first}, in more than the size of dimension {d}"
        );
        dims[d] = checks::size(
            format_args!("dimension {d} of the result"),
            Some(dims[d] as i128 + operand.dims()[d] as i128),
        )?;
    }
    checks::array(first.element_type(), dims)
}

/// Checks that the reversed dimensions exist and are distinct.
pub(super) fn reverse(op: &Reverse, cx: &ShapeContext<'_>) -> Result<Shape> {
    let operand = cx.array(0)?;
    checks::distinct("dimensions", &op.dimensions, operand.rank())?;
    Ok(as_written(operand))
}

/// Checks that the dimension exists and that elements are numbers, not booleans.
pub(super) fn iota(op: &Iota, cx: &ShapeContext<'_>) -> Result<Shape> {
    let result = cx.written_array()?;
    ensure!(op.dimension < result.rank(), "iota_dimension={} is not a dimension of the result {result}", op.dimension);
    ensure!(
        result.element_type().kind() != ElementKind::Pred,
        "elements must be integers, floats or complex numbers, the result is {result}"
    );
    result.checked_element_count()?;
    Ok(as_written(result))
}

/// Checks that the slice fits into the operand.
pub(super) fn dynamic_slice(op: &DynamicSlice, cx: &ShapeContext<'_>) -> Result<Shape> {
    let operand = cx.array(0)?;
    ensure!(
        op.sizes.len() == operand.rank() && op.sizes.iter().zip(operand.dims()).all(|(size, dim)| size <= dim),
        "dynamic_slice_sizes {:?} must have one size for each dimension of the operand {operand}, none larger than it",
        op.sizes
    );
    check_starts(cx, 1, operand)?;
    checks::array(operand.element_type(), op.sizes.clone())
}

/// Checks that the update fits into the operand.
pub(super) fn dynamic_update_slice(_: &DynamicUpdateSlice, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (operand, update) = (cx.array(0)?, cx.array(1)?);
    checks::same_element_type(("the operand", operand), ("the update", update))?;
    ensure!(
        update.rank() == operand.rank() && update.dims().iter().zip(operand.dims()).all(|(size, dim)| size <= dim),
        "the update {update} must have the operand's rank and fit into it, the operand is {operand}"
    );
    check_starts(cx, 2, operand)?;
    Ok(as_written(operand))
}

/// Checks the start indices: one scalar for each dimension, all of the same integer type, or one integer vector of that
/// length.
fn check_starts(cx: &ShapeContext<'_>, first: usize, operand: &ArrayShape) -> Result<()> {
    let count = cx.operands().len().saturating_sub(first);
    let starts = (first..first + count).map(|i| cx.array(i)).collect::<Result<Vec<_>>>()?;
    if let [vector] = starts[..]
        && vector.rank() == 1
    {
        ensure!(
            vector.dims()[0] == operand.rank(),
            "the vector of starts is {vector}, but the operand {operand} has {} dimensions",
            operand.rank()
        );
        return checks::integer("the vector of starts", vector);
    }
    ensure!(
        count == operand.rank(),
        "there are {count} starts, but the operand {operand} has {} dimensions",
        operand.rank()
    );
    for (d, start) in starts.iter().enumerate() {
        checks::scalar(&format!("start {d}"), start)?;
        checks::integer(&format!("start {d}"), start)?;
        checks::same_element_type(("start 0", starts[0]), (&format!("start {d}"), start))?;
    }
    Ok(())
}

/// Accepts a value of any shape.
pub(super) fn copy(_: &Copy, cx: &ShapeContext<'_>) -> Result<Shape> {
    Ok(cx.operand(0)?.without_layout())
}

/// Checks that both shapes take the same number of bits, with or without the padding of layouts.
pub(super) fn bitcast(_: &Bitcast, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (operand, result) = (cx.array(0)?, cx.written_array()?);
    for shape in [operand, result] {
        let (bits, width) = (shape.storage_bits(), shape.element_type().byte_width());
        let is_packed = width == 1 && matches!(bits, 1 | 2 | 4) && bits >= shape.element_type().bit_width();
        ensure!(bits == width * 8 || is_packed, "elements of {shape} cannot take {bits} bits in memory");
    }
    let (before, after) = (storage_bits(operand)?, storage_bits(result)?);
    let padded_alike = memory_bits(operand)? == memory_bits(result)?;
    ensure!(
        before == after || padded_alike,
        "the operand {operand} takes {before} bits, the result {result} takes {after}"
    );
    Ok(as_written(result))
}

/// Returns the number of bits of the elements in memory. Packing is taken into account, padding of tiles is not.
fn storage_bits(shape: &ArrayShape) -> Result<u128> {
    Ok(shape.checked_element_count()? as u128 * shape.storage_bits() as u128)
}

/// Returns the number of bits of the array in memory, including padding of tiles.
fn memory_bits(shape: &ArrayShape) -> Result<u128> {
    Ok(shape.memory_element_count()? as u128 * shape.storage_bits() as u128)
}
