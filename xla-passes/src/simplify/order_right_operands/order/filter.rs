//! Right operands of convolutions that are filters of a layer: output features first, input features where the images
//! have theirs.

use xla_hlo::ArrayShape;
use xla_hlo::ops::{Convolution, ConvolutionDims, SparsityConfig};

/// Output features, then input features before or after the places of a window; `None` where they lie so already.
///
/// Features are those of the layer: a convolution of an input with holes is a layer's gradient, whose input features
/// are the layer's output features. `None`, too, for a window of more places than results, which is no filter, and
/// where a window runs the other way than in a layer: the library wants another array then, not only another order.
pub(super) fn wanted(op: &Convolution, filter: &ArrayShape, result: &ArrayShape) -> Option<Vec<usize>> {
    let ConvolutionDims { kernel_input_feature, kernel_output_feature, kernel_spatial, output_spatial, .. } = &op.dims;
    let has_holes = op.window.dims.iter().any(|window| window.base_dilation > 1);
    let is_turned = op.window.dims.iter().any(|window| window.size > 1 && window.reversal != has_holes);
    let places = output_spatial.iter().map(|&d| result.dims()[d]).fold(1, usize::saturating_mul);
    let taps = kernel_spatial.iter().map(|&d| filter.dims()[d]).fold(1, usize::saturating_mul);
    if is_turned || taps > places || op.sparsity != SparsityConfig::default() {
        return None;
    }
    let (first, second) = match has_holes {
        true => (*kernel_input_feature, *kernel_output_feature),
        false => (*kernel_output_feature, *kernel_input_feature),
    };
    let order = match images_have_features_last(&op.dims)? {
        true => [&[first], &kernel_spatial[..], &[second]].concat(),
        false => [&[first, second], &kernel_spatial[..]].concat(),
    };
    // Dimensions of one element may stand anywhere.
    let extended = |dims: &[usize]| dims.iter().copied().filter(|&d| filter.dims()[d] != 1).collect::<Vec<_>>();
    let present: Vec<usize> = (0..filter.rank()).collect();
    (extended(&order) != extended(&present)).then_some(order)
}

/// Whether the images of a convolution end with their features, or begin with batch and features; `None` where they
/// lie otherwise.
fn images_have_features_last(dims: &ConvolutionDims) -> Option<bool> {
    let (batch, feature, spatial) = (dims.input_batch, dims.input_feature, &dims.input_spatial);
    let is_in_order = |order: Vec<usize>| order.iter().copied().eq(0..order.len());
    if is_in_order([&[batch], &spatial[..], &[feature]].concat()) {
        return Some(true);
    }
    is_in_order([&[batch, feature], &spatial[..]].concat()).then_some(false)
}
