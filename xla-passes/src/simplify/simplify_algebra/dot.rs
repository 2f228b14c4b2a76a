//! Rules for contractions.

use xla_hlo::ops::{Binary, BinaryOp, Convert, Dot, DotDims, DotOperandDims};
use xla_hlo::{ArrayShape, ElementType, InstrId, Op, Scalar};

use super::convert::keeps_every_value;
use super::draft::{Draft, DraftValue, plain_reshape};
use super::{Rule, dims, rules};

pub const DOT: &[Rule] = rules![dot_of_nothing, dot_of_transpose, dot_without_sum, dot_of_ones];

fn dot<'c>(cx: &Draft<'c>, id: InstrId) -> Option<&'c Dot> {
    match cx.op(id) {
        Op::Dot(dot) => Some(dot),
        _ => None,
    }
}

/// `dot(a, b)` with a contracted dimension of size 0 = zeros.
fn dot_of_nothing(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let sizes = cx.dims(cx.operand(id, 0));
    if !dot(cx, id)?.dims.lhs_contracting.iter().any(|&d| sizes[d] == 0) {
        return None;
    }
    let shape = cx.shape(id)?;
    Some(cx.splat_of(shape, Scalar::zero(shape.element_type())))
}

/// `dot(transpose(a), b)` = `dot(a, b)` with other dimension numbers, if the free dimensions keep their order and the
/// target reads operands in any order equally fast. Also `dot(reshape(transpose(a)), b)` = `dot(reshape(a), b)` for
/// reshapes that only add and remove ones.
fn dot_of_transpose(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    if !cx.profile().dot.any_operand_order {
        return None;
    }
    let mut new = dot(cx, id)?.clone();
    let dims = new.dims.clone();
    let [left, right] = dims.operands([0, 1].map(|i| cx.dims(cx.operand(id, i)).len()));
    let DotDims { lhs_batch, lhs_contracting, rhs_batch, rhs_contracting } = &mut new.dims;
    let lhs = through_transpose(cx, cx.operand(id, 0), &left, [lhs_batch, lhs_contracting]);
    let rhs = through_transpose(cx, cx.operand(id, 1), &right, [rhs_batch, rhs_contracting]);
    if lhs.is_none() && rhs.is_none() {
        return None;
    }
    let lhs = lhs.unwrap_or_else(|| cx.operand(id, 0).into());
    let rhs = rhs.unwrap_or_else(|| cx.operand(id, 1).into());
    Some(cx.add(new, cx.shape(id)?.clone(), [lhs, rhs]))
}

/// Returns the array of which the operand is a transpose, and sets `numbers` to its batch and contracted dimensions.
/// `None` if the free dimensions change order.
fn through_transpose(
    cx: &mut Draft<'_>,
    operand: InstrId,
    dims: &DotOperandDims<'_>,
    numbers: [&mut Vec<usize>; 2],
) -> Option<DraftValue> {
    let Op::Transpose(transpose) = cx.op(operand) else {
        return through_reshaped_transpose(cx, operand, dims, numbers);
    };
    let before = |d: usize| transpose.permutation[d];
    if !dims.free.iter().map(|&d| before(d)).is_sorted() {
        return None;
    }
    numbers.into_iter().flatten().for_each(|d| *d = before(*d));
    Some(cx.operand(operand, 0).into())
}

/// Looks through a transpose followed by a reshape that adds or removes ones, like [`through_transpose`].
fn through_reshaped_transpose(
    cx: &mut Draft<'_>,
    operand: InstrId,
    dims: &DotOperandDims<'_>,
    numbers: [&mut Vec<usize>; 2],
) -> Option<DraftValue> {
    let Op::Reshape(_) = cx.op(operand) else { return None };
    let transposed = cx.operand(operand, 0);
    let Op::Transpose(transpose) = cx.op(transposed) else { return None };
    let sizes = cx.dims(operand).to_vec();
    let map = dims::reshape_map(cx.dims(transposed), &sizes)?;
    let before = |d: usize| map.iter().position(|&to| to == Some(d)).map(|d| transpose.permutation[d]);
    let (mut large, ones): (Vec<usize>, Vec<usize>) = (0..sizes.len()).partition(|&d| sizes[d] != 1);
    large.sort_by_key(|&d| before(d));
    let is_free = |d: &usize| dims.free.contains(d);
    if large.is_sorted() || !large.iter().filter(|d| is_free(d)).is_sorted() {
        return None;
    }
    // Ones are placed where the free dimensions keep their order.
    let (mut free, mut order): (Vec<usize>, Vec<usize>) = ones.into_iter().partition(is_free);
    for d in large {
        if is_free(&d) {
            order.extend(free.extract_if(.., |one| *one < d));
        }
        order.push(d);
    }
    order.extend(free);
    let place = |d: &mut usize| *d = order.iter().position(|o| o == d).unwrap_or(*d);
    numbers.into_iter().flatten().for_each(place);
    let source = cx.operand(transposed, 0);
    cx.reshape(source, &order.iter().map(|&d| sizes[d]).collect::<Vec<_>>())
}

