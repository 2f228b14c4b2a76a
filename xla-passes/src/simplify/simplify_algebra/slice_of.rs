//! Moves slices towards operands, so that only the elements of the slice are computed.
//!
//! The sliced value must have no other users; otherwise it is computed as a whole.

use xla_hlo::ops::{Dot, DynamicSlice, Reverse, Slice, SliceRange, Transpose};
use xla_hlo::{ArrayShape, InstrId, Op};

use super::draft::{Draft, DraftValue};
use super::{Rule, rules};
use crate::analysis::op_cost::{EXPENSIVE, element_cost};

pub const SLICE: &[Rule] =
    rules![slice_of_elementwise, slice_of_transpose, slice_of_reverse, slice_of_reduce, slice_of_dot, slice_of_gather];

pub const DYNAMIC_SLICE: &[Rule] = rules![dynamic_slice_of_elementwise, dynamic_slice_of_transpose];

/// Returns the operand and the ranges of a slice, if the operand has no other user and the slice is a proper, nonempty
/// part.
fn cut<'c>(cx: &Draft<'c>, id: InstrId) -> Option<(InstrId, &'c [SliceRange])> {
    let Op::Slice(slice) = cx.op(id) else { return None };
    let inner = cx.operand(id, 0);
    let fewer = cx.dims(id) != cx.dims(inner) && !cx.dims(id).contains(&0);
    (fewer && cx.is_used_once(inner)).then_some((inner, &slice.ranges))
}

/// Slices `x`, or returns `x` if the ranges cover all of it.
fn slice(cx: &mut Draft<'_>, x: InstrId, ranges: Vec<SliceRange>) -> Option<DraftValue> {
    let dims: Vec<usize> = ranges.iter().map(|r| (r.limit - r.start).div_ceil(r.stride)).collect();
    if dims == cx.dims(x) {
        return Some(x.into());
    }
    let shape = ArrayShape::new(cx.element_type(x)?, dims);
    Some(cx.add(Slice { ranges }, shape, [x.into()]))
}

/// Returns the full range of `x` along a dimension.
fn whole(cx: &Draft<'_>, x: InstrId, d: usize) -> SliceRange {
    SliceRange { start: 0, limit: cx.dims(x)[d], stride: 1 }
}

/// `slice(f(x, y))` = `f(slice(x), slice(y))` for an elementwise `f`. Scalar operands are kept.
fn slice_of_elementwise(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (inner, ranges) = cut(cx, id)?;
    elementwise_of_parts(cx, id, inner, |cx, x| slice(cx, x, ranges.to_vec()))
}

/// Replaces `id` by an elementwise operation on parts of the operands; scalar operands are kept.
fn elementwise_of_parts<'c>(
    cx: &mut Draft<'c>,
    id: InstrId,
    inner: InstrId,
    part: impl Fn(&mut Draft<'c>, InstrId) -> Option<DraftValue>,
) -> Option<DraftValue> {
    let elementwise = matches!(
        cx.op(inner),
        Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Select(_) | Op::Clamp(_) | Op::ReducePrecision(_)
    );
    if !elementwise {
        return None;
    }
    let operands = cx.instruction(inner).operands();
    let mut parts: Vec<(InstrId, DraftValue)> = Vec::with_capacity(operands.len());
    for &o in operands {
        if !parts.iter().any(|(x, _)| *x == o) {
            let scalar = cx.dims(o) != cx.dims(inner);
            let value = if scalar { o.into() } else { part(cx, o)? };
            parts.push((o, value));
        }
    }
    let value = |o: &InstrId| parts.iter().find(|(x, _)| x == o).map(|(_, value)| *value);
    let new: Vec<DraftValue> = operands.iter().map(value).collect::<Option<_>>()?;
    Some(cx.add(cx.op(inner).clone(), cx.shape(id)?.clone(), new))
}

/// `slice(transpose(x))` = `transpose(slice(x))`.
fn slice_of_transpose(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (inner, ranges) = cut(cx, id)?;
    let Op::Transpose(Transpose { permutation }) = cx.op(inner) else { return None };
    let x = cx.operand(inner, 0);
    let mut own: Vec<SliceRange> = (0..ranges.len()).map(|d| whole(cx, x, d)).collect();
    permutation.iter().zip(ranges).for_each(|(&d, range)| own[d] = *range);
    let part = slice(cx, x, own)?;
    Some(cx.transpose(part, cx.shape(id)?.clone(), permutation.clone()))
}

/// `slice(reverse(x))` = `reverse(slice(x))`, with ranges counted from the other end.
fn slice_of_reverse(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (inner, ranges) = cut(cx, id)?;
    let Op::Reverse(Reverse { dimensions }) = cx.op(inner) else { return None };
    let mut own = ranges.to_vec();
    for &d in dimensions {
        let size = cx.dims(inner)[d];
        let last = own[d].start + (cx.dims(id)[d] - 1) * own[d].stride;
        own[d] = SliceRange { start: size - 1 - last, limit: size - own[d].start, stride: own[d].stride };
    }
    let part = slice(cx, cx.operand(inner, 0), own)?;
    Some(cx.add(Reverse { dimensions: dimensions.clone() }, cx.shape(id)?.clone(), [part]))
}

