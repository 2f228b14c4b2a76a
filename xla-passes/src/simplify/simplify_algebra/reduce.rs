//! Rules for reductions.

use xla_hlo::ops::{Binary, BinaryOp, Broadcast, Reduce};
use xla_hlo::{ArrayShape, InstrId, Op, Scalar};

use super::draft::{Draft, DraftValue, plain_reshape};
use super::{Rule, dims, rules};

pub const REDUCE: &[Rule] =
    rules![reduce_of_nothing, reduce_of_splat, reduce_of_ones, reduce_of_transpose, reduce_of_reshape];

/// Maximum number of uses that a rule inspects.
const FEW: usize = 8;

/// Returns a reduction of one array, with its operands.
fn single<'c>(cx: &Draft<'c>, id: InstrId) -> Option<(&'c Reduce, InstrId, InstrId)> {
    match (cx.op(id), cx.instruction(id).operands()) {
        (Op::Reduce(reduce), [x, init]) => Some((reduce, *x, *init)),
        _ => None,
    }
}

/// Returns the combiner if it is one binary operation on accumulator and element, in that order.
fn combiner(cx: &Draft<'_>, reduce: &Reduce) -> Option<Binary> {
    let computation = cx.called(reduce.computation);
    let root = &computation[computation.root()];
    match root.op() {
        Op::Binary(binary) if root.operands() == computation.parameters() => Some(binary.clone()),
        _ => None,
    }
}

/// `reduce(empty, init)` = `broadcast(init)`.
fn reduce_of_nothing(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (reduce, x, init) = single(cx, id)?;
    let empty = reduce.dimensions.iter().any(|&d| cx.dims(x)[d] == 0);
    if !empty {
        return None;
    }
    let shape = cx.shape(id)?;
    Some(cx.splat_from(init, shape.clone()))
}

/// `reduce(broadcast(c), init)` = `f(init, c)` where `f(c, c)` = `c`; a sum of integers is `init + n * c`.
fn reduce_of_splat(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (reduce, x, init) = single(cx, id)?;
    let combiner = combiner(cx, reduce)?;
    let Op::Broadcast(Broadcast { dimensions }) = cx.op(x) else { return None };
    let (shape, ty) = (cx.shape(id)?, cx.element_type(x)?);
    if !dimensions.is_empty() || Some(ty) != cx.element_type(id) {
        return None;
    }
    let mut element: DraftValue = cx.splat_from(cx.operand(x, 0), shape.clone());
    if !is_idempotent(combiner.op, cx.splat(x)) {
        if combiner.op != BinaryOp::Add || !ty.is_integer() {
            return None;
        }
        let count = reduce.dimensions.iter().try_fold(1i64, |n, &d| n.checked_mul(cx.dims(x)[d].try_into().ok()?))?;
        let count = cx.splat_of(shape, Scalar::from_i64(ty, count).rounded(ty));
        element = cx.add(Binary { op: BinaryOp::Multiply }, shape.clone(), [element, count]);
    }
    let init = cx.splat_from(init, shape.clone());
    Some(cx.add(combiner, shape.clone(), [init, element]))
}

/// Whether `f(c, c)` = `c` for this constant or, without a constant, for all numbers.
fn is_idempotent(op: BinaryOp, constant: Option<Scalar>) -> bool {
    let is = |number: f64| match constant {
        Some(Scalar::Float(c)) => c == number,
        Some(c) => c.as_i128() == Some(number as i128),
        None => false,
    };
    match op {
        BinaryOp::Maximum | BinaryOp::Minimum | BinaryOp::And | BinaryOp::Or => true,
        BinaryOp::Add => is(0.0),
        BinaryOp::Multiply => is(1.0),
        _ => false,
    }
}

