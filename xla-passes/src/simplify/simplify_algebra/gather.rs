//! Rules for gathers and scatters.

use xla_hlo::ops::{
    Binary, Constant, DynamicSlice, DynamicUpdateSlice, Gather, Reshape, Scatter, Slice, SliceRange, combiner_identity,
    simple_combiner,
};
use xla_hlo::{ArrayShape, ElementType, InstrId, Literal, Op, Scalar};

use super::draft::{Draft, DraftValue};
use super::{Rule, rules};

pub const GATHER: &[Rule] = rules![gather_of_splat, gather_of_rows_in_order, gather_of_one_slice];

pub const SCATTER: &[Rule] = rules![scatter_of_neutral, scatter_of_one_window];

/// Maximum number of start indices that are inspected.
const MAX_STARTS: usize = 1 << 16;

fn gather<'c>(cx: &Draft<'c>, id: InstrId) -> Option<&'c Gather> {
    match cx.op(id) {
        Op::Gather(gather) => Some(gather),
        _ => None,
    }
}

/// `gather(broadcast(scalar))` = `broadcast(scalar)`.
fn gather_of_splat(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (x, shape) = (cx.operand(id, 0), cx.shape(id)?);
    match cx.op(x) {
        Op::Broadcast(op) if op.dimensions.is_empty() => Some(cx.splat_from(cx.operand(x, 0), shape.clone())),
        _ => None,
    }
}

/// `gather(x)` of single rows along one dimension at known, equally spaced indices = `slice(x)`, transposed.
fn gather_of_rows_in_order(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let op = gather(cx, id)?;
    let (x, indices) = (cx.operand(id, 0), cx.operand(id, 1));
    let (&[d], &[collapsed], []) =
        (&op.start_index_map[..], &op.collapsed_slice_dims[..], &op.operand_batching_dims[..])
    else {
        return None;
    };
    let sizes = cx.dims(x);
    let whole = op.slice_sizes.iter().enumerate().all(|(i, &n)| if i == d { n == 1 } else { n == sizes[i] });
    if collapsed != d || !whole || cx.dims(id).contains(&0) {
        return None;
    }
    let (start, stride, count) = places(cx, indices)?;
    let last = start.checked_add(stride.checked_mul(count - 1)?)?;
    // A single known index (stride 0) has its own rule. Clamped indices would repeat.
    let numbers = cx.dims(id).iter().enumerate().filter(|(i, _)| !op.offset_dims.contains(i));
    let [(at, _)] = numbers.collect::<Vec<_>>()[..] else { return None };
    if stride == 0 || last >= sizes[d] {
        return None;
    }
    let range = |(i, &n): (usize, &usize)| match i == d {
        true => SliceRange { start, limit: last + 1, stride },
        false => SliceRange { start: 0, limit: n, stride: 1 },
    };
    let ranges = sizes.iter().enumerate().map(range).collect();
    let mut dims = sizes.to_vec();
    dims[d] = count;
    let rows = cx.add(Slice { ranges }, ArrayShape::new(cx.element_type(x)?, dims), [x.into()]);
    let mut permutation: Vec<usize> = (0..sizes.len()).filter(|&i| i != d).collect();
    permutation.insert(at, d);
    if permutation.is_sorted() {
        return Some(rows);
    }
    Some(cx.transpose(rows, cx.shape(id)?.clone(), permutation))
}

/// Returns start, stride and count if the indices are `start, start + stride, ...` along one dimension.
fn places(cx: &Draft<'_>, indices: InstrId) -> Option<(usize, usize, usize)> {
    let dims = cx.dims(indices);
    let count = dims.iter().copied().max().filter(|&n| n == dims.iter().product::<usize>() && n <= MAX_STARTS)?;
    match cx.op(indices) {
        Op::Iota(iota) if dims[iota.dimension] == count => {
            // An iota that overflows its element type does not contain these numbers.
            let last = count as i128 - 1;
            let fits = Scalar::from_i64(cx.element_type(indices)?, last as i64).rounded(cx.element_type(indices)?);
            let fits = fits.as_i128() == Some(last);
            fits.then_some((0, 1, count))
        }
        Op::Constant(constant) => {
            let number = |i: usize| usize::try_from(constant.literal.get(i).as_i128()?).ok();
            let start = number(0)?;
            let stride = if count > 1 { number(1)?.checked_sub(start)? } else { 0 };
            let expected = |i: usize| start.checked_add(stride.checked_mul(i)?);
            (0..count).all(|i| number(i).is_some_and(|n| Some(n) == expected(i))).then_some((start, stride, count))
        }
        _ => None,
    }
}

