//! Converts convolutions to the target's order of dimensions.

use xla_hlo::ops::{ConvolutionDims, SparsityConfig, Transpose};
use xla_hlo::{ArrayShape, CompId, Computation, InstrId, Instruction, Module, Op, Result, Shape};

use super::member::ordered;
use super::order::DimOrder;
use crate::PassContext;
use crate::framework::profile::ConvolutionOrder;
use crate::rewrite::graph;

/// Inserts transposes around convolutions that do not have the target's order. Layout assignment then moves or removes
/// the transposes.
pub(super) fn put_in_order(module: &mut Module, id: CompId, cx: &PassContext<'_>) -> Result<()> {
    match cx.profile().layout.convolution {
        ConvolutionOrder::Any => return Ok(()),
        ConvolutionOrder::ChannelsLast => {}
    }
    for instruction in module[id].post_order() {
        let Some(dims) = other_order(&module[id], instruction) else { continue };
        if !cx.allow_rewrite("assign-layouts") {
            break;
        }
        reorder(module.computation_mut(id), instruction, &dims)?;
    }
    Ok(())
}

/// Returns the target's dimension numbers for a convolution whose channels are not last.
fn other_order(computation: &Computation, id: InstrId) -> Option<ConvolutionDims> {
    let instruction = &computation[id];
    let Op::Convolution(op) = instruction.op() else { return None };
    let exact = instruction.operands().iter().chain([&id]).all(|&i| ordered(computation, i).is_some());
    let whole = op.sparsity == SparsityConfig::default();
    let other = op.dims != channels_last(op.dims.spatial_rank());
    (exact && whole && other && graph::is_free(instruction)).then(|| op.dims.clone())
}

/// Returns the dimension numbers for NHWC and HWIO: batch, spatial, features; for the kernel spatial, input features,
/// output features.
fn channels_last(spatial: usize) -> ConvolutionDims {
    ConvolutionDims {
        input_batch: 0,
        input_feature: spatial + 1,
        input_spatial: (1..=spatial).collect(),
        kernel_input_feature: spatial,
        kernel_output_feature: spatial + 1,
        kernel_spatial: (0..spatial).collect(),
        output_batch: 0,
        output_feature: spatial + 1,
        output_spatial: (1..=spatial).collect(),
    }
}

fn reorder(computation: &mut Computation, id: InstrId, dims: &ConvolutionDims) -> Result<()> {
    let Op::Convolution(mut op) = computation[id].op().clone() else { return Ok(()) };
    let images = |batch, spatial: &[usize], feature| DimOrder::new([&[batch], spatial, &[feature]].concat());
    let input = images(dims.input_batch, &dims.input_spatial, dims.input_feature);
    let output = images(dims.output_batch, &dims.output_spatial, dims.output_feature);
    let channels = [dims.kernel_input_feature, dims.kernel_output_feature];
    let kernel = DimOrder::new([&dims.kernel_spatial[..], &channels].concat());
    op.dims = channels_last(dims.spatial_rank());
    let (x, w) = (computation[id].operand(0), computation[id].operand(1));
    let operands = [transposed(computation, x, &input), transposed(computation, w, &kernel)];
    let shape = computation[id].shape().expect_array()?;
    let shape = ArrayShape::new(shape.element_type(), output.apply(shape.dims()));
    let annotations = computation[id].annotations().cloned().map(Box::new);
    let name = computation[id].name().to_string();
    let new = Instruction::new(op.into(), Shape::Array(shape).with_default_layouts(), operands);
    let new = computation.add(new.with_annotations(annotations));
    let result = transposed(computation, new, &output.inverse());
    computation.replace_all_uses(id, result);
    computation.remove(id)?;
    computation.rename(new, &name);
    Ok(())
}

fn transposed(computation: &mut Computation, x: InstrId, order: &DimOrder) -> InstrId {
    let Some(shape) = computation[x].shape().as_array().filter(|_| !order.is_identity()) else { return x };
    let permutation = order.permutation(shape.rank());
    let shape = ArrayShape::new(shape.element_type(), order.apply(shape.dims()));
    let shape = Shape::Array(shape).with_default_layouts();
    computation.add(Instruction::new(Transpose { permutation }.into(), shape, [x]))
}
