//! Reductions over sliding windows.

use xla_hlo::Result;
use xla_hlo::ops::{ReduceWindow, combiner_identity, simple_combiner};
use xla_service::thunks::LoweringContext;

use super::builder::ProgramBuilder;
use crate::device::{Coordinate, Program};

/// Loops over tiles of the result, and for each tile over the elements of the window. Elements in the padding count as
/// the identity.
pub(super) fn lower(cx: &LoweringContext<'_>, op: &ReduceWindow) -> Result<Option<Program>> {
    let ([array, init], [result]) = (cx.operands, cx.results) else { return Ok(None) };
    let (dims, ty) = (array.shape.dims(), array.shape.element_type());
    let Some(combine) = simple_combiner(&cx.module[op.computation]) else { return Ok(None) };
    let Some(identity) = combiner_identity(combine, ty) else { return Ok(None) };
    let is_plain = [init, result].iter().all(|other| other.shape.element_type() == ty);
    if !is_plain || op.window.dims.len() != dims.len() || op.window.dims.iter().any(|dim| dim.base_dilation != 1) {
        return Ok(None);
    }
    let mut b = ProgramBuilder::new(cx)?;
    let at = b.loop_over_tiles(result.shape.dims());
    let sum = b.splat(ty, identity);
    let mut inside = Vec::with_capacity(dims.len());
    for (coordinate, dim) in at.iter().zip(&op.window.dims) {
        let element = Coordinate::of(b.begin_loop(dim.size, 1)).scaled(dim.window_dilation as i64, 0);
        inside.push(coordinate.clone().scaled(dim.stride as i64, -dim.pad_low).plus(&element));
    }
    let (value, outside) = (b.load(0, &inside), b.splat(ty, identity));
    let value = b.choose(value, outside, inside.into_iter().zip(dims.iter().copied()).collect());
    b.accumulate(sum, combine, value);
    b.end_loops(dims.len());
    let init = b.load(1, &[]);
    b.accumulate(sum, combine, init);
    b.store(sum, 2, &at);
    b.end_loops(at.len());
    Ok(Some(b.finish()))
}
