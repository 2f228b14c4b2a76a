//! Rules for transposes.

use xla_hlo::ops::Iota;
use xla_hlo::{ArrayShape, InstrId, Op};

use super::convolution::transpose_of_convolution;
use super::draft::{Draft, DraftValue, plain_reshape};
use super::{Rule, dims, rules};

pub const TRANSPOSE: &[Rule] = rules![
    transpose_to_same_order,
    transpose_of_transpose,
    transpose_of_ones,
    transpose_of_broadcast,
    transpose_of_iota,
    transpose_of_dot,
    transpose_of_reshaped_dot,
    transpose_of_convolution,
];

fn permutation<'c>(cx: &Draft<'c>, id: InstrId) -> Option<&'c [usize]> {
    match cx.op(id) {
        Op::Transpose(transpose) => Some(&transpose.permutation),
        _ => None,
    }
}

/// `transpose(x, identity)` = `x`.
fn transpose_to_same_order(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    dims::is_identity(permutation(cx, id)?).then(|| cx.operand(id, 0).into())
}

/// `transpose(transpose(x, a), b)` = `transpose(x, a[b])`.
fn transpose_of_transpose(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let (outer, first) = (permutation(cx, id)?, permutation(cx, inner)?);
    let both = outer.iter().map(|&d| first[d]).collect();
    Some(cx.transpose(cx.operand(inner, 0), cx.shape(id)?.clone(), both))
}

/// `transpose(x)` = `reshape(x)`, if only dimensions of size 1 change their position.
fn transpose_of_ones(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let x = cx.operand(id, 0);
    let sizes = cx.dims(x);
    let moved: Vec<usize> = permutation(cx, id)?.iter().copied().filter(|&d| sizes[d] != 1).collect();
    moved.is_sorted().then(|| cx.reshape(x, cx.dims(id)))?
}

/// `transpose(broadcast(x, d), p)` = `broadcast(x, inverse(p)[d])`.
fn transpose_of_broadcast(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::Broadcast(broadcast) = cx.op(inner) else { return None };
    let place = dims::inverse(permutation(cx, id)?);
    let dimensions = broadcast.dimensions.iter().map(|&d| place[d]).collect();
    Some(cx.broadcast(cx.operand(inner, 0), cx.shape(id)?.clone(), dimensions))
}

/// `transpose(iota)` = `iota` along the new position of its dimension.
fn transpose_of_iota(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Iota(iota) = cx.op(cx.operand(id, 0)) else { return None };
    let dimension = dims::inverse(permutation(cx, id)?)[iota.dimension];
    Some(cx.add(Iota { dimension }, cx.shape(id)?.clone(), []))
}

/// `transpose(dot(a, b))` = `transpose(dot(b, a))` with the minor-most dimension in place, or without a transpose, if
/// the minor-most dimension of the result is free in `a`. The products are the same; the summation order is unspecified
/// in both.
fn transpose_of_dot(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let old = permutation(cx, id)?;
    let Op::Dot(dot) = cx.op(inner) else { return None };
    let swapped = swapped(cx, inner, old)?;
    let (lhs, rhs) = (cx.operand(inner, 0), cx.operand(inner, 1));
    let mut new = dot.clone();
    std::mem::swap(&mut new.dims.lhs_batch, &mut new.dims.rhs_batch);
    std::mem::swap(&mut new.dims.lhs_contracting, &mut new.dims.rhs_contracting);
    new.precision.reverse();
    let sizes: Vec<usize> = swapped.iter().map(|&d| cx.dims(inner)[d]).collect();
    let value = cx.add(new, ArrayShape::new(cx.element_type(id)?, sizes), [rhs.into(), lhs.into()]);
    let place = dims::inverse(&swapped);
    let rest: Vec<usize> = old.iter().map(|&d| place[d]).collect();
    if dims::is_identity(&rest) { Some(value) } else { Some(cx.transpose(value, cx.shape(id)?.clone(), rest)) }
}

/// Returns the result order of a dot with swapped operands, if it has the minor-most dimension that `permutation`
/// requires.
fn swapped(cx: &Draft<'_>, id: InstrId, permutation: &[usize]) -> Option<Vec<usize>> {
    let Op::Dot(dot) = cx.op(id) else { return None };
    let batch = dot.dims.lhs_batch.len();
    let lhs_free = cx.dims(cx.operand(id, 0)).len() - batch - dot.dims.lhs_contracting.len();
    let rank = cx.dims(id).len();
    let minor_of_lhs = lhs_free > 0 && permutation.last() == Some(&(batch + lhs_free - 1)) && batch + lhs_free < rank;
    (minor_of_lhs && cx.is_used_once(id))
        .then(|| (0..batch).chain(batch + lhs_free..rank).chain(batch..batch + lhs_free).collect())
}

/// `transpose(reshape(dot(a, b)))` = `reshape(transpose(dot(a, b)))`, if the reshape only adds ones and swapped
/// operands then avoid the transpose.
fn transpose_of_reshaped_dot(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let (Op::Reshape(_), dot) = (cx.op(inner), *cx.instruction(inner).operands().first()?) else { return None };
    let sizes = cx.dims(dot);
    if sizes.contains(&1) || !cx.is_used_once(inner) {
        return None;
    }
    let map = dims::reshape_map(cx.dims(inner), sizes)?;
    let order: Vec<usize> = permutation(cx, id)?.iter().filter_map(|&d| map[d]).collect();
    swapped(cx, dot, &order)?;
    let sizes: Vec<usize> = order.iter().map(|&d| sizes[d]).collect();
    let value = cx.transpose(dot, ArrayShape::new(cx.element_type(id)?, sizes), order);
    Some(cx.add(plain_reshape(), cx.shape(id)?.clone(), [value]))
}
