//! Gathers and scatters.

use xla_hlo::ops::{Gather, Op, Scatter};
use xla_hlo::{Error, InstrId, Result};

use super::call::Call;
use super::context::Lowering;
use super::promotion;

/// Lowers an operation with an array of indices.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    let op = match call.name {
        "gather" => call.attributes.indices("slice_sizes").and_then(|sizes| gather(call, sizes)),
        "torch_index_select" => return Some(index_select(lowering, call)),
        "scatter" => return Some(scatter(lowering, call)),
        _ => return None,
    };
    Some(op.and_then(|op| lowering.add(op, call.shape(), call.operands.clone())))
}

/// Returns a list attribute, which older forms lack.
fn list(call: &Call<'_>, name: &str) -> Result<Vec<usize>> {
    call.attributes.get(name).map_or(Ok(Vec::new()), |_| call.attributes.indices(name))
}

/// Creates a gather of slices of these sizes.
pub(super) fn gather(call: &Call<'_>, slice_sizes: Vec<usize>) -> Result<Op> {
    Ok(Gather {
        offset_dims: list(call, "offset_dims")?,
        collapsed_slice_dims: list(call, "collapsed_slice_dims")?,
        start_index_map: list(call, "start_index_map")?,
        operand_batching_dims: list(call, "operand_batching_dims")?,
        start_indices_batching_dims: list(call, "start_indices_batching_dims")?,
        index_vector_dim: call.attributes.index("index_vector_dim")?,
        slice_sizes,
        indices_are_sorted: call.attributes.flag("indices_are_sorted")?,
    }
    .into())
}

/// Derives the slice sizes of a gather from its static result shape; `None` if the shape is not static.
pub(super) fn slice_sizes_of_result(call: &Call<'_>, rank: usize) -> Result<Option<Vec<usize>>> {
    let result = call.shape();
    let result = result.expect_array()?;
    let offsets = list(call, "offset_dims")?;
    let of_one = [list(call, "collapsed_slice_dims")?, list(call, "operand_batching_dims")?].concat();
    if !result.is_static() || offsets.len() + of_one.len() != rank || offsets.iter().any(|&d| d >= result.rank()) {
        return Ok(None);
    }
    let mut offsets = offsets.into_iter();
    let size = |d: usize| match of_one.contains(&d) {
        true => Some(1),
        false => offsets.next().map(|to| result.dims()[to]),
    };
    Ok((0..rank).map(size).collect())
}

fn scatter(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [body] = call.regions()?;
    // The operands are the inputs, the indices, and an update for each input. The function takes the inputs, then the
    // updates.
    let inputs = call.operands.len() / 2;
    let operands = promotion::promoted(lowering, &call.operands, body, |operand| match operand {
        _ if operand < inputs => Some(operand),
        _ if operand == inputs => None,
        _ => Some(operand - 1),
    })?;
    let op = Scatter {
        update_window_dims: list(call, "update_window_dims")?,
        inserted_window_dims: list(call, "inserted_window_dims")?,
        scatter_dims_to_operand_dims: list(call, "scatter_dims_to_operand_dims")?,
        input_batching_dims: list(call, "input_batching_dims")?,
        scatter_indices_batching_dims: list(call, "scatter_indices_batching_dims")?,
        index_vector_dim: call.attributes.index("index_vector_dim")?,
        indices_are_sorted: call.attributes.flag("indices_are_sorted")?,
        unique_indices: call.attributes.flag("unique_indices")?,
        computation: lowering.closed_region("update_computation", body)?,
    };
    lowering.add(op, call.shape(), operands)
}

/// Lowers `torch_index_select`, which selects slices of `x` along a dimension by index. The first `batch_dims`
/// dimensions of `x` and the indices are batch dimensions.
fn index_select(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [x, numbers] = call.exactly()?;
    let (dim, batch) = (call.attributes.index("dim")?, call.attributes.index("batch_dims")?);
    let (shape, places) = (lowering.shape(x), lowering.shape(numbers));
    let (shape, places) = (shape.expect_array()?, places.expect_array()?);
    if dim >= shape.rank() || batch > dim || batch > places.rank() || shape.dims()[..batch] != places.dims()[..batch] {
        return Err(Error::invalid_argument(format!(
            "dim {dim} and batch_dims {batch} do not fit {shape} and the indices {places}"
        )));
    }
    let mut slice_sizes = shape.dims().to_vec();
    let batching: Vec<usize> = (0..batch).collect();
    for &d in batching.iter().chain([&dim]) {
        slice_sizes[d] = 1;
    }
    // Dimensions before `dim` stay in front; later ones follow the dimensions of the indices.
    let behind = places.rank() - batch;
    let offset_dims = (batch..dim).chain((dim + 1..shape.rank()).map(|d| d + behind - 1)).collect();
    let op = Gather {
        offset_dims,
        collapsed_slice_dims: vec![dim],
        start_index_map: vec![dim],
        operand_batching_dims: batching.clone(),
        start_indices_batching_dims: batching,
        index_vector_dim: places.rank(),
        slice_sizes,
        indices_are_sorted: false,
    };
    lowering.add(op, call.shape(), [x, numbers])
}
