//! Shape rules of the indexing family.

use super::dim_numbers::{DimNumbers, SliceDim};
use super::*;
use crate::ops::checks::{self, ensure};
use crate::ops::combiner::Accumulators;
use crate::{ArrayShape, ElementType};

/// Returns the shape of a gather: the batch dimensions of the indices array, and slice dimensions at `offset_dims`.
pub(super) fn gather(op: &Gather, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (operand, indices) = (cx.array(0)?, cx.array(1)?);
    let dim_numbers = DimNumbers::from(op);
    dim_numbers.check(operand, indices)?;
    ensure!(
        op.slice_sizes.len() == operand.rank() && op.slice_sizes.iter().zip(operand.dims()).all(|(s, d)| s <= d),
        "slice_sizes {:?} must have one size for each dimension of the operand {operand}, none larger than it",
        op.slice_sizes
    );
    for &d in op.collapsed_slice_dims.iter().chain(&op.operand_batching_dims) {
        ensure!(
            op.slice_sizes[d] <= 1,
            "slice_sizes {:?} must be 1 in dimension {d}, which the result leaves out",
            op.slice_sizes
        );
    }
    let size = |dim| match dim {
        SliceDim::Window(d) => op.slice_sizes[d],
        SliceDim::Batch(d) => indices.dims()[d],
    };
    let dims = dim_numbers.slice_dims(operand.rank(), indices).into_iter().map(size).collect();
    checks::array(operand.element_type(), dims)
}

/// Checks that updates have the batch dimensions of the indices array and windows that fit into the inputs; returns the
/// shapes of the inputs.
pub(super) fn scatter(op: &Scatter, cx: &ShapeContext<'_>) -> Result<Shape> {
    let count = cx.operands().len() / 2;
    ensure!(
        count > 0 && cx.operands().len() == 2 * count + 1,
        "operands must be N inputs, the indices and N updates, but their number is {}",
        cx.operands().len()
    );
    let (input, indices, update) = (cx.array(0)?, cx.array(count)?, cx.array(count + 1)?);
    let dim_numbers = DimNumbers::from(op);
    dim_numbers.check(input, indices)?;
    check_update(&dim_numbers, input, indices, update)?;
    let (mut inputs, mut updates) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for i in 0..count {
        let (other_input, other_update) = (cx.array(i)?, cx.array(count + 1 + i)?);
        ensure!(
            other_input.same_dims(input) && other_update.same_dims(update),
            "inputs must have the same dimensions, and so must updates, but input 0 and its update are {input} and {update}, input {i} and its update are {other_input} and {other_update}"
        );
        inputs.push(other_input.element_type());
        updates.push(other_update.element_type());
    }
    check_combiner(op, cx, &inputs, &updates)?;
    let mut results: Vec<Shape> = inputs.iter().map(|&ty| ArrayShape::new(ty, input.dims()).into()).collect();
    Ok(if count == 1 { results.remove(0) } else { Shape::Tuple(results) })
}

fn check_update(
    dim_numbers: &DimNumbers<'_>,
    input: &ArrayShape,
    indices: &ArrayShape,
    update: &ArrayShape,
) -> Result<()> {
    let dims = dim_numbers.slice_dims(input.rank(), indices);
    ensure!(
        update.rank() == dims.len(),
        "the update {update} must have {} dimensions: those of the indices {indices} without index_vector_dim={}, and update_window_dims {:?}",
        dims.len(),
        dim_numbers.index_vector_dim,
        dim_numbers.offset_dims
    );
    for (u, (dim, &size)) in dims.into_iter().zip(update.dims()).enumerate() {
        match dim {
            SliceDim::Window(d) => ensure!(
                size <= input.dims()[d],
                "dimension {u} of the update {update} must fit into dimension {d} of the input {input}"
            ),
            SliceDim::Batch(d) => ensure!(
                size == indices.dims()[d],
                "dimension {u} of the update {update} must have the size of dimension {d} of the indices {indices}"
            ),
        }
    }
    Ok(())
}

/// Checks that the combiner returns values of the inputs' types.
fn check_combiner(op: &Scatter, cx: &ShapeContext<'_>, inputs: &[ElementType], updates: &[ElementType]) -> Result<()> {
    let accumulators = Accumulators::check(cx, op.computation, updates, inputs)?;
    let name = cx.computation(op.computation)?.name();
    ensure!(
        accumulators.types() == inputs,
        "the combiner {name} returns {:?}, but the inputs are {inputs:?}",
        accumulators.types()
    );
    Ok(())
}
