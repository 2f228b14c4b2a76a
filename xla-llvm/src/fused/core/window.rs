//! Windows inside an element: loops over the elements of an array in a window, in the window's order.
//!
//! If the window's start is uniform across lanes, the loops cover only elements inside of the array, and no element is
//! tested. Otherwise, each element is tested lane by lane.

use inkwell::values::BasicValueEnum;
use xla_hlo::ops::{ReduceWindow, WindowDim};
use xla_hlo::{ElementType, InstrId, Result};

use crate::elemental::{self, Value};
use crate::fused::core::address::widened;
use crate::fused::core::addressing::Addressing;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::loops::range::Range;
use crate::fused::value::Guard;
use crate::lanes::Lanes;

/// One window: its dimensions, its array, and its position in the result.
pub(crate) struct WindowPlace<'a> {
    pub dims: &'a [WindowDim],
    /// Sizes of the array.
    pub base: &'a [usize],
    /// Number of window positions along each dimension.
    pub output: &'a [usize],
    /// Position of the window.
    pub index: &'a Index,
}

/// Bounds test that the elements of a window need along one dimension.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fit {
    /// No test: all elements are inside of the array at all window positions.
    Always,
    /// No test: the loop's run-time range covers only elements inside of the array.
    InRange,
    /// One test per element of the steps `first..end`, which include all elements inside of the array.
    Perhaps { first: i64, end: i64 },
}

impl Fit {
    /// Whether the window has one step and no loop: its element is always inside or is tested, whereas a run-time range
    /// needs the loop.
    pub(crate) fn is_one(self, w: &WindowDim) -> bool {
        w.size == 1 && self != Fit::InRange
    }
}

impl WindowPlace<'_> {
    /// Returns the first coordinate of the window along a dimension, in the dilated array.
    pub(crate) fn begin(&self, d: usize) -> AffineExpr {
        // An unused stride may overflow the arithmetic.
        let stride = if self.output[d] > 1 { self.dims[d].stride as i64 } else { 1 };
        self.index[d].clone().scaled(stride).shifted(self.dims[d].pad_low.saturating_neg())
    }

    /// Returns the coordinate in the array for a step of the window along dimension `d`, and adds the condition that
    /// the element exists.
    pub(crate) fn coordinate<'m, A: Addressing<'m>>(
        &self,
        s: &mut A,
        (d, fit): (usize, Fit),
        begin: &AffineExpr,
        step: AffineExpr,
        condition: &mut Option<A::Condition>,
    ) -> Result<AffineExpr> {
        let (w, base) = (&self.dims[d], self.base[d]);
        let step = if w.reversal { step.scaled(-1).shifted(w.size as i64 - 1) } else { step };
        let expr = begin.clone().plus(&step.scaled(w.window_dilation as i64));
        let grid = w.base_dilation as i64;
        if let Fit::Perhaps { .. } = fit {
            s.require_up_to(condition, &expr, (base as i64 - 1) * grid)?;
        }
        if grid == 1 { Ok(expr) } else { s.on_grid(condition, &expr, grid, base) }
    }
}

/// Returns the bounds test for a window that begins at `begin` of a dilated dimension of `base` elements.
pub(crate) fn window_fit<'m, A: Addressing<'m>>(s: &A, w: &WindowDim, begin: &AffineExpr, base: usize) -> Fit {
    let (size, dilation) = (w.size as i64, w.window_dilation as i64);
    let bounds = begin.bounds(s.symbols());
    let last = (size - 1).checked_mul(dilation);
    let fits = bounds
        .zip(last)
        .is_some_and(|((low, high), last)| low >= 0 && high.checked_add(last).is_some_and(|end| end < base as i64));
    if fits && w.base_dilation == 1 {
        return Fit::Always;
    }
    if w.base_dilation == 1 && s.width(std::slice::from_ref(begin)) == 1 {
        return Fit::InRange;
    }
    let places = (base as i64 - 1).saturating_mul(w.base_dilation as i64).saturating_add(1);
    let (low, high) = bounds.unwrap_or((i64::MIN, i64::MAX));
    let steps = |places: i64| (places.max(0) as u64).div_ceil(dilation.max(1) as u64).min(size as u64) as i64;
    Fit::Perhaps { first: steps(0i64.saturating_sub(high)), end: steps(places.saturating_sub(low)) }
}

