//! A box written into an array, at a place known when running.

use xla_hlo::Result;
use xla_service::thunks::LoweringContext;

use super::builder::ProgramBuilder;
use crate::device::{Access, Coordinate, Program};

/// `dynamic-update-slice(array, update, starts...)`: where array and result are one place in memory, only the box is written.
pub(super) fn lower(cx: &LoweringContext<'_>) -> Result<Option<Program>> {
    let ([array, update, starts @ ..], [result]) = (cx.operands, cx.results) else { return Ok(None) };
    let mut b = ProgramBuilder::new(cx)?;
    let to = cx.operands.len();
    if array.slice == result.slice {
        b.set_access(to, Access::Update);
    } else {
        let at = b.loop_over_tiles(array.shape.dims());
        let tile = b.load(0, &at);
        b.store(tile, to, &at);
        b.end_loops(at.len());
    }
    let (outer, inner) = (array.shape.dims(), update.shape.dims());
    let limits = outer.iter().zip(inner).map(|(outer, inner)| outer - inner);
    let starts: Vec<_> = limits.zip(2..2 + starts.len()).map(|(limit, tensor)| b.load_index(tensor, limit)).collect();
    let from = b.loop_over_tiles(inner);
    let at: Vec<Coordinate> = from.iter().zip(starts).map(|(c, start)| c.clone().plus(start)).collect();
    // Lanes beyond the update lie inside of the array: they must not be stored.
    let tile = b.load(1, &from);
    let old = b.load(to, &at);
    let tile = b.choose(tile, old, from.into_iter().zip(inner.iter().copied()).collect());
    b.store(tile, to, &at);
    b.end_loops(at.len());
    Ok(Some(b.finish()))
}
