//! Convolutions for cuDNN: a layer's forward pass, and the gradients of its input or filter.
//!
//! ```text
//!             input x [batch, channels]   filter w [out, in]   output y [batch, channels]
//! forward     lhs     [b, f]              rhs      [o, i]      result   [b, f]
//! of x        result  [b, f]              rhs      [i, o]      lhs      [b, f]     lhs dilation is the layer's stride
//! of w        lhs     [f, b]              result   [f, b]      rhs      [i, o]     rhs dilation is the layer's stride
//! ```
//!
//! In all three cases, `y[p] = sum over k of x[p * stride + k * dilation - low] w[k]` defines which elements are
//! multiplied. cuDNN supports only equal padding on both sides, filters that are not reversed, and two orders of
//! dimensions. If a program differs, arrays are rearranged before or after the call.

use xla_hlo::ops::{Convolution as Op, ConvolutionDims, SparsityConfig, WindowDim};
use xla_hlo::{ArrayShape, ElementType};

use super::{LEAST_WORK, Rearrangement, RecognizedCall, precision};
use crate::program::library_call::LibraryCall;
use crate::program::library_call::convolution::{
    Channels, Convolution, ConvolutionActivation, ConvolutionKind, Spatial,
};

/// Minimum product of a group's input and output channels. Below it, a tile of the library's kernels has too little
/// work.
const LEAST_CHANNELS: usize = 16;

/// Returns the call for input, kernel and result, if the library takes it and it pays off.
pub(super) fn find(op: &Op, arrays: [&ArrayShape; 3], capability: (u32, u32)) -> Option<RecognizedCall> {
    let channels = arrays[1].dims()[op.dims.kernel_input_feature];
    let outputs = arrays[1].dims()[op.dims.kernel_output_feature] / op.groups();
    let taps = op.window.dims.iter().try_fold(channels, |taps, d| taps.checked_mul(d.size))?;
    let work = arrays[2].element_count().checked_mul(taps)?;
    let is_worth_it = work >= LEAST_WORK && channels.checked_mul(outputs)? >= LEAST_CHANNELS;
    if is_worth_it { recognise(op, arrays, capability) } else { None }
}

/// Recognises a convolution of any size as a library call; `None` if the library has none.
pub(super) fn recognise(op: &Op, arrays: [&ArrayShape; 3], capability: (u32, u32)) -> Option<RecognizedCall> {
    let [lhs, rhs, result] = arrays.map(ArrayShape::element_type);
    if lhs != rhs || lhs != result || op.sparsity != SparsityConfig::default() {
        return None;
    }
    let orders: &[Channels] = match lhs {
        // cuDNN's kernels for f64 support no other order.
        ElementType::F64 => &[Channels::First],
        _ => &[Channels::First, Channels::Last],
    };
    let layers = kinds(op, arrays).into_iter().filter_map(|kind| ConvolutionLayer::new(kind, op, arrays));
    let calls =
        layers.flat_map(|layer| orders.iter().filter_map(move |&channels| layer.call(channels, op, capability)));
    // Programs usually store the arrays of a layer as the library does, so copy as little as possible. The first of
    // equal calls wins.
    calls.min_by_key(RecognizedCall::rearranged_bytes)
}

impl RecognizedCall {
    /// Returns the bytes of arrays that are copied to another layout.
    fn rearranged_bytes(&self) -> usize {
        self.arrays.iter().flatten().map(|array| array.from().byte_size()).fold(0, usize::saturating_add)
    }
}

/// Layer whose forward pass or gradient a convolution computes.
struct ConvolutionLayer<'a> {
    kind: ConvolutionKind,
    /// Operands and result of the operation.
    arrays: [LayerArray<'a>; 3],
    groups: usize,
    geometry: Vec<WindowGeometry>,
}

/// Array of the layer with its dimensions in the program.
struct LayerArray<'a> {
    shape: &'a ArrayShape,
    /// Dimension of the batch, or of the output channels of a filter.
    first: usize,
    /// Dimension of the channels, or of the input channels of a filter.
    second: usize,
    spatial: &'a [usize],
}

/// One spatial dimension of the layer.
struct WindowGeometry {
    spatial: Spatial,
    /// Zero padding of the layer's input, added before the library call.
    input_padding: (i64, i64),
    /// Whether the operation's second operand must be reversed for the library.
    is_reversed: bool,
}

