//! Convolutions on the matrix unit: images are rows, output channels columns, and input channels go through the unit.

use xla_hlo::ops::{Convolution, SparsityConfig};
use xla_hlo::{ElementType, Result, Scalar};
use xla_service::thunks::LoweringContext;

use super::builder::ProgramBuilder;
use crate::device::{Coordinate, Program, TILE_COLUMNS, TILE_ROWS};

/// Loops over tiles of images and output channels and over positions of the window; in them, loops over the window and
/// the input channels of the group. Positions are the same for all lanes, so padding is left out as a whole.
pub(super) fn lower(cx: &LoweringContext<'_>, op: &Convolution) -> Result<Option<Program>> {
    let ([input, kernel], [result]) = (cx.operands, cx.results) else { return Ok(None) };
    let types = [input, kernel, result].map(|array| array.shape.element_type());
    let is_one_kind = types.iter().all(|ty| ty.kind() == types[2].kind() && *ty != ElementType::F8E8M0FNU);
    let has_holes = op.window.dims.iter().any(|dim| dim.base_dilation != 1);
    if !is_one_kind || has_holes || op.batch_group_count != 1 || op.sparsity != SparsityConfig::default() {
        return Ok(None);
    }
    let (dims, groups) = (&op.dims, op.feature_group_count);
    let (inputs, kernels, results) = (input.shape.dims(), kernel.shape.dims(), result.shape.dims());
    let channels = kernels[dims.kernel_input_feature];
    let outputs = kernels[dims.kernel_output_feature] / groups;

    let mut b = ProgramBuilder::new(cx)?;
    let mut input_at = vec![Coordinate::default(); inputs.len()];
    let mut kernel_at = vec![Coordinate::default(); kernels.len()];
    let mut at = vec![Coordinate::default(); results.len()];
    let image = Coordinate::of(b.begin_loop(results[dims.output_batch], TILE_ROWS)).per_row(1);
    let group = Coordinate::of(b.begin_loop(groups, 1));
    let output = Coordinate::of(b.begin_loop(outputs, TILE_COLUMNS)).per_column(1);
    at[dims.output_batch] = image.clone();
    at[dims.output_feature] = group.clone().scaled(outputs as i64, 0).plus(&output);
    for &d in &dims.output_spatial {
        at[d] = Coordinate::of(b.begin_loop(results[d], 1));
    }

    let sum = b.splat(types[2], Scalar::zero(types[2]));
    let mut inside = Vec::new();
    for (i, window) in op.window.dims.iter().enumerate() {
        let tap = Coordinate::of(b.begin_loop(window.size, 1));
        let place = at[dims.output_spatial[i]].clone().scaled(window.stride as i64, -window.pad_low);
        let place = place.plus(&tap.clone().scaled(window.window_dilation as i64, 0));
        inside.push((place.clone(), inputs[dims.input_spatial[i]]));
        input_at[dims.input_spatial[i]] = place;
        let last = window.size as i64 - 1;
        kernel_at[dims.kernel_spatial[i]] = if window.reversal { tap.scaled(-1, last) } else { tap };
    }
    let channel = Coordinate::of(b.begin_loop(channels, TILE_ROWS));
    input_at[dims.input_batch] = image;
    input_at[dims.input_feature] = group.scaled(channels as i64, 0).plus(&channel).per_column(1);
    kernel_at[dims.kernel_input_feature] = channel.clone().per_row(1);
    kernel_at[dims.kernel_output_feature] = at[dims.output_feature].clone();

    // Lanes beyond the group's channels, and positions in the padding, are zero on both sides.
    let zero = [types[0], types[1]].map(|ty| b.splat(ty, Scalar::zero(ty)));
    let (x, y) = (b.load(0, &input_at), b.load(1, &kernel_at));
    let x = b.choose(x, zero[0], vec![(channel.per_column(1), channels)]);
    let y = b.choose(y, zero[1], inside);
    b.matmul(sum, x, y);
    b.end_loops(op.window.dims.len() + 1);
    b.store_within(sum, 2, &at, vec![(output, outputs)]);
    b.end_loops(op.window.dims.len() + 3);
    Ok(Some(b.finish()))
}