/// `slice(reduce(x))` = `reduce(slice(x))`.
fn slice_of_reduce(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (inner, ranges) = cut(cx, id)?;
    let (Op::Reduce(reduce), &[x, init]) = (cx.op(inner), cx.instruction(inner).operands()) else { return None };
    let mut kept = ranges.iter();
    let range = |d: usize| if reduce.dimensions.contains(&d) { Some(whole(cx, x, d)) } else { kept.next().copied() };
    let own = (0..cx.dims(x).len()).map(range).collect::<Option<Vec<_>>>()?;
    let part = slice(cx, x, own)?;
    Some(cx.add(reduce.clone(), cx.shape(id)?.clone(), [part, init.into()]))
}

/// `slice(dot(x, y))` = `dot(slice(x), slice(y))`, if it saves at least half of the work, since the slices of the
/// operands are copied. The summation order is unspecified.
fn slice_of_dot(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (inner, ranges) = cut(cx, id)?;
    let Op::Dot(Dot { dims, .. }) = cx.op(inner) else { return None };
    if cx.shape(id)?.element_count() > cx.shape(inner)?.element_count() / 2 {
        return None;
    }
    let (lhs, rhs) = (cx.operand(inner, 0), cx.operand(inner, 1));
    let [left, right] = dims.operands([lhs, rhs].map(|operand| cx.dims(operand).len()));
    let (batch, free) = ranges.split_at_checked(left.batch.len())?;
    let (of_lhs, of_rhs) = free.split_at_checked(left.free.len())?;
    let part = |cx: &mut Draft<'_>, x, of: [(&[usize], &[SliceRange]); 2]| {
        let mut own: Vec<SliceRange> = (0..cx.dims(x).len()).map(|d| whole(cx, x, d)).collect();
        for (places, ranges) in of {
            places.iter().zip(ranges).for_each(|(&d, range)| own[d] = *range);
        }
        slice(cx, x, own)
    };
    let a = part(cx, lhs, [(left.batch, batch), (&left.free, of_lhs)])?;
    let b = part(cx, rhs, [(right.batch, batch), (&right.free, of_rhs)])?;
    Some(cx.add(cx.op(inner).clone(), cx.shape(id)?.clone(), [a, b]))
}

/// `slice(gather(x, starts))` = `gather(x, slice(starts))`, if the slice drops whole windows and cuts none.
fn slice_of_gather(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (inner, ranges) = cut(cx, id)?;
    let Op::Gather(op) = cx.op(inner) else { return None };
    let (x, starts) = (cx.operand(inner, 0), cx.operand(inner, 1));
    let mut own: Vec<SliceRange> = (0..cx.dims(starts).len()).map(|d| whole(cx, starts, d)).collect();
    // The dimensions that index windows are those of the starts, except the dimension of the index components.
    let mut numbers = (0..own.len()).filter(|&d| d != op.index_vector_dim);
    for (at, range) in ranges.iter().enumerate() {
        let d = if op.offset_dims.contains(&at) { None } else { Some(numbers.next()?) };
        let is_whole = cx.dims(id)[at] == cx.dims(inner)[at];
        match d.filter(|d| !op.start_indices_batching_dims.contains(d)) {
            Some(d) => own[d] = *range,
            None if is_whole => {}
            None => return None,
        }
    }
    let part = slice(cx, starts, own)?;
    Some(cx.add(op.clone(), cx.shape(id)?.clone(), [x.into(), part]))
}

/// Returns the operand and the starts (one per dimension) of a dynamic slice, under the conditions of [`cut`].
fn dynamic_cut<'c>(cx: &Draft<'c>, id: InstrId) -> Option<(InstrId, &'c [InstrId])> {
    let (&inner, starts) = cx.instruction(id).operands().split_first()?;
    // An older form has one vector of starts.
    let each = starts.iter().all(|&s| cx.dims(s).is_empty());
    let fewer = cx.dims(id) != cx.dims(inner) && !cx.dims(id).contains(&0);
    (each && fewer && cx.is_used_once(inner)).then_some((inner, starts))
}

fn dynamic_slice(cx: &mut Draft<'_>, x: InstrId, starts: &[InstrId], sizes: Vec<usize>) -> Option<DraftValue> {
    let shape = ArrayShape::new(cx.element_type(x)?, sizes.clone());
    let operands: Vec<DraftValue> = std::iter::once(x).chain(starts.iter().copied()).map(DraftValue::Old).collect();
    Some(cx.add(DynamicSlice { sizes }, shape, operands))
}

/// `dynamic-slice(f(x, y))` = `f(dynamic-slice(x), dynamic-slice(y))` for an elementwise and cheap `f`. An expensive
/// `f` may be better computed once for all slices, before a loop.
fn dynamic_slice_of_elementwise(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (inner, starts) = dynamic_cut(cx, id)?;
    let cheap = element_cost(cx.op(inner), cx.element_type(inner)?) < EXPENSIVE;
    let sizes = cx.dims(id).to_vec();
    cheap.then(|| elementwise_of_parts(cx, id, inner, |cx, x| dynamic_slice(cx, x, starts, sizes.clone())))?
}

/// `dynamic-slice(transpose(x))` = `transpose(dynamic-slice(x))`.
fn dynamic_slice_of_transpose(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (inner, starts) = dynamic_cut(cx, id)?;
    let Op::Transpose(Transpose { permutation }) = cx.op(inner) else { return None };
    let (mut own, mut sizes) = (starts.to_vec(), cx.dims(id).to_vec());
    for (i, &d) in permutation.iter().enumerate() {
        (own[d], sizes[d]) = (starts[i], cx.dims(id)[i]);
    }
    let part = dynamic_slice(cx, cx.operand(inner, 0), &own, sizes)?;
    Some(cx.transpose(part, cx.shape(id)?.clone(), permutation.clone()))
}
