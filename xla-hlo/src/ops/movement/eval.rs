//! Evaluator of the movement family: copies elements as bytes, so every bit survives for every element type.

use super::strided::{View, clamp_start, copy_slice};
use super::*;
use crate::ops::checks;
use crate::{ArrayShape, MemoryStep, MemoryStepKind, Scalar};

/// A new array of `result` filled by copying a slice of its size out of `operand` as `view` says.
fn read_through(operand: &Literal, view: &View, result: &Shape) -> Result<Literal> {
    let shape = result.expect_array()?;
    // Of one element there is only one thing to see, whatever the view.
    if let Some(element) = one_element(operand) {
        return Literal::splat_of_bytes(shape, element);
    }
    let mut out = Literal::zeros(shape)?;
    let whole = View::row_major(shape.dims());
    copy_slice(shape.dims(), width(shape), (operand.bytes(), view), (out.bytes_mut(), &whole));
    Ok(out)
}

/// The bytes of the element that all are.
fn one_element(operand: &Literal) -> Option<&[u8]> {
    operand.as_splat().or_else(|| operand.array_shape().is_scalar().then(|| operand.bytes()))
}

fn width(shape: &ArrayShape) -> usize {
    shape.element_type().byte_width()
}

/// A view of all of an operand.
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

/// The operand's elements that are not trimmed go to their places in an array full of the padding value.
pub(super) fn pad(op: &Pad, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [operand, value] = checks::operands(operands)?;
    let shape = shape.expect_array()?;
    let mut out = filled(shape, value.bytes())?;
    let (mut from, mut to) = (whole(&operand), View::row_major(shape.dims()));
    let mut dims = Vec::with_capacity(op.dims.len());
    for (d, pad) in op.dims.iter().enumerate() {
        let (size, out_size) = (operand.array_shape().dims()[d], shape.dims()[d]);
        // Element i goes to low + i * step: those from `first` up to `end` land inside the result.
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

/// An array whose elements all have those bytes.
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

/// Integers wrap, floats are rounded.
pub(super) fn iota(op: &Iota, _: &mut Evaluator<'_>, _: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let shape = shape.expect_array()?;
    let size = shape.dims()[op.dimension];
    // Saturates only where another dimension is empty, and then nothing is counted.
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

/// Writes in place when nobody else holds the operand.
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

/// The starts of scalars or of one vector, each clamped so that a slice of `sizes` fits into an array of `dims`.
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

/// The operand's bytes as its layout puts them in memory, read as the result's layout finds them there. Padding is
/// zero.
///
/// Called outside of [`Evaluator::call`] there is no instruction to give the operand's layout; it is row major then.
pub(super) fn bitcast(_: &Bitcast, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [operand] = checks::operands(operands)?;
    let from = ev.operand_shape(0).and_then(Shape::as_array).unwrap_or(operand.array_shape());
    from_memory(to_memory(&operand, from)?, shape.expect_array()?)
}

/// The bytes of an array in the order and packing of the layout of `shape`.
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

/// The array of `shape` whose bytes those are in the order and packing of its layout.
fn from_memory(mut bytes: Vec<u8>, shape: &ArrayShape) -> Result<Literal> {
    if let Some(bits) = packed_bits(shape) {
        bytes = bytes.into_iter().flat_map(|byte| (0..8 / bits).map(move |i| byte >> (i * bits))).collect();
    }
    // The source may be padded otherwise than this array.
    bytes.resize(shape.memory_element_count()? * width(shape), 0);
    let ty = shape.element_type();
    if ty.bit_width() < 8 {
        // Reading drops the neighbours' bits, writing extends the sign.
        bytes.chunks_exact_mut(1).for_each(|element| Scalar::read(ty, element).write(ty, element));
    }
    for step in shape.memory_steps()?.into_iter().rev() {
        bytes = moved(bytes, width(shape), &step.inverse());
    }
    Literal::from_bytes(shape, bytes)
}

/// Elements of `width` bytes after a step.
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

/// Bits of an element where several share a byte, low bits first.
fn packed_bits(shape: &ArrayShape) -> Option<usize> {
    Some(shape.storage_bits()).filter(|&bits| bits < 8)
}
