//! Evaluator of the movement family. It copies elements as bytes, which preserves every bit of every element type.

use super::strided::{View, clamp_start, copy_slice};
use super::*;
use crate::ops::checks;
use crate::{ArrayShape, MemoryStep, MemoryStepKind, Scalar};

/// Copies a slice of `operand`, whose position and strides `view` describes, into a new array of shape `result`.
fn read_through(operand: &Literal, view: &View, result: &Shape) -> Result<Literal> {
    let shape = result.expect_array()?;
    // If all elements are equal, the view makes no difference.
    if let Some(element) = one_element(operand) {
        return Literal::splat_of_bytes(shape, element);
    }
    let mut out = Literal::zeros(shape)?;
    let whole = View::row_major(shape.dims());
    copy_slice(shape.dims(), width(shape), (operand.bytes(), view), (out.bytes_mut(), &whole));
    Ok(out)
}

/// Returns the bytes of an element if all elements are known to be equal: a splat or a scalar.
fn one_element(operand: &Literal) -> Option<&[u8]> {
    operand.as_splat().or_else(|| operand.array_shape().is_scalar().then(|| operand.bytes()))
}

fn width(shape: &ArrayShape) -> usize {
    shape.element_type().byte_width()
}

/// Returns the row-major view of a whole operand.
fn whole(operand: &Literal) -> View {
    View::row_major(operand.array_shape().dims())
}

pub(super) fn broadcast(
    op: &Broadcast,
    _: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let [operand] = checks::operands(operands)?;
    let mut sources = vec![None; shape.expect_array()?.rank()];
    op.dimensions.iter().enumerate().for_each(|(d, &to)| sources[to] = Some(d));
    let view = whole(&operand).select(sources);
    read_through(&operand, &view, shape)
}

pub(super) fn reshape(_: &Reshape, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [operand] = checks::operands(operands)?;
    operand.reshaped(shape.expect_array()?)
}

pub(super) fn transpose(
    op: &Transpose,
    _: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let [operand] = checks::operands(operands)?;
    let view = whole(&operand).select(op.permutation.iter().copied().map(Some));
    read_through(&operand, &view, shape)
}

pub(super) fn slice(op: &Slice, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [operand] = checks::operands(operands)?;
    let mut view = whole(&operand);
    for (d, range) in op.ranges.iter().enumerate() {
        view.advance(d, range.start);
        view.step(d, range.stride);
    }
    read_through(&operand, &view, shape)
}

/// Copies the elements that are not trimmed to their positions in an array filled with the padding value.
pub(super) fn pad(op: &Pad, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [operand, value] = checks::operands(operands)?;
    let shape = shape.expect_array()?;
    let mut out = filled(shape, value.bytes())?;
    let (mut from, mut to) = (whole(&operand), View::row_major(shape.dims()));
    let mut dims = Vec::with_capacity(op.dims.len());
    for (d, pad) in op.dims.iter().enumerate() {
        let (size, out_size) = (operand.array_shape().dims()[d], shape.dims()[d]);
        // Element i moves to low + i * step: elements `first..end` are in bounds of the result.
        let (low, step) = (i128::from(pad.low), pad.interior as u128 + 1);
        let below = |bound: i128| bound.max(0).cast_unsigned().div_ceil(step).min(size as u128) as usize;
        let first = below(-low);
        let end = below(out_size as i128 - low).max(first);
        from.advance(d, first);
        to.advance(d, (low + (first as u128 * step).cast_signed()) as usize);
        to.step(d, step as usize);
        dims.push(end - first);
    }
    copy_slice(&dims, width(shape), (operand.bytes(), &from), (out.bytes_mut(), &to));
    Ok(out)
}

/// Creates an array whose elements all have the bytes `element`.
fn filled(shape: &ArrayShape, element: &[u8]) -> Result<Literal> {
    let mut out = Literal::zeros(shape)?;
    out.bytes_mut().chunks_exact_mut(element.len()).for_each(|chunk| chunk.copy_from_slice(element));
    Ok(out)
}

pub(super) fn concatenate(
    op: &Concatenate,
    _: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let shape = shape.expect_array()?;
    let mut out = Literal::zeros(shape)?;
    let mut to = View::row_major(shape.dims());
    for operand in &operands {
        let dims = operand.array_shape().dims();
        copy_slice(dims, width(shape), (operand.bytes(), &whole(operand)), (out.bytes_mut(), &to));
        to.advance(op.dimension, dims[op.dimension]);
    }
    Ok(out)
}

pub(super) fn reverse(op: &Reverse, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [operand] = checks::operands(operands)?;
    let mut view = whole(&operand);
    for &d in &op.dimensions {
        view.reverse(d, operand.array_shape().dims()[d]);
    }
    read_through(&operand, &view, shape)
}

/// Fills the array with indices along a dimension, which wrap to integer types and are rounded to float types.
pub(super) fn iota(op: &Iota, _: &mut Evaluator<'_>, _: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let shape = shape.expect_array()?;
    let size = shape.dims()[op.dimension];
    // Saturates only if another dimension has size 0, and then there are no elements.
    let inner = shape.dims()[op.dimension + 1..].iter().fold(1usize, |n, &d| n.saturating_mul(d));
    Literal::from_fn(shape, |i| Scalar::from_i64(shape.element_type(), (i / inner % size) as i64))
}

