//! Rules for slices, pads, concatenations and reversals.

use xla_hlo::ops::{Concatenate, Iota, Pad, PadDim, Reverse, Slice, SliceRange};
use xla_hlo::{ArrayShape, InstrId, Op};

use super::convert_moves::{cut_of_convert, movement_of_widening};
use super::draft::{Draft, DraftValue, plain_reshape};
use super::{Rule, dims, rules};

pub const SLICE: &[Rule] = rules![
    slice_of_everything,
    slice_of_slice,
    slice_of_broadcast,
    slice_of_iota,
    slice_of_concatenate,
    slice_of_pad,
    slice_of_reshape,
    cut_of_convert,
];

pub const PAD: &[Rule] = rules![pad_of_nothing, pad_of_empty, pad_that_trims, pad_of_pad, movement_of_widening];

pub const CONCATENATE: &[Rule] = rules![
    concatenate_of_one,
    concatenate_of_empty,
    concatenate_of_concatenate,
    concatenate_of_slices,
    movement_of_widening
];

pub const REVERSE: &[Rule] = rules![reverse_of_nothing, reverse_of_reverse, reverse_of_broadcast, movement_of_widening];

pub const DYNAMIC_SLICE: &[Rule] =
    rules![dynamic_slice_of_everything, dynamic_slice_at_constant, dynamic_slice_of_broadcast, cut_of_convert];

pub const DYNAMIC_UPDATE_SLICE: &[Rule] = rules![dynamic_update_of_everything, dynamic_update_of_nothing];

fn ranges<'c>(cx: &Draft<'c>, id: InstrId) -> Option<&'c [SliceRange]> {
    match cx.op(id) {
        Op::Slice(slice) => Some(&slice.ranges),
        _ => None,
    }
}

fn whole(size: usize) -> SliceRange {
    SliceRange { start: 0, limit: size, stride: 1 }
}

fn is_whole(range: &SliceRange, size: usize) -> bool {
    range.start == 0 && range.limit >= size && range.stride == 1
}

fn slice(cx: &mut Draft<'_>, x: impl Into<DraftValue>, shape: ArrayShape, ranges: Vec<SliceRange>) -> DraftValue {
    cx.add(Slice { ranges }, shape, [x.into()])
}

/// `slice(x)` of all elements = `x`.
fn slice_of_everything(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let x = cx.operand(id, 0);
    (cx.dims(x) == cx.dims(id)).then_some(x.into())
}

/// `slice(slice(x, a), b)` = `slice(x, a after b)`.
fn slice_of_slice(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let (outer, first) = (ranges(cx, id)?, ranges(cx, inner)?);
    let sizes = cx.dims(cx.operand(inner, 0));
    let compose = |(a, (b, size)): (&SliceRange, (&SliceRange, &usize))| {
        let start = a.start.checked_add(b.start.checked_mul(a.stride)?)?;
        let limit = a.start.checked_add(b.limit.checked_mul(a.stride)?)?.min(*size);
        Some(SliceRange { start: start.min(limit), limit, stride: a.stride.checked_mul(b.stride)? })
    };
    let both = first.iter().zip(outer.iter().zip(sizes)).map(compose).collect::<Option<_>>()?;
    Some(slice(cx, cx.operand(inner, 0), cx.shape(id)?.clone(), both))
}

/// `slice(broadcast(x))` = `broadcast(slice(x))`.
fn slice_of_broadcast(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::Broadcast(op) = cx.op(inner) else { return None };
    let (all, x) = (ranges(cx, id)?, cx.operand(inner, 0));
    let own: Vec<SliceRange> = op.dimensions.iter().map(|&d| all[d]).collect();
    let sizes: Vec<usize> = op.dimensions.iter().map(|&d| cx.dims(id)[d]).collect();
    let shape = ArrayShape::new(cx.element_type(x)?, sizes);
    let value =
        if own.iter().zip(cx.dims(x)).all(|(r, &n)| is_whole(r, n)) { x.into() } else { slice(cx, x, shape, own) };
    Some(cx.broadcast(value, cx.shape(id)?.clone(), op.dimensions.clone()))
}

/// `slice(iota)` = a smaller `iota`, if the slice starts at 0 with stride 1 along the iota's dimension.
fn slice_of_iota(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Iota(iota) = cx.op(cx.operand(id, 0)) else { return None };
    let counting = ranges(cx, id)?[iota.dimension];
    (counting.start == 0 && counting.stride == 1)
        .then(|| Some(cx.add(Iota { dimension: iota.dimension }, cx.shape(id)?.clone(), [])))?
}