/// `gather(x)` of one window = `dynamic-slice(x)`; both clamp their start indices.
fn gather_of_one_slice(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let op = gather(cx, id)?;
    let (x, indices) = (cx.operand(id, 0), cx.operand(id, 1));
    let one = cx.dims(id).iter().enumerate().all(|(i, &n)| op.offset_dims.contains(&i) || n == 1);
    if !one || op.slice_sizes.contains(&0) {
        return None;
    }
    let mut operands: Vec<DraftValue> = vec![x.into()];
    operands.extend(starts(cx, indices, &op.start_index_map, cx.dims(x).len())?);
    let shape = ArrayShape::new(cx.element_type(x)?, op.slice_sizes.clone());
    let sizes = op.slice_sizes.clone();
    let slice = cx.add(DynamicSlice { sizes }, shape, operands);
    Some(reshaped(cx, slice, &op.slice_sizes, cx.shape(id)?))
}

/// Reshapes the value to other dimensions, unless it has them already.
fn reshaped(cx: &mut Draft<'_>, value: DraftValue, dims: &[usize], shape: &ArrayShape) -> DraftValue {
    match shape.dims() == dims {
        true => value,
        false => cx.add(Reshape { inferred_dimension: None }, shape.clone(), [value]),
    }
}

/// Returns the only start index in `indices` as one scalar per dimension; 0 for dimensions that are not in `map`.
fn starts(cx: &mut Draft<'_>, indices: InstrId, map: &[usize], rank: usize) -> Option<Vec<DraftValue>> {
    let ty = cx.element_type(indices)?;
    let sizes = cx.dims(indices).to_vec();
    let zero = Literal::scalar(ty, Scalar::zero(ty));
    let mut starts: Vec<Option<DraftValue>> = vec![None; rank];
    for (component, &d) in map.iter().enumerate() {
        // All dimensions except that of the index components have one element.
        let range = |&n: &usize| match n > 1 {
            true => SliceRange { start: component, limit: component + 1, stride: 1 },
            false => SliceRange { start: 0, limit: 1, stride: 1 },
        };
        let one = ArrayShape::new(ty, vec![1; sizes.len()]);
        let ranges: Vec<SliceRange> = sizes.iter().map(range).collect();
        let single = if map.len() > 1 { cx.add(Slice { ranges }, one, [indices.into()]) } else { indices.into() };
        starts[d] = Some(match sizes.is_empty() {
            true => single,
            false => cx.add(Reshape { inferred_dimension: None }, ArrayShape::scalar(ty), [single]),
        });
    }
    let missing = starts.iter().any(Option::is_none);
    let zero = missing.then(|| cx.add(Constant { literal: zero }, ArrayShape::scalar(ty), []));
    starts.into_iter().map(|start| start.or(zero)).collect()
}

/// Returns a scatter into one array, with its operands.
fn scatter<'c>(cx: &Draft<'c>, id: InstrId) -> Option<(&'c Scatter, [InstrId; 3])> {
    match (cx.op(id), cx.instruction(id).operands()) {
        (Op::Scatter(scatter), &[x, indices, update]) => Some((scatter, [x, indices, update])),
        _ => None,
    }
}

