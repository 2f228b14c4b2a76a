//! Gathers and scatters.

use xla_hlo::ops::{Gather, Op, Scatter};
use xla_hlo::{InstrId, Result};

use super::call::Call;
use super::context::Lowering;

/// Lowers an operation at an array of indices.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    let op = match call.name {
        "gather" => gather(call),
        "scatter" => scatter(lowering, call),
        _ => return None,
    };
    Some(op.and_then(|op| lowering.add(op, call.shape(), call.operands.clone())))
}

/// A list that older forms lack.
fn list(call: &Call<'_>, name: &str) -> Result<Vec<usize>> {
    call.attributes.get(name).map_or(Ok(Vec::new()), |_| call.attributes.indices(name))
}

fn gather(call: &Call<'_>) -> Result<Op> {
    Ok(Gather {
        offset_dims: list(call, "offset_dims")?,
        collapsed_slice_dims: list(call, "collapsed_slice_dims")?,
        start_index_map: list(call, "start_index_map")?,
        operand_batching_dims: list(call, "operand_batching_dims")?,
        start_indices_batching_dims: list(call, "start_indices_batching_dims")?,
        index_vector_dim: call.attributes.index("index_vector_dim")?,
        slice_sizes: call.attributes.indices("slice_sizes")?,
        indices_are_sorted: call.attributes.flag("indices_are_sorted")?,
    }
    .into())
}

fn scatter(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let [body] = call.regions()?;
    Ok(Scatter {
        update_window_dims: list(call, "update_window_dims")?,
        inserted_window_dims: list(call, "inserted_window_dims")?,
        scatter_dims_to_operand_dims: list(call, "scatter_dims_to_operand_dims")?,
        input_batching_dims: list(call, "input_batching_dims")?,
        scatter_indices_batching_dims: list(call, "scatter_indices_batching_dims")?,
        index_vector_dim: call.attributes.index("index_vector_dim")?,
        indices_are_sorted: call.attributes.flag("indices_are_sorted")?,
        unique_indices: call.attributes.flag("unique_indices")?,
        computation: lowering.closed_region("update_computation", body)?,
    }
    .into())
}