/// Body for an element of a window: maps its index in the array, the condition that it exists, and the carried values
/// to the carried values of the next element.
pub(crate) type WindowBody<'a, 'e, 'ctx, 'm> = dyn FnMut(
        &mut FusedEmitter<'e, 'ctx, 'm>,
        &Index,
        Option<Guard<'e, 'ctx>>,
        &[BasicValueEnum<'ctx>],
    ) -> Result<Vec<BasicValueEnum<'ctx>>>
    + 'a;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Reduces the elements of a window at an index of the result.
    pub(crate) fn window_reduced(
        &mut self,
        id: InstrId,
        op: &ReduceWindow,
        index: &Index,
    ) -> Result<Vec<Value<'e, 'ctx>>> {
        let instruction = &self.graph()[id];
        let inputs = &instruction.operands()[..instruction.operands().len() / 2];
        let base = self.graph()[inputs[0]].shape().expect_array()?.dims();
        let dims = op.window.dims_for(base.len())?;
        let output = op.window.output_dims(base)?;
        let width = self.width(index);
        let starts = self.reduction_starts(id, width)?;
        if base.contains(&0) {
            return Ok(starts);
        }
        let types: Vec<ElementType> = starts.iter().map(Value::element_type).collect();
        let place = WindowPlace { dims: &dims, base, output: &output, index };
        let raws = self.for_window(&place, raws_of(&starts), &mut |s, at, condition, carried| {
            let before = values_of(s, &types, carried);
            let mut arguments = before.clone();
            for &input in inputs {
                arguments.push(s.guarded_element(input, at, condition)?.splat(width));
            }
            let after = s.call(op.computation, &arguments)?;
            let chosen = after.iter().zip(&before).map(|(&new, &old)| match condition {
                Some(guard) => elemental::select_lanes(widened(guard.mask, width), new, old),
                None => new,
            });
            Ok(raws_of(&chosen.collect::<Vec<_>>()))
        })?;
        Ok(values_of(self, &types, &raws))
    }

    /// Runs `body` for the elements of a window in row-major order.
    pub(crate) fn for_window(
        &mut self,
        place: &WindowPlace<'_>,
        carried: Vec<BasicValueEnum<'ctx>>,
        body: &mut WindowBody<'_, 'e, 'ctx, 'm>,
    ) -> Result<Vec<BasicValueEnum<'ctx>>> {
        self.window_loops(place, &mut Index::new(), None, carried, body)
    }

    fn window_loops(
        &mut self,
        place: &WindowPlace<'_>,
        at: &mut Index,
        condition: Option<Guard<'e, 'ctx>>,
        carried: Vec<BasicValueEnum<'ctx>>,
        body: &mut WindowBody<'_, 'e, 'ctx, 'm>,
    ) -> Result<Vec<BasicValueEnum<'ctx>>> {
        let d = at.len();
        let Some(w) = place.dims.get(d) else { return body(self, at, condition, &carried) };
        let begin = place.begin(d);
        let fit = window_fit(self, w, &begin, place.base[d]);
        let range = self.window_range(w, &begin, (place.base[d], fit))?;
        let mut turn = |s: &mut Self, step: AffineExpr, carried: &[BasicValueEnum<'ctx>]| {
            let mut condition = condition;
            at.push(place.coordinate(s, (d, fit), &begin, step, &mut condition)?);
            let results = s.window_loops(place, at, condition, carried.to_vec(), body);
            at.pop();
            results
        };
        // A single element is always inside or is tested; a run-time range needs the loop.
        if fit.is_one(w) {
            return turn(self, AffineExpr::default(), &carried);
        }
        self.for_each(range, carried, &mut |s, symbol, carried| turn(s, AffineExpr::symbol(symbol), carried))
    }

    /// Returns the range of steps in a window that begins at `begin` of a dimension of `base` elements.
    fn window_range(
        &mut self,
        w: &WindowDim,
        begin: &AffineExpr,
        (base, fit): (usize, Fit),
    ) -> Result<Range<'e, 'ctx>> {
        let (size, dilation) = (w.size as i64, w.window_dilation as i64);
        let (first, end) = match fit {
            Fit::Always => return Ok(self.full_range(w.size as u64, 1)),
            Fit::InRange => {
                let level = begin.level(&self.symbols);
                self.at_level(level, |s| {
                    let number = s.number_of(begin)?;
                    let begin = s.lanes_of(number);
                    let steps = |places: Lanes<'e, 'ctx>| (places.smax(0) + (dilation - 1)).udiv(dilation);
                    Ok((steps(-begin).smin(size), steps(-begin + base as i64).smin(size)))
                })?
            }
            Fit::Perhaps { first, end } => (self.number(first), self.number(end)),
        };
        // With reversal, the first elements come last.
        let (start, end) = if w.reversal { (-end + size, -first + size) } else { (first, end) };
        Ok(Range { start, end, extent: Some(w.size as u64), width: 1, step: 1, whole: true })
    }

    /// Returns the initial values of a reduction, converted to the accumulators' types.
    pub(crate) fn reduction_starts(&mut self, id: InstrId, width: u32) -> Result<Vec<Value<'e, 'ctx>>> {
        let instruction = &self.graph()[id];
        let inits = &instruction.operands()[instruction.operands().len() / 2..];
        let leaves = instruction.shape().leaves();
        let mut starts = Vec::with_capacity(inits.len());
        for (&init, (_, leaf)) in inits.iter().zip(leaves) {
            let value = self.element(init, &Vec::new())?;
            starts.push(elemental::convert(self.emitter, value, leaf.expect_array()?.element_type())?.splat(width));
        }
        Ok(starts)
    }
}

/// Returns the raw LLVM values that loops carry for these values.
pub(crate) fn raws_of<'ctx>(values: &[Value<'_, 'ctx>]) -> Vec<BasicValueEnum<'ctx>> {
    values.iter().flat_map(Value::raws).collect()
}

/// Rebuilds values from raw LLVM values; inverse of [`raws_of`].
pub(crate) fn values_of<'e, 'ctx>(
    s: &FusedEmitter<'e, 'ctx, '_>,
    types: &[ElementType],
    mut raws: &[BasicValueEnum<'ctx>],
) -> Vec<Value<'e, 'ctx>> {
    let mut values = Vec::with_capacity(types.len());
    for &ty in types {
        let count = if ty.is_complex() { 2 } else { 1 };
        let (own, rest) = raws.split_at(count.min(raws.len()));
        values.push(Value::from_raws(s.emitter, ty, own));
        raws = rest;
    }
    values
}
