//! Dynamic update slice: writes a slice into an array at run-time indices.

use xla_hlo::Result;
use xla_service::thunks::LoweringContext;

use super::builder::ProgramBuilder;
use crate::device::{Access, Coordinate, Program};

/// Lowers `dynamic-update-slice(array, update, starts...)`.
pub(super) fn lower(cx: &LoweringContext<'_>) -> Result<Option<Program>> {
    let [array, update, starts @ ..] = cx.operands else { return Ok(None) };
    let mut b = ProgramBuilder::new(cx)?;
    copy_unless_in_place(&mut b, cx);
    let (outer, inner) = (array.shape.dims(), update.shape.dims());
    // Either one start operand per dimension, or a single vector of starts.
    let last = starts.len().saturating_sub(1);
    let mut start = |d: usize| b.load_start(2 + d.min(last), d, outer[d] - inner[d]);
    let starts: Vec<Coordinate> = (0..outer.len()).map(&mut start).collect();
    let from = b.loop_over_tiles(inner);
    let to: Vec<Coordinate> = from.iter().zip(&starts).map(|(c, start)| c.clone().plus(start)).collect();
    let tile = b.load(1, &from);
    b.store_within(tile, cx.operands.len(), &to, from.into_iter().zip(inner.iter().copied()).collect());
    b.end_loops(to.len());
    Ok(Some(b.finish()))
}

/// Copies operand 0 to the result before it is updated. Copies nothing if both have the same slice of memory.
pub(super) fn copy_unless_in_place(b: &mut ProgramBuilder, cx: &LoweringContext<'_>) {
    let ([array, ..], [result], to) = (cx.operands, cx.results, cx.operands.len()) else { return };
    if array.slice == result.slice {
        b.set_access(to, Access::Update);
        return;
    }
    let at = b.loop_over_tiles(array.shape.dims());
    let tile = b.load(0, &at);
    b.store(tile, to, &at);
    b.end_loops(at.len());
}
