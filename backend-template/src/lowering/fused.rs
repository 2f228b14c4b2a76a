//! Elementwise operations and data movement as kernels: loops over the tiles of the result.

use xla_hlo::ops::Fusion;
use xla_hlo::{InstrId, Op, Result};
use xla_service::thunks::LoweringContext;

use super::builder::ProgramBuilder;
use super::expression::Expression;
use super::reduce;
use crate::device::Program;

/// Lowers a single instruction.
pub(super) fn lower(cx: &LoweringContext<'_>) -> Result<Option<Program>> {
    let Some(expression) = Expression::of_instruction(cx) else { return Ok(None) };
    tiles(cx, expression, &[cx.instruction])
}

/// Lowers a fusion: its root, or each element if the root is a tuple.
pub(super) fn lower_fusion(cx: &LoweringContext<'_>, op: &Fusion) -> Result<Option<Program>> {
    let Some(expression) = Expression::of_fusion(cx.module, op.computation, cx) else { return Ok(None) };
    let computation = expression.computation();
    let root = &computation[computation.root()];
    match root.op() {
        Op::Reduce(op) => reduce::lower_root(cx, expression, op, root.operands()),
        Op::Tuple(_) => tiles(cx, expression, root.operands()),
        _ => tiles(cx, expression, &[computation.root()]),
    }
}

/// Computes `roots`, which all have the same dimensions, tile by tile, and stores them to the results.
fn tiles(cx: &LoweringContext<'_>, mut expression: Expression<'_>, roots: &[InstrId]) -> Result<Option<Program>> {
    let Some(first) = cx.results.first() else { return Ok(None) };
    let dims = first.shape.dims();
    if roots.len() != cx.results.len() || cx.results.iter().any(|result| result.shape.dims() != dims) {
        return Ok(None);
    }
    let mut b = ProgramBuilder::new(cx)?;
    let at = b.loop_over_tiles(dims);
    let mut values = Vec::with_capacity(roots.len());
    for &root in roots {
        let Some(value) = expression.value(&mut b, root, &at)? else { return Ok(None) };
        values.push(value);
    }
    for (value, tensor) in values.into_iter().zip(cx.operands.len()..) {
        b.store(value, tensor, &at);
    }
    b.end_loops(dims.len());
    Ok(Some(b.finish()))
}