/// `slice(concatenate(..., x, ...))` inside of `x` = `slice(x)`.
fn slice_of_concatenate(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::Concatenate(Concatenate { dimension }) = *cx.op(inner) else { return None };
    let mut own = ranges(cx, id)?.to_vec();
    let range = &mut own[dimension];
    if cx.dims(id)[dimension] == 0 {
        return None;
    }
    let last = range.start + (cx.dims(id)[dimension] - 1) * range.stride;
    let mut first = 0;
    for &x in cx.instruction(inner).operands() {
        let size = cx.dims(x)[dimension];
        if range.start >= first && last < first + size {
            *range = SliceRange { start: range.start - first, limit: (range.limit - first).min(size), ..*range };
            return Some(slice(cx, x, cx.shape(id)?.clone(), own));
        }
        first += size;
    }
    None
}

/// `slice(pad(x, v))` inside of `x` = `slice(x)`; outside = `broadcast(v)`. Without interior padding.
fn slice_of_pad(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::Pad(pad) = cx.op(inner) else { return None };
    let (x, value) = (cx.operand(inner, 0), cx.operand(inner, 1));
    if pad.dims.iter().any(|p| p.interior > 0) || cx.dims(id).contains(&0) {
        return None;
    }
    let mut own = Vec::with_capacity(pad.dims.len());
    let mut outside = false;
    for (d, (p, r)) in pad.dims.iter().zip(ranges(cx, id)?).enumerate() {
        let size = i64::try_from(cx.dims(x)[d]).ok()?;
        let start = i64::try_from(r.start).ok()? - p.low;
        let last = i64::try_from(r.start + (cx.dims(id)[d] - 1) * r.stride).ok()? - p.low;
        if last < 0 || start >= size {
            outside = true;
        } else if start >= 0 && last < size {
            own.push(SliceRange { start: start as usize, limit: last as usize + 1, stride: r.stride });
        }
    }
    if outside {
        return Some(cx.broadcast(value, cx.shape(id)?.clone(), Vec::new()));
    }
    (own.len() == pad.dims.len()).then(|| Some(slice(cx, x, cx.shape(id)?.clone(), own)))?
}

/// `slice(reshape(x))` = `reshape(slice(x))`, if the slice cuts, of the dimensions that a dimension of `x` was split
/// into, only the outermost one that is not of size 1. Rows of `x` are then read, and the reshape is free.
fn slice_of_reshape(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::Reshape(_) = cx.op(inner) else { return None };
    let x = cx.operand(inner, 0);
    let all = ranges(cx, id)?;
    let mut own: Vec<SliceRange> = cx.dims(x).iter().map(|&n| whole(n)).collect();
    for (from, to) in dims::factor(cx.dims(x), cx.dims(inner))? {
        let sizes = cx.dims(inner);
        let cut: Vec<usize> = to.iter().copied().filter(|&d| !is_whole(&all[d], sizes[d])).collect();
        let ((&[], _) | (&[_], &[_])) = (&cut[..], &from[..]) else { return None };
        let ([d], [source]) = (&cut[..], &from[..]) else { continue };
        let outermost = to.iter().take_while(|&&t| t != *d).all(|&t| sizes[t] == 1);
        let run: usize = to.iter().skip_while(|&&t| t != *d).skip(1).map(|&t| sizes[t]).product();
        if !outermost || (all[*d].stride != 1 && run != 1) {
            return None;
        }
        let range = all[*d];
        own[*source] = SliceRange { start: range.start * run, limit: range.limit * run, ..range };
    }
    let sizes: Vec<usize> = own.iter().map(|r| (r.limit - r.start).div_ceil(r.stride)).collect();
    let cut = slice(cx, x, ArrayShape::new(cx.element_type(x)?, sizes), own);
    Some(cx.add(plain_reshape(), cx.shape(id)?.clone(), [cut]))
}

/// `pad(x)` without padding = `x`.
fn pad_of_nothing(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Pad(pad) = cx.op(id) else { return None };
    let nothing = pad.dims.iter().all(|p| p.low == 0 && p.high == 0) && cx.dims(id) == cx.dims(cx.operand(id, 0));
    nothing.then(|| cx.operand(id, 0).into())
}

