//! Rules for broadcasts, and for elementwise operations on them.

use xla_hlo::ops::Iota;
use xla_hlo::{ArrayShape, InstrId, Op};

use super::draft::{Draft, DraftValue, plain_reshape};
use super::{Rule, dims, rules};

pub const BROADCAST: &[Rule] = rules![
    broadcast_to_same_dims,
    broadcast_of_broadcast,
    broadcast_of_ones,
    broadcast_of_transpose,
    broadcast_of_iota,
];

pub const ELEMENTWISE: &[Rule] = rules![elementwise_of_broadcasts];

pub const CONSTANT: &[Rule] = rules![constant_of_equal_elements];

/// `broadcast(x)` to the same dimensions in the same order = `x`.
fn broadcast_to_same_dims(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Broadcast(op) = cx.op(id) else { return None };
    let x = cx.operand(id, 0);
    (dims::is_identity(&op.dimensions) && cx.dims(x) == cx.dims(id)).then_some(x.into())
}

/// `broadcast(broadcast(x, a), b)` = `broadcast(x, b[a])`.
fn broadcast_of_broadcast(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Broadcast(outer) = cx.op(id) else { return None };
    let x = cx.operand(id, 0);
    let Op::Broadcast(inner) = cx.op(x) else { return None };
    let dimensions = inner.dimensions.iter().map(|&d| outer.dimensions[d]).collect();
    Some(cx.broadcast(cx.operand(x, 0), cx.shape(id)?.clone(), dimensions))
}

/// `broadcast(x)` = `broadcast(reshape(x))` without the dimensions of `x` of extent 1.
fn broadcast_of_ones(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Broadcast(op) = cx.op(id) else { return None };
    let x = cx.operand(id, 0);
    let sizes = cx.dims(x);
    if !sizes.contains(&1) {
        return None;
    }
    let kept = dims::nontrivial(sizes).into_iter().map(|d| op.dimensions[d]).collect();
    of_squeezed(cx, x, cx.shape(id)?, kept)
}

/// `broadcast(transpose(x, p), d)` = `broadcast(x, d[inverse p])`.
fn broadcast_of_transpose(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Broadcast(op) = cx.op(id) else { return None };
    let inner = cx.operand(id, 0);
    let Op::Transpose(transpose) = cx.op(inner) else { return None };
    let dimensions = dims::inverse(&transpose.permutation).into_iter().map(|d| op.dimensions[d]).collect();
    Some(cx.broadcast(cx.operand(inner, 0), cx.shape(id)?.clone(), dimensions))
}

/// `broadcast(iota)` = `iota` along the dimension that the iota's dimension maps to.
fn broadcast_of_iota(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Broadcast(op) = cx.op(id) else { return None };
    let Op::Iota(iota) = cx.op(cx.operand(id, 0)) else { return None };
    Some(cx.add(Iota { dimension: op.dimensions[iota.dimension] }, cx.shape(id)?.clone(), []))
}

/// Constant with several equal elements = `broadcast` of that element.
fn constant_of_equal_elements(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let shape = cx.shape(id)?;
    if shape.is_scalar() || shape.element_count() == 0 {
        return None;
    }
    let value = cx.splat(id)?;
    Some(cx.splat_of(shape, value))
}

/// `f(broadcast(x, d), broadcast(y, d), broadcast(scalar))` = `broadcast(f(x, y, broadcast(scalar)), d)`, which
/// computes fewer elements.
fn elementwise_of_broadcasts(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let operands = cx.instruction(id).operands();
    if operands.iter().any(|&o| cx.dims(o) != cx.dims(id) || !matches!(cx.op(o), Op::Broadcast(_))) {
        return None;
    }
    // The operand with the least replication determines the dimensions of the operation; the others must match.
    let source = |cx: &Draft<'_>, o: InstrId| cx.operand(o, 0);
    let widest = operands.iter().copied().max_by_key(|&o| cx.dims(source(cx, o)).len())?;
    let Op::Broadcast(target) = cx.op(widest) else { return None };
    let small = cx.dims(source(cx, widest));
    if small.len() >= cx.dims(id).len() {
        return None;
    }
    let mut new: Vec<DraftValue> = Vec::with_capacity(operands.len());
    for &o in operands {
        let Op::Broadcast(broadcast) = cx.op(o) else { return None };
        let x = source(cx, o);
        if broadcast.dimensions == target.dimensions {
            new.push(x.into());
        } else if broadcast.dimensions.is_empty() {
            let shape = ArrayShape::new(cx.element_type(o)?, small);
            new.push(cx.splat_from(x, shape));
        } else {
            return None;
        }
    }
    let result = ArrayShape::new(cx.element_type(id)?, small);
    let value = cx.add(cx.op(id).clone(), result, new);
    Some(cx.broadcast(value, cx.shape(id)?.clone(), target.dimensions.clone()))
}

/// `broadcast(x)` where `dimensions` leave out the dimensions of `x` of extent 1.
pub fn of_squeezed(cx: &mut Draft<'_>, x: InstrId, shape: &ArrayShape, dimensions: Vec<usize>) -> Option<DraftValue> {
    let sizes: Vec<usize> = cx.dims(x).iter().copied().filter(|&n| n != 1).collect();
    if sizes == shape.dims() && dims::is_identity(&dimensions) {
        return cx.reshape(x, &sizes);
    }
    let squeezed = if sizes.len() == cx.dims(x).len() {
        x.into()
    } else {
        cx.add(plain_reshape(), ArrayShape::new(shape.element_type(), sizes), [x.into()])
    };
    Some(cx.broadcast(squeezed, shape.clone(), dimensions))
}
