//! Rules for reshapes and for operations without effect.

use xla_hlo::ops::Iota;
use xla_hlo::{ArrayShape, InstrId, Op};

use super::draft::{Draft, DraftValue, plain_reshape};
use super::{Rule, broadcast, dims, rules};
use crate::rewrite::graph;

pub const RESHAPE: &[Rule] = rules![reshape_to_same_dims, reshape_of_reshape, reshape_of_broadcast, reshape_of_iota,];

pub const ELEMENTWISE: &[Rule] = rules![elementwise_of_reshapes];

pub const COPY: &[Rule] = rules![copy_of_same_shape];

/// `copy(x)` = `x`, and `bitcast(x)` = `x` in the same shape.
fn copy_of_same_shape(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let x = cx.operand(id, 0);
    let layout = |id: InstrId| cx.shape(id).map(ArrayShape::minor_to_major);
    (graph::same_shape(cx.instruction(x).shape(), cx.instruction(id).shape()) && layout(x) == layout(id))
        .then_some(x.into())
}

/// `reshape(x)` to the dimensions of `x` = `x`.
fn reshape_to_same_dims(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let x = cx.operand(id, 0);
    (cx.dims(x) == cx.dims(id)).then_some(x.into())
}

/// `reshape(reshape(x))` = `reshape(x)`.
fn reshape_of_reshape(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::Reshape(_) = cx.op(inner) else { return None };
    cx.reshape(cx.operand(inner, 0), cx.dims(id))
}

/// `reshape(broadcast(x))` = `broadcast(reshape(x))`, if `x` has one element or the reshape only adds or removes ones.
fn reshape_of_broadcast(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::Broadcast(op) = cx.op(inner) else { return None };
    let x = cx.operand(inner, 0);
    let map = if cx.dims(x).is_empty() {
        vec![None; cx.dims(inner).len()]
    } else {
        dims::reshape_map(cx.dims(inner), cx.dims(id))?
    };
    let dimensions: Vec<usize> = op.dimensions.iter().filter_map(|&d| map[d]).collect();
    broadcast::of_squeezed(cx, x, cx.shape(id)?, dimensions)
}

/// `reshape(iota)` = `iota`, if the reshape only adds or removes ones.
fn reshape_of_iota(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::Iota(op) = cx.op(inner) else { return None };
    let map = dims::reshape_map(cx.dims(inner), cx.dims(id))?;
    Some(cx.add(Iota { dimension: map[op.dimension]? }, cx.shape(id)?.clone(), []))
}

/// `f(reshape(x), reshape(y), broadcast(scalar))` = `reshape(f(x, y, broadcast(scalar)))`, if `x` and `y` have the same
/// dimensions. Other operands may be values that can be reshaped at no cost: constants, and broadcasts and iotas if the
/// reshape only adds or removes ones.
///
/// Reshapes thus move towards broadcasts and other reshapes, which absorb them. A chain of elementwise operations on
/// `[n,1]` between two operations on `[n]` then has no reshapes.
fn elementwise_of_reshapes(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let operands = cx.instruction(id).operands();
    let before = |cx: &Draft<'_>, o: InstrId| match cx.op(o) {
        // Reshapes of generators follow other reshapes but do not start a rewrite.
        Op::Reshape(_) => {
            Some(cx.operand(o, 0)).filter(|&x| !matches!(cx.op(x), Op::Constant(_) | Op::Broadcast(_) | Op::Iota(_)))
        }
        _ => None,
    };
    let first = operands.iter().find_map(|&o| before(cx, o))?;
    let dims = cx.dims(first);
    if operands.iter().any(|&o| cx.dims(o) != cx.dims(id)) {
        return None;
    }
    let mut new: Vec<DraftValue> = Vec::with_capacity(operands.len());
    for &o in operands {
        match (before(cx, o), cx.op(o)) {
            (Some(x), _) if cx.dims(x) == dims => new.push(x.into()),
            (None, Op::Broadcast(b)) if b.dimensions.is_empty() => {
                let shape = ArrayShape::new(cx.element_type(o)?, dims);
                new.push(cx.splat_from(cx.operand(o, 0), shape));
            }
            (None, Op::Constant(_)) => new.push(cx.reshape(o, dims)?),
            (None, Op::Broadcast(_) | Op::Iota(_)) if dims::equal_but_ones(cx.dims(o), dims) => {
                new.push(cx.reshape(o, dims)?);
            }
            _ => return None,
        }
    }
    let value = cx.add(cx.op(id).clone(), ArrayShape::new(cx.element_type(id)?, dims), new);
    Some(cx.add(plain_reshape(), cx.shape(id)?.clone(), [value]))
}