/// `pad(x, v)` of a zero-sized `x` = `broadcast(v)`.
fn pad_of_empty(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    cx.dims(cx.operand(id, 0)).contains(&0).then_some(())?;
    Some(cx.broadcast(cx.operand(id, 1), cx.shape(id)?.clone(), Vec::new()))
}

/// `pad(x)` with only negative padding = `slice(x)`.
fn pad_that_trims(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Pad(pad) = cx.op(id) else { return None };
    if pad.dims.iter().any(|p| p.interior > 0) {
        return None;
    }
    let range = |(p, &size): (&PadDim, &usize)| {
        // `None` where elements are added.
        let start = usize::try_from(p.low.checked_neg()?).ok()?;
        let limit = size.checked_sub(usize::try_from(p.high.checked_neg()?).ok()?)?;
        (start <= limit).then_some(SliceRange { start, limit, stride: 1 })
    };
    let own = pad.dims.iter().zip(cx.dims(cx.operand(id, 0))).map(range).collect::<Option<_>>()?;
    Some(slice(cx, cx.operand(id, 0), cx.shape(id)?.clone(), own))
}

/// `pad(pad(x, v), v)` = `pad(x, v)` with the sum of the padding, if neither trims and the outer one has no interior
/// padding.
fn pad_of_pad(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let (Op::Pad(outer), Op::Pad(first)) = (cx.op(id), cx.op(inner)) else { return None };
    let adds = |pad: &Pad| pad.dims.iter().all(|p| p.low >= 0 && p.high >= 0);
    let same = cx.operand(id, 1) == cx.operand(inner, 1);
    if !same || !adds(outer) || !adds(first) || outer.dims.iter().any(|p| p.interior > 0) {
        return None;
    }
    let both = |(a, b): (&PadDim, &PadDim)| {
        Some(PadDim { low: a.low.checked_add(b.low)?, high: a.high.checked_add(b.high)?, interior: a.interior })
    };
    let dims = first.dims.iter().zip(&outer.dims).map(both).collect::<Option<_>>()?;
    let operands = [cx.operand(inner, 0).into(), cx.operand(id, 1).into()];
    Some(cx.add(Pad { dims }, cx.shape(id)?.clone(), operands))
}

/// `concatenate(x)` = `x`.
fn concatenate_of_one(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    match cx.instruction(id).operands() {
        [x] => Some((*x).into()),
        _ => None,
    }
}

/// `concatenate(..., empty, ...)` = `concatenate(...)`.
fn concatenate_of_empty(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Concatenate(op) = cx.op(id) else { return None };
    let operands = cx.instruction(id).operands();
    let kept: Vec<DraftValue> =
        operands.iter().filter(|&&o| cx.dims(o)[op.dimension] != 0).map(|&o| DraftValue::Old(o)).collect();
    (kept.len() < operands.len() && !kept.is_empty()).then(|| cx.same(id, kept))?
}

/// `concatenate(concatenate(x, y), z)` = `concatenate(x, y, z)` along the same dimension.
fn concatenate_of_concatenate(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let outer = cx.op(id);
    let operands = cx.instruction(id).operands();
    let nested = |&o: &InstrId| cx.op(o) == outer && cx.is_used_once(o);
    if !operands.iter().any(nested) {
        return None;
    }
    let flat: Vec<DraftValue> = operands
        .iter()
        .flat_map(|o| if nested(o) { cx.instruction(*o).operands().to_vec() } else { vec![*o] })
        .map(DraftValue::Old)
        .collect();
    cx.same(id, flat)
}

/// `concatenate(..., x[a:b], x[b:c], ...)` = `concatenate(..., x[a:c], ...)`.
fn concatenate_of_slices(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Concatenate(Concatenate { dimension }) = *cx.op(id) else { return None };
    let operands = cx.instruction(id).operands();
    let runs: Vec<&[InstrId]> = operands.chunk_by(|&a, &b| follows(cx, a, b, dimension)).collect();
    if runs.len() == operands.len() {
        return None;
    }
    let mut new: Vec<DraftValue> = Vec::with_capacity(runs.len());
    for run in runs {
        let (&[first, ..], &[.., last]) = (run, run) else { return None };
        if run.len() == 1 {
            new.push(first.into());
            continue;
        }
        let mut all = ranges(cx, first)?.to_vec();
        all[dimension].limit = ranges(cx, last)?[dimension].limit;
        let mut sizes = cx.dims(first).to_vec();
        sizes[dimension] = all[dimension].limit - all[dimension].start;
        let shape = ArrayShape::new(cx.element_type(first)?, sizes);
        new.push(slice(cx, cx.operand(first, 0), shape, all));
    }
    cx.same(id, new)
}