/// Returns the element type of a scatter if its array, updates and combiner all have the same type.
fn scattered_type(cx: &Draft<'_>, op: &Scatter, [x, _, update]: [InstrId; 3]) -> Option<ElementType> {
    let ty = cx.element_type(x)?;
    let combiner = cx.called(op.computation);
    let mut inside = combiner.parameters().iter().copied().chain([combiner.root()]);
    let same = inside.all(|p| combiner[p].shape().element_type() == Some(ty));
    (same && cx.element_type(update) == Some(ty)).then_some(ty)
}

/// `scatter(x, neutral values)` = `x`: added zeros (-0 for floats) or multiplied ones. Not for complex numbers, whose
/// parts have zeros of both signs.
fn scatter_of_neutral(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (op, operands) = scatter(cx, id)?;
    let ty = scattered_type(cx, op, operands).filter(|ty| !ty.is_complex())?;
    let neutral = combiner_identity(simple_combiner(cx.called(op.computation))?, ty)?;
    let update = cx.splat(operands[2])?;
    (update.to_bits(ty) == neutral.to_bits(ty)).then_some(operands[0].into())
}

/// `scatter(x, update)` of one window at a known index in bounds = `dynamic-update-slice(x, f(slice(x), update))` with
/// the combiner `f`. A window out of bounds is dropped, which leaves `x`.
fn scatter_of_one_window(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (op, operands) = scatter(cx, id)?;
    let [x, indices, update] = operands;
    scattered_type(cx, op, operands)?;
    let one = cx.dims(update).iter().enumerate().all(|(i, &n)| op.update_window_dims.contains(&i) || n == 1);
    let sizes = cx.dims(x).to_vec();
    if !one || cx.dims(update).contains(&0) {
        return None;
    }
    let mut windows = op.update_window_dims.iter().map(|&u| cx.dims(update)[u]);
    let left_out = |d: usize| op.inserted_window_dims.contains(&d) || op.input_batching_dims.contains(&d);
    let slice_sizes: Vec<usize> =
        (0..sizes.len()).map(|d| if left_out(d) { Some(1) } else { windows.next() }).collect::<Option<_>>()?;
    let mut start = vec![0i128; sizes.len()];
    for (component, &d) in op.scatter_dims_to_operand_dims.iter().enumerate() {
        start[d] = match cx.op(indices) {
            Op::Constant(constant) => constant.literal.get(component).as_i128()?,
            _ => cx.integer_splat(indices)?,
        };
    }
    let inside = |((&s, &n), &size): ((&i128, &usize), &usize)| s >= 0 && s + n as i128 <= size as i128;
    if !start.iter().zip(&slice_sizes).zip(&sizes).all(inside) {
        return Some(x.into());
    }
    let ty = cx.element_type(indices)?;
    let shape = ArrayShape::new(cx.element_type(x)?, slice_sizes.clone());
    let new = reshaped(cx, update.into(), cx.dims(update), &shape);
    let range = |(&s, &n): (&i128, &usize)| SliceRange { start: s as usize, limit: s as usize + n, stride: 1 };
    let ranges = start.iter().zip(&slice_sizes).map(range).collect();
    let value = combined(cx, op, x, new, &shape, ranges)?;
    let mut taken: Vec<DraftValue> = vec![x.into(), value];
    for s in start {
        let literal = Literal::scalar(ty, Scalar::from_i64(ty, s as i64));
        taken.push(cx.add(Constant { literal }, ArrayShape::scalar(ty), []));
    }
    Some(cx.add(DynamicUpdateSlice, cx.shape(id)?.clone(), taken))
}

/// Applies a scatter's combiner to a window of `x` and the update. The result is the update itself or an operation on
/// both.
fn combined(
    cx: &mut Draft<'_>,
    op: &Scatter,
    x: InstrId,
    update: DraftValue,
    shape: &ArrayShape,
    ranges: Vec<SliceRange>,
) -> Option<DraftValue> {
    let combiner = cx.called(op.computation);
    if combiner.parameters().get(1) == Some(&combiner.root()) {
        return Some(update);
    }
    let binary = simple_combiner(combiner)?;
    let old = cx.add(Slice { ranges }, shape.clone(), [x.into()]);
    Some(cx.add(Binary { op: binary }, shape.clone(), [old, update]))
}