impl<'a> ConvolutionLayer<'a> {
    /// Interprets the operation as a part of a layer. The arrays are its operands and its result.
    fn new(kind: ConvolutionKind, op: &'a Op, [lhs, rhs, result]: [&'a ArrayShape; 3]) -> Option<ConvolutionLayer<'a>> {
        let d = &op.dims;
        let (images, filter) = ((d.input_batch, d.input_feature), (d.kernel_output_feature, d.kernel_input_feature));
        let results = (d.output_batch, d.output_feature);
        let turned = |(first, second)| (second, first);
        let roles = match kind {
            ConvolutionKind::Forward => [images, filter, results],
            ConvolutionKind::BackwardInput => [images, turned(filter), results],
            ConvolutionKind::BackwardFilter => [turned(images), turned(filter), turned(results)],
        };
        let array = |shape, (first, second), spatial| LayerArray { shape, first, second, spatial };
        let arrays = [
            array(lhs, roles[0], &d.input_spatial),
            array(rhs, roles[1], &d.kernel_spatial),
            array(result, roles[2], &d.output_spatial),
        ];
        let [x, w, y] = places(kind);
        let geometry = op.window.dims.iter().enumerate().map(|(i, window)| {
            WindowGeometry::new(
                kind,
                window,
                [x, w, y].map(|place| arrays[place].shape.dims()[arrays[place].spatial[i]]),
            )
        });
        Some(ConvolutionLayer { kind, groups: op.groups(), geometry: geometry.collect::<Option<_>>()?, arrays })
    }

    /// Returns the call with this position of the channels.
    fn call(&self, channels: Channels, op: &Op, capability: (u32, u32)) -> Option<RecognizedCall> {
        let [x, w, y] = places(self.kind);
        let (input, filter) = (&self.arrays[x], &self.arrays[w]);
        let call = Convolution {
            kind: self.kind,
            element: input.shape.element_type(),
            precision: precision(op.algorithm, capability),
            channels,
            batch: input.size(input.first),
            groups: self.groups,
            input_channels: input.size(input.second),
            output_channels: filter.size(filter.first),
            spatial: self.geometry.iter().map(|geometry| geometry.spatial).collect(),
            has_bias: false,
            activation: ConvolutionActivation::None,
        };
        call.check(capability).ok()?;
        debug_assert_eq!(self.arrays[y].size(self.arrays[y].second), call.output_channels);
        let arrays = (0..3).map(|place| self.rearrangement(place, x, channels)).collect::<Option<Vec<_>>>()?;
        let arrays = arrays.into_iter().map(|array| Some(array).filter(|array| !array.is_nothing())).collect();
        Some(RecognizedCall { call: LibraryCall::Convolution(call), arrays, scaling: None })
    }

    /// Returns the rearrangement of an operand to the library's layout, or of its result to the program's layout.
    fn rearrangement(&self, place: usize, input: usize, channels: Channels) -> Option<Rearrangement> {
        let array = &self.arrays[place];
        let order = array.order(channels);
        let rank = order.len();
        let first = match channels {
            Channels::First => 2,
            Channels::Last => 1,
        };
        if place < 2 {
            let is_reversed = |i: &usize| place == 1 && self.geometry[*i].is_reversed;
            let reversed = (0..self.geometry.len()).filter(is_reversed).map(|i| first + i).collect();
            let mut padding = vec![(0, 0); rank];
            if place == input {
                let pads = padding[first..].iter_mut().zip(&self.geometry);
                pads.for_each(|(pads, geometry)| *pads = geometry.input_padding);
            }
            return Rearrangement::new(array.shape.clone(), order, reversed, padding);
        }
        // The library's result. The gradient of a padded input is computed with its padding, which is cut off.
        let mut dims: Vec<usize> = order.iter().map(|&d| array.shape.dims()[d]).collect();
        let mut padding = vec![(0, 0); rank];
        if place == input {
            for (i, geometry) in self.geometry.iter().enumerate() {
                let (low, high) = geometry.input_padding;
                dims[first + i] = geometry.spatial.input;
                padding[array.spatial[i]] = (low.checked_neg()?, high.checked_neg()?);
            }
        }
        let mut back = vec![0; rank];
        order.iter().enumerate().for_each(|(to, &from)| back[from] = to);
        Rearrangement::new(ArrayShape::new(array.shape.element_type(), dims), back, Vec::new(), padding)
    }
}