/// Whether `b` is a slice of the same array that starts where the slice `a` ends.
fn follows(cx: &Draft<'_>, a: InstrId, b: InstrId, dimension: usize) -> bool {
    let (Some(first), Some(second)) = (ranges(cx, a), ranges(cx, b)) else { return false };
    cx.operand(a, 0) == cx.operand(b, 0)
        && first.iter().zip(second).enumerate().all(|(d, (a, b))| match d == dimension {
            true => a.stride == 1 && b.stride == 1 && a.limit == b.start,
            false => a == b,
        })
}

/// `reverse(x)` along dimensions of size 1 or 0 = `x`. Otherwise, such dimensions are removed from the list.
fn reverse_of_nothing(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Reverse(op) = cx.op(id) else { return None };
    let x = cx.operand(id, 0);
    let dimensions: Vec<usize> = op.dimensions.iter().copied().filter(|&d| cx.dims(id)[d] > 1).collect();
    match dimensions.len() {
        0 => Some(x.into()),
        n if n < op.dimensions.len() => Some(cx.add(Reverse { dimensions }, cx.shape(id)?.clone(), [x.into()])),
        _ => None,
    }
}

/// `reverse(reverse(x, a), b)` = `reverse(x, a xor b)`.
fn reverse_of_reverse(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let (Op::Reverse(outer), Op::Reverse(first)) = (cx.op(id), cx.op(inner)) else { return None };
    let in_both = |d: &usize| outer.dimensions.contains(d) && first.dimensions.contains(d);
    let dimensions: Vec<usize> =
        outer.dimensions.iter().chain(&first.dimensions).copied().filter(|d| !in_both(d)).collect();
    Some(cx.add(Reverse { dimensions }, cx.shape(id)?.clone(), [cx.operand(inner, 0).into()]))
}

/// `reverse(broadcast(x))` = `broadcast(x)` along replicated dimensions.
fn reverse_of_broadcast(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let Op::Reverse(op) = cx.op(id) else { return None };
    let x = cx.operand(id, 0);
    let Op::Broadcast(broadcast) = cx.op(x) else { return None };
    let copied = |d: &usize| !broadcast.dimensions.contains(d);
    op.dimensions.iter().all(copied).then_some(x.into())
}

/// `dynamic-slice(x)` of the full size = `x`, since the start is clamped to 0.
fn dynamic_slice_of_everything(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let x = cx.operand(id, 0);
    (cx.dims(x) == cx.dims(id)).then_some(x.into())
}

/// `dynamic-slice(x, constants)` = `slice(x)`.
fn dynamic_slice_at_constant(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let (x, starts) = cx.instruction(id).operands().split_first()?;
    let (sizes, slice_sizes) = (cx.dims(*x), cx.dims(id));
    // An older form has one vector of starts.
    if starts.iter().any(|&s| !cx.dims(s).is_empty()) {
        return None;
    }
    let range = |(&start, (&size, &taken)): (&InstrId, (&usize, &usize))| {
        let most = size.checked_sub(taken)?;
        let start = cx.integer_splat(start)?.clamp(0, most as i128) as usize;
        Some(SliceRange { start, limit: start + taken, stride: 1 })
    };
    let own = starts.iter().zip(sizes.iter().zip(slice_sizes)).map(range).collect::<Option<_>>()?;
    Some(slice(cx, *x, cx.shape(id)?.clone(), own))
}

/// `dynamic-slice(broadcast(x))` = `broadcast(x)`, if only replicated dimensions are sliced.
fn dynamic_slice_of_broadcast(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::Broadcast(op) = cx.op(inner) else { return None };
    let uncut = op.dimensions.iter().all(|&d| cx.dims(inner)[d] == cx.dims(id)[d]);
    uncut.then(|| Some(cx.broadcast(cx.operand(inner, 0), cx.shape(id)?.clone(), op.dimensions.clone())))?
}

/// `dynamic-update-slice(x, y)` that covers all of `x` = `y`.
fn dynamic_update_of_everything(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let update = cx.operand(id, 1);
    (cx.dims(update) == cx.dims(id)).then_some(update.into())
}

/// `dynamic-update-slice(x, empty)` = `x`.
fn dynamic_update_of_nothing(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    cx.dims(cx.operand(id, 1)).contains(&0).then(|| cx.operand(id, 0).into())
}