/// `reduce(x, init)` over dimensions of size 1 = `f(init, reshape(x))`.
fn reduce_of_ones(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (reduce, x, init) = single(cx, id)?;
    let combiner = combiner(cx, reduce)?;
    if cx.element_type(x) != cx.element_type(id) || reduce.dimensions.iter().any(|&d| cx.dims(x)[d] != 1) {
        return None;
    }
    let shape = cx.shape(id)?;
    let x = cx.reshape(x, shape.dims())?;
    let init = cx.splat_from(init, shape.clone());
    Some(cx.add(combiner, shape.clone(), [init, x]))
}

/// `reduce(transpose(x))` = `transpose(reduce(x))`, without a transpose if the kept dimensions are in order. Otherwise
/// only if the first transpose has no other use. The summation order is unspecified.
fn reduce_of_transpose(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (reduce, inner, init) = single(cx, id)?;
    let Op::Transpose(transpose) = cx.op(inner) else { return None };
    let kept = transpose.permutation.iter().enumerate().filter(|(i, _)| !reduce.dimensions.contains(i));
    let kept: Vec<usize> = kept.map(|(_, &d)| d).collect();
    let in_order = kept.is_sorted();
    if !in_order && !is_only_reduced(cx, inner) {
        return None;
    }
    let mut dimensions: Vec<usize> = reduce.dimensions.iter().map(|&d| transpose.permutation[d]).collect();
    dimensions.sort_unstable();
    let new = Reduce { dimensions, computation: reduce.computation };
    let operands = [cx.operand(inner, 0).into(), init.into()];
    let shape = cx.shape(id)?.clone();
    if in_order {
        return Some(cx.add(new, shape, operands));
    }
    let mut sorted = kept.clone();
    sorted.sort_unstable();
    let sizes: Vec<usize> = sorted.iter().map(|&d| cx.dims(cx.operand(inner, 0))[d]).collect();
    let value = cx.add(new, ArrayShape::new(shape.element_type(), sizes), operands);
    let permutation = kept.iter().filter_map(|d| sorted.binary_search(d).ok()).collect();
    Some(cx.transpose(value, shape, permutation))
}

/// Whether an array has few uses and all of them are reductions of it.
fn is_only_reduced(cx: &Draft<'_>, id: InstrId) -> bool {
    let users = cx.instruction(id).users();
    let reductions = |&user: &InstrId| single(cx, user).is_some_and(|(_, x, _)| x == id);
    !cx.is_root(id) && users.len() <= FEW && users.iter().all(reductions)
}

/// `reduce(reshape(x))` = `reshape(reduce(x))`, if each group of dimensions that the reshape merges or splits is
/// reduced or kept as a whole. The summation order is unspecified.
fn reduce_of_reshape(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (reduce, inner, init) = single(cx, id)?;
    let Op::Reshape(_) = cx.op(inner) else { return None };
    let (x, sizes) = (cx.operand(inner, 0), cx.dims(inner));
    let mut dimensions = Vec::new();
    for (from, to) in dims::factor(cx.dims(x), sizes)? {
        // Dimensions of size 1 are treated like the others of their group.
        let mut reduced = to.iter().filter(|&&d| sizes[d] != 1).map(|d| reduce.dimensions.contains(d));
        let Some(goes) = reduced.next() else { continue };
        if reduced.any(|other| other != goes) {
            return None;
        }
        dimensions.extend(if goes { from } else { Vec::new() });
    }
    if dimensions.is_empty() {
        return None;
    }
    let shape = cx.shape(id)?;
    let kept = (0..cx.dims(x).len()).filter(|d| !dimensions.contains(d));
    let kept: Vec<usize> = kept.map(|d| cx.dims(x)[d]).collect();
    let new = Reduce { dimensions, computation: reduce.computation };
    let same = kept == shape.dims();
    let value = cx.add(new, ArrayShape::new(shape.element_type(), kept), [x.into(), init.into()]);
    Some(if same { value } else { cx.add(plain_reshape(), shape.clone(), [value]) })
}