pub(super) fn dynamic_slice(
    op: &DynamicSlice,
    _: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let [operand, starts @ ..] = &operands[..] else { return Err(checks::missing_operand()) };
    let view = whole(operand).at(&clamped_starts(starts, operand.array_shape().dims(), &op.sizes)?);
    read_through(operand, &view, shape)
}

/// Updates the operand in place if no other literal shares its buffer.
pub(super) fn dynamic_update_slice(
    _: &DynamicUpdateSlice,
    _: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    _: &Shape,
) -> Result<Literal> {
    let mut operands = operands.into_iter();
    let (Some(mut operand), Some(update)) = (operands.next(), operands.next()) else {
        return Err(checks::missing_operand());
    };
    let sizes = update.array_shape().dims();
    let starts = clamped_starts(operands.as_slice(), operand.array_shape().dims(), sizes)?;
    let view = whole(&operand).at(&starts);
    copy_slice(sizes, width(update.array_shape()), (update.bytes(), &whole(&update)), (operand.bytes_mut(), &view));
    Ok(operand)
}

/// Reads the start indices from scalars or from one vector. Each is clamped so that a slice of `sizes` fits into an
/// array of `dims`.
fn clamped_starts(starts: &[Literal], dims: &[usize], sizes: &[usize]) -> Result<Vec<usize>> {
    let elements = starts.iter().flat_map(|s| (0..s.array_shape().element_count()).map(|i| s.get(i)));
    let starts: Vec<usize> = elements
        .zip(dims.iter().zip(sizes))
        .map(|(start, (&dim, &size))| clamp_start(start.as_i128().unwrap_or(0), dim - size))
        .collect();
    if starts.len() == dims.len() { Ok(starts) } else { Err(checks::missing_operand()) }
}

pub(super) fn copy(_: &Copy, _: &mut Evaluator<'_>, operands: Vec<Literal>, _: &Shape) -> Result<Literal> {
    let [operand] = checks::operands(operands)?;
    Ok(operand)
}

/// Writes the operand to memory in its own layout and reads it back in the layout of the result. Padding is zero.
///
/// Outside of [`Evaluator::call`] there is no instruction that specifies the operand's layout; it is row-major then.
pub(super) fn bitcast(_: &Bitcast, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [operand] = checks::operands(operands)?;
    let from = ev.operand_shape(0).and_then(Shape::as_array).unwrap_or(operand.array_shape());
    from_memory(to_memory(&operand, from)?, shape.expect_array()?)
}

/// Returns the bytes of an array in the element order and packing of the layout of `shape`.
fn to_memory(literal: &Literal, shape: &ArrayShape) -> Result<Vec<u8>> {
    let mut bytes = literal.bytes().to_vec();
    for step in shape.memory_steps()? {
        bytes = moved(bytes, width(shape), &step);
    }
    let Some(bits) = packed_bits(shape) else { return Ok(bytes) };
    let mask = (1u8 << bits) - 1;
    let pack = |bytes: &[u8]| bytes.iter().rev().fold(0, |packed, byte| packed << bits | (byte & mask));
    Ok(bytes.chunks(8 / bits).map(pack).collect())
}

/// Reads an array of `shape` from bytes in the element order and packing of its layout.
fn from_memory(mut bytes: Vec<u8>, shape: &ArrayShape) -> Result<Literal> {
    if let Some(bits) = packed_bits(shape) {
        bytes = bytes.into_iter().flat_map(|byte| (0..8 / bits).map(move |i| byte >> (i * bits))).collect();
    }
    // The source may have other padding than this array.
    bytes.resize(shape.memory_element_count()? * width(shape), 0);
    let ty = shape.element_type();
    if ty.bit_width() < 8 {
        // Reading drops the bits of neighbouring elements, writing extends the sign.
        bytes.chunks_exact_mut(1).for_each(|element| Scalar::read(ty, element).write(ty, element));
    }
    for step in shape.memory_steps()?.into_iter().rev() {
        bytes = moved(bytes, width(shape), &step.inverse());
    }
    Literal::from_bytes(shape, bytes)
}

/// Applies one step of a memory layout to elements of `width` bytes.
fn moved(bytes: Vec<u8>, width: usize, MemoryStep { kind, from, to }: &MemoryStep) -> Vec<u8> {
    if bytes.is_empty() || matches!(kind, MemoryStepKind::Reshape) {
        return bytes;
    }
    let (source, target) = (View::row_major(from), View::row_major(to));
    let (dims, source) = match kind {
        MemoryStepKind::Reshape => (to, source),
        MemoryStepKind::Transpose(order) => (to, source.select(order.iter().copied().map(Some))),
        MemoryStepKind::Pad => (from, source),
        MemoryStepKind::Slice => (to, source),
    };
    let mut out = vec![0; to.iter().product::<usize>() * width];
    copy_slice(dims, width, (&bytes, &source), (&mut out, &target));
    out
}

/// Returns the number of bits of an element if several elements share a byte (first element in the low bits).
fn packed_bits(shape: &ArrayShape) -> Option<usize> {
    Some(shape.storage_bits()).filter(|&bits| bits < 8)
}
