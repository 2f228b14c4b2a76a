//! Shape rules of convolutions.

use super::*;
use crate::ops::checks::{self, ensure};
use crate::ops::dot_arithmetic;
use crate::{ArrayShape, ElementType};

/// Returns the shape of the result. Its batch size is that of one batch group of the input, its channels are the
/// kernel's output channels, and its spatial dimensions are the window's positions.
pub(super) fn convolution(op: &Convolution, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (input, kernel, dims) = (cx.array(0)?, cx.array(1)?, &op.dims);
    let mut result = vec![0; dims.output_spatial.len() + 2];
    check_roles(input, kernel, dims)?;
    ensure!(
        op.precision.is_empty() || op.precision.len() == 2,
        "operand_precision must have one entry for each of the 2 operands, not {}",
        op.precision.len()
    );
    let channels = Channels {
        images: input.dims()[dims.input_batch],
        input: input.dims()[dims.input_feature],
        kernel_input: kernel.dims()[dims.kernel_input_feature],
        output: kernel.dims()[dims.kernel_output_feature],
    };
    channels.check_groups(op)?;
    result[dims.output_batch] = channels.images / op.batch_group_count;
    result[dims.output_feature] = channels.output;
    for (&place, size) in dims.output_spatial.iter().zip(positions(op, input, kernel)?) {
        result[place] = size;
    }
    checks::array(result_type(input, kernel, cx)?, result)
}

/// Checks that each dimension of each array has exactly one role.
fn check_roles(input: &ArrayShape, kernel: &ArrayShape, dims: &ConvolutionDims) -> Result<()> {
    let rank = dims.spatial_rank() + 2;
    for (what, shape, spatial, others) in [
        ("input", Some(input), &dims.input_spatial, [dims.input_batch, dims.input_feature]),
        ("kernel", Some(kernel), &dims.kernel_spatial, [dims.kernel_input_feature, dims.kernel_output_feature]),
        ("result", None, &dims.output_spatial, [dims.output_batch, dims.output_feature]),
    ] {
        ensure!(
            spatial.len() + 2 == rank,
            "dim_labels give the input {} spatial dimensions and the {what} {}; these numbers must be equal",
            rank - 2,
            spatial.len()
        );
        if let Some(shape) = shape {
            ensure!(shape.rank() == rank, "dim_labels name {rank} dimensions, but the {what} is {shape}");
        }
        checks::distinct("dim_labels", &[spatial.as_slice(), &others].concat(), rank).map_err(|e| e.context(what))?;
    }
    ensure!(rank <= 12, "dim_labels cannot name more than ten spatial dimensions, not {}", rank - 2);
    Ok(())
}

/// Batch size of the input, and channels of both operands.
struct Channels {
    images: usize,
    input: usize,
    kernel_input: usize,
    output: usize,
}

impl Channels {
    fn check_groups(&self, op: &Convolution) -> Result<()> {
        let (features, batches) = (op.feature_group_count, op.batch_group_count);
        ensure!(features > 0, "feature_group_count must be at least 1");
        ensure!(batches > 0, "batch_group_count must be at least 1");
        ensure!(
            features == 1 || batches == 1,
            "feature_group_count={features} and batch_group_count={batches} cannot both be more than 1"
        );
        ensure!(
            self.input.is_multiple_of(features) && self.input / features == self.kernel_input,
            "the input has {} channels in {features} groups, but the kernel takes {} channels of a group",
            self.input,
            self.kernel_input
        );
        ensure!(
            self.images.is_multiple_of(batches),
            "the input's {} images cannot be divided by batch_group_count={batches}",
            self.images
        );
        for (name, count) in [("feature_group_count", features), ("batch_group_count", batches)] {
            ensure!(
                self.output.is_multiple_of(count),
                "the kernel's {} output channels cannot be divided by {name}={count}",
                self.output
            );
        }
        Ok(())
    }
}

/// Returns the number of window positions along each spatial dimension.
fn positions(op: &Convolution, input: &ArrayShape, kernel: &ArrayShape) -> Result<Vec<usize>> {
    let dims = &op.dims;
    ensure!(
        op.window.dims.len() == dims.spatial_rank(),
        "the window has {} dimensions, but dim_labels name {} spatial dimensions",
        op.window.dims.len(),
        dims.spatial_rank()
    );
    let mut positions = Vec::with_capacity(dims.spatial_rank());
    for (d, window) in op.window.dims.iter().enumerate() {
        let size = kernel.dims()[dims.kernel_spatial[d]];
        ensure!(
            window.size == size,
            "the window has size {} along spatial dimension {d}, but the kernel {kernel} has {size}",
            window.size
        );
        let base = input.dims()[dims.input_spatial[d]];
        positions.push(window.output_size(base).map_err(|e| e.context(format_args!("spatial dimension {d}")))?);
    }
    Ok(positions)
}

/// Returns the written type, or by default the operand type that represents all values of the other. Fails if neither
/// operand type does.
fn result_type(input: &ArrayShape, kernel: &ArrayShape, cx: &ShapeContext<'_>) -> Result<ElementType> {
    let (lhs, rhs) = (input.element_type(), kernel.element_type());
    let natural = dot_arithmetic::common_type(lhs, rhs).ok_or_else(|| {
        Error::invalid_argument(format!(
            "the input {input} and the kernel {kernel} cannot be multiplied: neither element type holds the other's values"
        ))
    })?;
    Ok(cx.written_element_type_or(natural))
}
