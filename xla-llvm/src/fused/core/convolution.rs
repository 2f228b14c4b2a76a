//! Convolutions: indices of the input and kernel elements of a product, and the computation of a single result.

use xla_hlo::ops::{BinaryOp, Convolution};
use xla_hlo::{Computation, ElementType, Error, InstrId, Result, Scalar};

use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::core::address::widened;
use crate::fused::core::addressing::Addressing;
use crate::fused::core::reduce::accumulator;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};

/// Coordinates of one product of a convolution.
pub(crate) struct Tap<'a> {
    /// Group of channels or of images.
    pub group: &'a AffineExpr,
    /// Image within the group.
    pub image: &'a AffineExpr,
    /// Position of the window along each spatial dimension.
    pub positions: &'a [AffineExpr],
    /// Offset within the window.
    pub window: &'a [AffineExpr],
    /// Input channel within the group.
    pub channel: &'a AffineExpr,
    /// Output channel within the group.
    pub output: &'a AffineExpr,
}

/// Returns the index of the product's input element. It is valid if the added condition holds; otherwise the
/// element is 0.
pub(crate) fn input_index<'m, A: Addressing<'m>>(
    s: &mut A,
    id: InstrId,
    op: &Convolution,
    tap: &Tap<'_>,
    condition: &mut Option<A::Condition>,
) -> Result<Index> {
    let graph = s.graph();
    let (input, kernel) = (graph[id].operand(0), graph[id].operand(1));
    let input = graph[input].shape().expect_array()?.dims();
    let channels = graph[kernel].shape().expect_array()?.dims()[op.dims.kernel_input_feature];
    let output = graph[id].shape().expect_array()?.dims();
    let images = input[op.dims.input_batch] / op.batch_group_count;
    let (of_image, of_channel) = if op.batch_group_count > 1 { (images, 0) } else { (0, channels) };
    let mut index = vec![AffineExpr::default(); input.len()];
    index[op.dims.input_batch] = tap.group.clone().scaled(of_image as i64).plus(tap.image);
    index[op.dims.input_feature] = tap.group.clone().scaled(of_channel as i64).plus(tap.channel);
    for (d, window) in op.window.dims.iter().enumerate() {
        let (size, places) = (input[op.dims.input_spatial[d]], output[op.dims.output_spatial[d]]);
        // An unused stride may overflow the arithmetic.
        let stride = if places > 1 { window.stride as i64 } else { 1 };
        let (dilation, grid) = (if window.size > 1 { window.window_dilation as i64 } else { 1 }, window.base_dilation);
        let at = match window.reversal {
            true => tap.window[d].clone().scaled(-1).shifted(window.size as i64 - 1),
            false => tap.window[d].clone(),
        };
        let place = tap.positions[d].clone().scaled(stride).plus(&at.scaled(dilation));
        let place = place.shifted(window.pad_low.saturating_neg());
        let grid = if size > 1 { grid as i64 } else { 1 };
        s.require_up_to(condition, &place, (size as i64 - 1) * grid)?;
        index[op.dims.input_spatial[d]] = if grid == 1 { place } else { s.on_grid(condition, &place, grid, size)? };
    }
    Ok(index)
}

/// Returns the index of the product's kernel element.
pub(crate) fn kernel_index(graph: &Computation, id: InstrId, op: &Convolution, tap: &Tap<'_>) -> Result<Index> {
    let kernel = graph[graph[id].operand(1)].shape().expect_array()?.dims();
    let outputs = kernel[op.dims.kernel_output_feature] / op.groups();
    let mut index = vec![AffineExpr::default(); kernel.len()];
    index[op.dims.kernel_input_feature] = tap.channel.clone();
    index[op.dims.kernel_output_feature] = tap.group.clone().scaled(outputs as i64).plus(tap.output);
    for (&d, at) in op.dims.kernel_spatial.iter().zip(tap.window) {
        index[d] = at.clone();
    }
    Ok(index)
}

/// Loops and coordinates of the products that a convolution sums for one result.
pub(crate) struct ConvolutionLoops<'a> {
    index: &'a Index,
    group: AffineExpr,
    output: AffineExpr,
    positions: Vec<AffineExpr>,
    /// Extents of the loops: the window's dimensions, then the input channels of a group.
    pub extents: Vec<u64>,
}