/// `dot(a, b)` without a sum = `broadcast(a) * broadcast(b)`, an elementwise product.
///
/// Only the sign of a zero may differ, since a sum starts with +0.
fn dot_without_sum(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Dot { dims, .. } = dot(cx, id)?;
    let (lhs, rhs) = (cx.operand(id, 0), cx.operand(id, 1));
    let result = cx.shape(id)?;
    let ty = result.element_type();
    let sums = dims.lhs_contracting.iter().any(|&d| cx.dims(lhs)[d] != 1);
    // Integer products wrap around to the same result with conversion before or after; floats must be rounded once,
    // after the product.
    let fits = |from: ElementType| match ty.is_integer() && from.is_integer() {
        true => from.bit_width() <= ty.bit_width(),
        false => keeps_every_value(from, ty),
    };
    if sums || ![lhs, rhs].iter().all(|&o| cx.element_type(o).is_some_and(fits)) {
        return None;
    }
    let [left, right] = dims.operands([lhs, rhs].map(|operand| cx.dims(operand).len()));
    let first_row = left.batch.len();
    let a = spread(cx, lhs, &left, first_row, result)?;
    let b = spread(cx, rhs, &right, first_row + left.free.len(), result)?;
    Some(cx.add(Binary { op: BinaryOp::Multiply }, result.clone(), [a, b]))
}

/// Broadcasts an operand of a product to the shape of the result. Its free dimensions start at `first_free`.
fn spread(
    cx: &mut Draft<'_>,
    operand: InstrId,
    dims: &DotOperandDims<'_>,
    first_free: usize,
    result: &ArrayShape,
) -> Option<DraftValue> {
    let sizes = cx.dims(operand);
    let kept: Vec<usize> = (0..sizes.len()).filter(|d| !dims.contracting.contains(d)).collect();
    let place = |d: usize| match dims.batch.iter().position(|&b| b == d) {
        Some(position) => Some(position),
        None => dims.free.iter().position(|&f| f == d).map(|position| first_free + position),
    };
    let dimensions: Vec<usize> = kept.iter().map(|&d| place(d)).collect::<Option<_>>()?;
    let squeezed: Vec<usize> = kept.iter().map(|&d| sizes[d]).collect();
    let mut value = cx.reshape(operand, &squeezed)?;
    if cx.element_type(operand)? != result.element_type() {
        value = cx.add(Convert, ArrayShape::new(result.element_type(), squeezed), [value]);
    }
    Some(cx.broadcast(value, result.clone(), dimensions))
}

/// `dot(a, b)` = `reshape(dot(reshape(a), reshape(b)))` without batch dimensions of size 1, and without contracted ones
/// of size 1 if others are contracted. This removes batches of one and makes transposes adjacent to their dots.
fn dot_of_ones(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let mut new = dot(cx, id)?.clone();
    let (lhs, rhs, result) = (cx.operand(id, 0), cx.operand(id, 1), cx.shape(id)?);
    let sizes = cx.dims(lhs);
    let sums = new.dims.lhs_contracting.iter().any(|&d| sizes[d] != 1);
    let batch: Vec<bool> = new.dims.lhs_batch.iter().map(|&d| sizes[d] != 1).collect();
    let contracting: Vec<bool> = new.dims.lhs_contracting.iter().map(|&d| !sums || sizes[d] != 1).collect();
    if batch.iter().chain(&contracting).all(|&stays| stays) {
        return None;
    }
    let DotDims { lhs_batch, lhs_contracting, rhs_batch, rhs_contracting } = &mut new.dims;
    let a = without(cx, lhs, (lhs_batch, &batch), (lhs_contracting, &contracting))?;
    let b = without(cx, rhs, (rhs_batch, &batch), (rhs_contracting, &contracting))?;
    let sizes = result.dims().iter().enumerate().filter(|(d, _)| batch.get(*d).copied().unwrap_or(true));
    let sizes: Vec<usize> = sizes.map(|(_, &n)| n).collect();
    let value = cx.add(new, ArrayShape::new(result.element_type(), sizes), [a, b]);
    Some(if batch.contains(&false) { cx.add(plain_reshape(), result.clone(), [value]) } else { value })
}

/// Removes the listed dimensions of an operand that are not kept, and renumbers the remaining ones.
fn without(
    cx: &mut Draft<'_>,
    operand: InstrId,
    (batch, batch_stays): (&mut Vec<usize>, &[bool]),
    (contracting, contracting_stays): (&mut Vec<usize>, &[bool]),
) -> Option<DraftValue> {
    let goes = |list: &[usize], stays: &[bool]| -> Vec<usize> {
        list.iter().zip(stays).filter(|(_, stays)| !**stays).map(|(&d, _)| d).collect()
    };
    let gone = [goes(batch, batch_stays), goes(contracting, contracting_stays)].concat();
    for list in [batch, contracting] {
        list.retain(|d| !gone.contains(d));
        list.iter_mut().for_each(|d| *d -= gone.iter().filter(|&g| g < d).count());
    }
    let sizes = cx.dims(operand).iter().enumerate().filter(|(d, _)| !gone.contains(d));
    let sizes: Vec<usize> = sizes.map(|(_, &n)| n).collect();
    cx.reshape(operand, &sizes)
}
