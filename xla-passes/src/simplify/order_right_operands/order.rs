//! Preferred order of dimensions for the right operand of a dot or a convolution.

mod filter;
mod rows;

use xla_hlo::ops::ConvolutionDims;
use xla_hlo::{Computation, InstrId, Op, Result, Shape};

use crate::framework::profile::FilterOrder;
use crate::layout::inverse;
use crate::rewrite::graph;
use crate::{PassContext, TargetProfile};

/// Whether a target has a preferred order for any right operand.
pub(super) fn matters(profile: &TargetProfile) -> bool {
    profile.dot.right_rows || profile.layout.filters != FilterOrder::Any
}

/// Returns the permutation that puts the right operand of an instruction in the preferred order: position `i` gets
/// dimension `permutation[i]`. `None` if there is no preference, or the present order is good enough.
pub(super) fn wanted(computation: &Computation, id: InstrId, cx: &PassContext<'_>) -> Option<Vec<usize>> {
    if !graph::is_static(computation, id) {
        return None;
    }
    let shape = |i: usize| computation[computation[id].operand(i)].shape().as_array();
    match computation[id].op() {
        Op::Dot(dot) if cx.profile().dot.right_rows => rows::wanted(dot, [shape(0)?, shape(1)?]),
        Op::Convolution(op) if cx.profile().layout.filters == FilterOrder::OutputFeaturesFirst => {
            filter::wanted(op, shape(1)?, computation[id].shape().as_array()?)
        }
        _ => None,
    }
}

/// Returns the shape of an array in this order.
pub(super) fn ordered(shape: &Shape, order: &[usize]) -> Result<Shape> {
    let array = shape.expect_array()?;
    let dims: Vec<usize> = order.iter().map(|&d| array.dims()[d]).collect();
    Ok(Shape::array(array.element_type(), dims).with_default_layouts())
}

/// Replaces the right operand by `operand`, which is the present one in this order, and adapts the dimension numbers.
pub(super) fn set_right(computation: &mut Computation, id: InstrId, operand: InstrId, order: &[usize]) {
    let places = inverse(order);
    let put = |d: &mut usize| *d = places[*d];
    let mut op = computation[id].op().clone();
    match &mut op {
        Op::Dot(dot) => dot.dims.rhs_batch.iter_mut().chain(&mut dot.dims.rhs_contracting).for_each(put),
        Op::Convolution(convolution) => {
            let ConvolutionDims { kernel_input_feature, kernel_output_feature, kernel_spatial, .. } =
                &mut convolution.dims;
            kernel_spatial.iter_mut().chain([kernel_input_feature, kernel_output_feature]).for_each(put);
        }
        _ => return,
    }
    computation.set_op(id, op);
    computation.replace_operand(id, 1, operand);
}