impl<'a> ConvolutionLoops<'a> {
    /// Returns the products for the result at `index`.
    pub fn new<'m, A: Addressing<'m>>(
        s: &mut A,
        id: InstrId,
        op: &Convolution,
        index: &'a Index,
    ) -> Result<ConvolutionLoops<'a>> {
        let graph = s.graph();
        let kernel = graph[graph[id].operand(1)].shape().expect_array()?.dims();
        let outputs = kernel[op.dims.kernel_output_feature] / op.groups();
        let (group, output) = s.quotient(&index[op.dims.output_feature], outputs as i64)?;
        let positions = op.dims.output_spatial.iter().map(|&d| index[d].clone()).collect();
        let mut extents: Vec<u64> = op.window.dims.iter().map(|d| d.size as u64).collect();
        extents.push(kernel[op.dims.kernel_input_feature] as u64);
        Ok(ConvolutionLoops { index, group, output, positions, extents })
    }

    /// Returns the coordinates of a product, given the loops' coordinates.
    pub fn tap<'t>(&'t self, op: &Convolution, coordinates: &'t [AffineExpr]) -> Result<Tap<'t>> {
        let (channel, window) =
            coordinates.split_last().ok_or_else(|| Error::internal("a convolution has no loop over its channels"))?;
        let ConvolutionLoops { index, group, output, positions, .. } = self;
        Ok(Tap { group, image: &index[op.dims.output_batch], positions, window, channel, output })
    }
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Computes one result: the sum of products over the window and the input channels.
    pub(crate) fn convolved(&mut self, id: InstrId, op: &Convolution, index: &Index) -> Result<Value<'e, 'ctx>> {
        let graph = self.graph();
        let operands = [graph[id].operand(0), graph[id].operand(1)];
        let [input, kernel] = [graph[operands[0]].shape().expect_array()?, graph[operands[1]].shape().expect_array()?];
        let result = graph[id].shape().expect_array()?.element_type();
        let ty = Convolution::sum_type(input.element_type(), kernel.element_type(), result);
        let (sum_type, width) = (accumulator(ty), self.width(index));
        let zero = zero(self.emitter, sum_type).splat(width);
        if input.dims().contains(&0) || kernel.dims().contains(&0) {
            return converted(self.emitter, zero, result);
        }
        let loops = ConvolutionLoops::new(self, id, op, index)?;
        let raws = self.nested(&loops.extents, 1, &mut Vec::new(), zero.raws(), &mut |s, exprs, carried| {
            let tap = loops.tap(op, exprs)?;
            let mut condition = None;
            let at = input_index(s, id, op, &tap, &mut condition)?;
            let x = s.guarded_element(operands[0], &at, condition)?.splat(width);
            let y = kernel_index(graph, id, op, &tap)?;
            let y = s.element(operands[1], &y)?.splat(width);
            let [x, y] = [x, y].map(|value| converted(s.emitter, value, ty));
            let [x, y] = [x?, y?].map(|value| converted(s.emitter, value, sum_type));
            let product = elemental::binary(s.emitter, BinaryOp::Multiply, x?, y?)?;
            let product = match condition {
                Some(guard) => elemental::select_lanes(widened(guard.mask, width), product, zero),
                None => product,
            };
            let sum = Value::from_raws(s.emitter, sum_type, carried);
            Ok(elemental::binary(s.emitter, BinaryOp::Add, sum, product)?.raws())
        })?;
        let sum = converted(self.emitter, Value::from_raws(self.emitter, sum_type, &raws), ty)?;
        converted(self.emitter, sum, result)
    }
}

/// Returns zero of an element type.
pub(crate) fn zero<'e, 'ctx>(emitter: &'e Emitter<'ctx>, ty: ElementType) -> Value<'e, 'ctx> {
    elemental::constant(emitter, ty, Scalar::zero(ty))
}

/// Converts a value to another element type; from complex to real, takes the real part.
pub(crate) fn converted<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    value: Value<'e, 'ctx>,
    to: ElementType,
) -> Result<Value<'e, 'ctx>> {
    let from = value.element_type();
    let value = match from.is_complex() && !to.is_complex() {
        true => Value::new(from.real_part(), value.lanes()),
        false => value,
    };
    elemental::convert(emitter, value, to)
}
