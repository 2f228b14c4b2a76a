//! Gather and scatter: loops over windows, whose starts are read into index registers.

use xla_hlo::ops::{Gather, Scatter, simple_combiner};
use xla_hlo::{Computation, Result};
use xla_service::thunks::LoweringContext;

use super::builder::ProgramBuilder;
use super::update::copy_unless_in_place;
use crate::device::{Affine, Coordinate, Program, VectorOp};

/// Lowers a gather: copies windows of operand 0 at the start indices in operand 1. Starts are clamped so that each
/// window fits.
pub(super) fn gather(cx: &LoweringContext<'_>, op: &Gather) -> Result<Option<Program>> {
    let ([array, indices], [result]) = (cx.operands, cx.results) else { return Ok(None) };
    let windows = Windows {
        window_dims: &op.offset_dims,
        dropped_dims: &op.collapsed_slice_dims,
        start_index_map: &op.start_index_map,
        batching_dims: &op.operand_batching_dims,
        indices_batching_dims: &op.start_indices_batching_dims,
        index_vector_dim: op.index_vector_dim,
        beyond: 0,
    };
    let mut b = ProgramBuilder::new(cx)?;
    let places = windows.places(&mut b, array.shape.dims(), indices.shape.rank(), result.shape.dims());
    let value = b.load(0, &places.in_array);
    b.store(value, 2, &places.in_slices);
    b.end_loops(result.shape.rank());
    Ok(Some(b.finish()))
}

/// Lowers a scatter: combines windows of operand 2 into operand 0 at the start indices in operand 1. A window that does
/// not fit is skipped entirely.
pub(super) fn scatter(cx: &LoweringContext<'_>, op: &Scatter) -> Result<Option<Program>> {
    let ([array, indices, updates], [result]) = (cx.operands, cx.results) else { return Ok(None) };
    let ty = result.shape.element_type();
    let combiner = &cx.module[op.computation];
    let combine = simple_combiner(combiner);
    let is_plain = combiner[combiner.root()].shape().element_type() == Some(ty);
    if (combine.is_none() && !replaces(combiner)) || !is_plain || updates.shape.element_type() != ty {
        return Ok(None);
    }
    let windows = Windows {
        window_dims: &op.update_window_dims,
        dropped_dims: &op.inserted_window_dims,
        start_index_map: &op.scatter_dims_to_operand_dims,
        batching_dims: &op.input_batching_dims,
        indices_batching_dims: &op.scatter_indices_batching_dims,
        index_vector_dim: op.index_vector_dim,
        beyond: 1,
    };
    let mut b = ProgramBuilder::new(cx)?;
    copy_unless_in_place(&mut b, cx);
    let places = windows.places(&mut b, array.shape.dims(), indices.shape.rank(), updates.shape.dims());
    let (update, old) = (b.load(2, &places.in_slices), b.load(3, &places.in_array));
    let new = match combine {
        Some(op) => b.vector(ty, VectorOp::Binary(op), vec![old, update]),
        None => update,
    };
    let new = b.choose(new, old, places.bounds);
    b.store(new, 3, &places.in_array);
    b.end_loops(updates.shape.rank());
    Ok(Some(b.finish()))
}

/// Whether a combiner returns the update and ignores the old value.
fn replaces(combiner: &Computation) -> bool {
    matches!(*combiner.parameters(), [_, update] if combiner.root() == update)
}

/// Dimension numbers that gather and scatter have in common, named by their role.
struct Windows<'a> {
    /// Dimensions of the slices (a gather's result, a scatter's updates) that index into a window.
    window_dims: &'a [usize],
    /// Dimensions of the array whose window size is 1 and which the slices omit.
    dropped_dims: &'a [usize],
    /// Dimension of the array to which each component of a start index belongs.
    start_index_map: &'a [usize],
    /// Batching dimensions of the array; the window has size 1 in them.
    batching_dims: &'a [usize],
    /// Batching dimensions of the indices, in the order of `batching_dims`.
    indices_batching_dims: &'a [usize],
    /// Dimension of the indices that holds the components of a start index.
    index_vector_dim: usize,
    /// Distance by which starts may be out of bounds: 0 clamps each window into the array, 1 keeps windows that do not
    /// fit distinguishable.
    beyond: i64,
}

/// Coordinates of the lanes in the array and in the slices.
struct Places {
    /// Coordinates in the array, one per dimension.
    in_array: Vec<Coordinate>,
    /// Coordinates in the slices, one per dimension.
    in_slices: Vec<Coordinate>,
    /// Bounds that mask lanes outside the window and windows that do not fit.
    bounds: Vec<(Coordinate, usize)>,
}

impl Windows<'_> {
    /// Opens a loop for each dimension of the slices, and reads the start indices from operand 1.
    fn places(&self, b: &mut ProgramBuilder, array: &[usize], indices_rank: usize, slices: &[usize]) -> Places {
        let mut in_array = vec![Coordinate::default(); array.len()];
        let mut in_slices = vec![Coordinate::default(); slices.len()];
        let mut index = vec![Affine::default(); indices_rank];
        let mut batch = (0..indices_rank).filter(|&d| d != self.index_vector_dim);
        for d in (0..slices.len()).filter(|d| !self.window_dims.contains(d)) {
            let count = b.begin_loop(slices[d], 1);
            in_slices[d] = Coordinate::of(count);
            if let Some(i) = batch.next() {
                index[i] = Affine::of(count);
            }
        }
        let runs = |d: &usize| !self.dropped_dims.contains(d) && !self.batching_dims.contains(d);
        let array_dims: Vec<usize> = (0..array.len()).filter(runs).collect();
        let mut sizes = vec![1; array.len()];
        array_dims.iter().zip(self.window_dims).for_each(|(&d, &s)| sizes[d] = slices[s]);

        let mut bounds = Vec::new();
        for (component, &d) in self.start_index_map.iter().enumerate() {
            if let Some(at) = index.get_mut(self.index_vector_dim) {
                *at = Affine::constant(component as i64);
            }
            let fitting = (array[d] + 1).saturating_sub(sizes[d]);
            let range = -self.beyond..=fitting as i64 - 1 + self.beyond;
            in_array[d] = b.load_index(1, index.clone(), range);
            bounds.push((in_array[d].clone(), fitting));
        }
        for (&d, &i) in self.batching_dims.iter().zip(self.indices_batching_dims) {
            in_array[d] = Coordinate { start: index[i].clone(), ..Coordinate::default() };
        }
        let window: Vec<usize> = array_dims.iter().map(|&d| sizes[d]).collect();
        for ((&d, &s), lanes) in array_dims.iter().zip(self.window_dims).zip(b.loop_over_tiles(&window)) {
            bounds.push((lanes.clone(), sizes[d]));
            in_array[d] = in_array[d].clone().plus(&lanes);
            in_slices[s] = lanes;
        }
        Places { in_array, in_slices, bounds }
    }
}
