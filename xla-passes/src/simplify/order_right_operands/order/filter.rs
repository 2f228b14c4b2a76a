//! Filters of convolution layers: output features first, input features at the same end as in the images.

use xla_hlo::ArrayShape;
use xla_hlo::ops::{Convolution, ConvolutionDims, SparsityConfig};

/// Returns the order with output features first, then input features before or after the spatial dimensions. `None` if
/// the filter already has this order.
///
/// Features are those of the layer: a convolution of a dilated input is a layer's gradient, whose input features are
/// the layer's output features. `None` also for a window with more elements than results, which is no filter, and for a
/// window in the opposite direction to a layer's, since the library then needs another array, not just another order.
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
    // Dimensions of extent 1 may be at any position.
    let extended = |dims: &[usize]| dims.iter().copied().filter(|&d| filter.dims()[d] != 1).collect::<Vec<_>>();
    let present: Vec<usize> = (0..filter.rank()).collect();
    (extended(&order) != extended(&present)).then_some(order)
}

/// Whether the images of a convolution end with their features rather than begin with batch and features; `None` for
/// other orders.
fn images_have_features_last(dims: &ConvolutionDims) -> Option<bool> {
    let (batch, feature, spatial) = (dims.input_batch, dims.input_feature, &dims.input_spatial);
    let is_in_order = |order: Vec<usize>| order.iter().copied().eq(0..order.len());
    if is_in_order([&[batch], &spatial[..], &[feature]].concat()) {
        return Some(true);
    }
    is_in_order([&[batch, feature], &spatial[..]].concat()).then_some(false)
}
