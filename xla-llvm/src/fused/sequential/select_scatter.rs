//! Select-and-scatter: selects one element of each window, and combines the window's value into the result at its
//! place.
//!
//! Windows are processed in row-major order, as the operation specifies. Fibers along dimensions without a window are
//! independent, so they are lanes and work items.

use inkwell::values::BasicValueEnum;
use xla_hlo::ops::SelectAndScatter;
use xla_hlo::{ArrayShape, ElementType, Error, InstrId, Result};

use crate::elemental::{self, Value};
use crate::fused::core::address::{strides_of, widened};
use crate::fused::core::window::{WindowPlace, raws_of, values_of};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index, position};
use crate::fused::value::{Guard, Source};
use crate::lanes::Lanes;

/// Element that is selected so far, lane by lane.
#[derive(Clone, Copy)]
struct Choice<'e, 'ctx> {
    value: Value<'e, 'ctx>,
    /// Position in the array.
    place: Lanes<'e, 'ctx>,
    /// Whether an element is selected; windows may be empty.
    any: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Choice<'e, 'ctx> {
    fn raws(&self) -> Vec<BasicValueEnum<'ctx>> {
        [raws_of(&[self.value]), vec![self.place.raw(), self.any.raw()]].concat()
    }

    fn from_raws(s: &FusedEmitter<'e, 'ctx, '_>, ty: ElementType, raws: &[BasicValueEnum<'ctx>]) -> Result<Self> {
        let [.., place, any] = raws else {
            return Err(Error::internal("choice of select-and-scatter lacks its place or its mask"));
        };
        let value = values_of(s, &[ty], &raws[..raws.len() - 2]);
        let value =
            value.first().copied().ok_or_else(|| Error::internal("choice of select-and-scatter has no value"))?;
        Ok(Choice { value, place: s.emitter.lanes(*place), any: s.emitter.lanes(*any) })
    }
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Processes the windows of the fibers at an index that is 0 along the dimensions that windows slide along.
    pub(crate) fn select_and_scatter(
        &mut self,
        root: InstrId,
        op: &SelectAndScatter,
        independent: &[bool],
        index: Index,
        result: &Source<'ctx>,
    ) -> Result<()> {
        let &[operand, source, init] = self.graph()[root].operands() else {
            return Err(Error::internal(format!(
                "select-and-scatter %{} does not have three operands",
                self.graph()[root].name()
            )));
        };
        let width = self.width(&index);
        let ty = result.shape.element_type();
        let init = self.element(init, &Vec::new())?;
        let init = elemental::convert(self.emitter, init, ty)?.splat(width);
        let base = result.shape.dims();
        self.for_places(base, independent, index.clone(), &mut |s, at| s.store(result, at, init))?;

        let windows = op.window.dims_for(base.len())?;
        let output = self.graph()[source].shape().expect_array()?.dims();
        // Places are linear element numbers in all dimensions.
        let flat = Source { base: result.base, shape: ArrayShape::new(ty, [result.shape.element_count()]) };
        self.for_places(output, independent, index, &mut |s, at| {
            let place = WindowPlace { dims: &windows, base, output, index: at };
            let choice = s.chosen(operand, op, &place, &strides_of(&result.shape), width)?;
            let level = s.depth();
            let mask = s.existing_lanes(at);
            let target = vec![s.computed(choice.place, mask, None, level)];
            let x = s.element(source, at)?.splat(width);
            s.under_guard(Guard { mask: choice.any, level }, |s| {
                let before = s.load(root, &flat, &target)?.splat(width);
                match s.call(op.scatter, &[before, x])?.first() {
                    Some(&after) => s.store(&flat, &target, after),
                    None => Err(Error::internal("scatter function of select-and-scatter has no result")),
                }
            })
        })
    }

    /// Returns the element of a window that `select` chooses.
    fn chosen(
        &mut self,
        operand: InstrId,
        op: &SelectAndScatter,
        window: &WindowPlace<'_>,
        strides: &[usize],
        width: u32,
    ) -> Result<Choice<'e, 'ctx>> {
        let ty = self.graph()[operand].shape().expect_array()?.element_type();
        let nothing = Choice {
            value: elemental::constant(self.emitter, ty, xla_hlo::Scalar::zero(ty)).splat(width),
            place: self.number(0).splat(width),
            any: self.number(0).ne(0).splat(width),
        };
        let raws = self.for_window(window, nothing.raws(), &mut |s, at, condition, carried| {
            let before = Choice::from_raws(s, ty, carried)?;
            let value = s.guarded_element(operand, at, condition)?.splat(width);
            let stays = s.call(op.select, &[before.value, value])?;
            let stays =
                stays.first().ok_or_else(|| Error::internal("select function of select-and-scatter has no result"))?;
            let held = before.any.mask(true);
            let held = condition.map_or(held, |guard| widened(guard.mask, width));
            let taken = held & !(before.any & stays.lanes());
            let place = s.number_of(&position(at, strides))?;
            let place = s.lanes_of(place);
            let place = if place.width() == width { place } else { place.splat(width) };
            let after = Choice {
                value: elemental::select_lanes(taken, value, before.value),
                place: taken.select(place, before.place),
                any: before.any | held,
            };
            Ok(after.raws())
        })?;
        Choice::from_raws(self, ty, &raws)
    }

    /// Runs `body` for each index along the sequential dimensions, in row-major order.
    fn for_places(
        &mut self,
        dims: &[usize],
        independent: &[bool],
        index: Index,
        body: &mut dyn FnMut(&mut Self, &Index) -> Result<()>,
    ) -> Result<()> {
        self.for_places_from(0, dims, independent, index, body)
    }

    fn for_places_from(
        &mut self,
        from: usize,
        dims: &[usize],
        independent: &[bool],
        mut index: Index,
        body: &mut dyn FnMut(&mut Self, &Index) -> Result<()>,
    ) -> Result<()> {
        let Some(d) = (from..dims.len()).find(|&d| !independent[d] && dims[d] != 1) else { return body(self, &index) };
        let range = self.full_range(dims[d] as u64, 1);
        self.for_each(range, Vec::new(), &mut |s, symbol, _| {
            index[d] = AffineExpr::symbol(symbol);
            s.for_places_from(d + 1, dims, independent, index.clone(), body).map(|()| Vec::new())
        })?;
        Ok(())
    }
}
