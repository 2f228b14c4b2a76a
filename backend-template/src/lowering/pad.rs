//! Interior padding: fills the result with the padding value, then stores the elements with gaps. Padding without
//! interior is lowered by `expression.rs`.

use xla_hlo::Result;
use xla_hlo::ops::Pad;
use xla_service::thunks::LoweringContext;

use super::builder::ProgramBuilder;
use crate::device::{Coordinate, Program};

/// Fills the result with operand 1, then stores operand 0 with gaps.
pub(super) fn lower(cx: &LoweringContext<'_>, op: &Pad) -> Result<Option<Program>> {
    let ([array, _], [result]) = (cx.operands, cx.results) else { return Ok(None) };
    let mut b = ProgramBuilder::new(cx)?;
    let all = b.loop_over_tiles(result.shape.dims());
    let padding = b.load(1, &[]);
    b.store(padding, 2, &all);
    b.end_loops(all.len());
    let from = b.loop_over_tiles(array.shape.dims());
    let spread = from.iter().zip(&op.dims);
    let to: Vec<Coordinate> = spread.map(|(c, dim)| c.clone().scaled(dim.interior as i64 + 1, dim.low)).collect();
    let tile = b.load(0, &from);
    b.store_within(tile, 2, &to, from.into_iter().zip(array.shape.dims().iter().copied()).collect());
    b.end_loops(to.len());
    Ok(Some(b.finish()))
}