/// Returns the positions of the layer's input, filter and output among the operation's arrays.
fn places(kind: ConvolutionKind) -> [usize; 3] {
    match kind {
        ConvolutionKind::Forward => [0, 1, 2],
        ConvolutionKind::BackwardInput => [2, 1, 0],
        ConvolutionKind::BackwardFilter => [0, 2, 1],
    }
}

/// Returns the kinds that a convolution may be, the likelier first; none if no layer computes it.
fn kinds(op: &Op, [lhs, _, result]: [&ArrayShape; 3]) -> Vec<ConvolutionKind> {
    use ConvolutionKind::{BackwardFilter, BackwardInput, Forward};
    let ConvolutionDims { input_spatial, output_spatial, .. } = &op.dims;
    let windows = &op.window.dims;
    let has_holes = windows.iter().zip(input_spatial).any(|(w, &d)| w.base_dilation > 1 && lhs.dims()[d] > 1);
    if has_holes {
        let steps = windows.iter().zip(output_spatial).any(|(w, &d)| w.stride > 1 && result.dims()[d] > 1);
        // Groups of a filter divide only its output channels, which here are the layer's input channels.
        return if steps || op.groups() > 1 { Vec::new() } else { vec![BackwardInput] };
    }
    // The output of a layer is usually larger than its filter.
    let window = windows.iter().map(|w| w.size).fold(1, usize::saturating_mul);
    let places = output_spatial.iter().map(|&d| result.dims()[d]).fold(1, usize::saturating_mul);
    match (op.feature_group_count, op.batch_group_count) {
        (1, 1) if window > places => vec![BackwardFilter, Forward],
        (1, 1) => vec![Forward, BackwardFilter],
        (_, 1) => vec![Forward],
        (1, _) => vec![BackwardFilter],
        _ => Vec::new(),
    }
}

impl LayerArray<'_> {
    fn size(&self, dimension: usize) -> usize {
        self.shape.dims()[dimension]
    }

    /// Returns the dimensions in the library's order.
    fn order(&self, channels: Channels) -> Vec<usize> {
        match channels {
            Channels::First => [&[self.first, self.second], self.spatial].concat(),
            Channels::Last => [&[self.first], self.spatial, &[self.second]].concat(),
        }
    }
}

impl WindowGeometry {
    /// Computes the geometry from the sizes of input, filter and output.
    fn new(kind: ConvolutionKind, window: &WindowDim, [input, filter, output]: [usize; 3]) -> Option<WindowGeometry> {
        let (stride, dilation) = match kind {
            ConvolutionKind::Forward => (window.stride, window.window_dilation),
            ConvolutionKind::BackwardInput => (window.base_dilation, window.window_dilation),
            ConvolutionKind::BackwardFilter => (window.window_dilation, window.stride),
        };
        // A stride or dilation without effect may be too large for the library.
        let (stride, dilation) = (if output > 1 { stride } else { 1 }, if filter > 1 { dilation } else { 1 });
        let reach = filter.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
        let backwards = kind == ConvolutionKind::BackwardInput;
        let low = match backwards {
            true => i64::try_from(reach - 1).ok()?.checked_sub(window.pad_low)?,
            false => window.pad_low,
        };
        let is_reversed = window.size > 1 && window.reversal != backwards;
        let plain = usize::try_from(low).ok().filter(|&padding| padding < reach);
        let plain = plain.map(|padding| Spatial { input, filter, output, padding, stride, dilation });
        if let Some(spatial) = plain.filter(|spatial| spatial.check().is_ok()) {
            return Some(WindowGeometry { spatial, input_padding: (0, 0), is_reversed });
        }
        // Number of input elements that are read, including padding.
        let read = output.checked_sub(1)?.checked_mul(stride)?.checked_add(reach)?;
        let high = i64::try_from(read).ok()?.checked_sub(i64::try_from(input).ok()?)?.checked_sub(low)?;
        let spatial = Spatial { input: read, filter, output, padding: 0, stride, dilation };
        Some(WindowGeometry { spatial, input_padding: (low, high), is_reversed })
    }
}

#[cfg(test)]
mod tests;
