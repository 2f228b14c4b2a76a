//! Reductions by an associative and commutative operation.

use xla_hlo::ops::{Reduce, combiner_identity, simple_combiner};
use xla_hlo::{InstrId, Result};
use xla_service::thunks::LoweringContext;

use super::builder::ProgramBuilder;
use super::expression::Expression;
use super::reduce_general;
use crate::device::{Coordinate, Program};

/// Lowers a single reduction.
pub(super) fn lower(cx: &LoweringContext<'_>, op: &Reduce) -> Result<Option<Program>> {
    let Some(expression) = Expression::of_instruction(cx) else { return Ok(None) };
    lower_root(cx, expression, op, cx.instruction().operands())
}

/// Lowers a reduction of an expression.
///
/// Lanes follow the operand's memory layout: its two minor dimensions are the rows and columns of a tile. The outer
/// loops run over kept dimensions, the inner loops over reduced ones. The accumulator combines tile by tile. At the end
/// it is reduced over its own rows or columns if these belong to reduced dimensions.
pub(super) fn lower_root(
    cx: &LoweringContext<'_>,
    mut expression: Expression<'_>,
    op: &Reduce,
    operands: &[InstrId],
) -> Result<Option<Program>> {
    let combine = simple_combiner(&cx.module[op.computation]);
    let (&[array, init], Some(combine)) = (operands, combine) else {
        return reduce_general::lower(cx, expression, op, operands);
    };
    let computation = expression.computation();
    let (dims, ty) = match computation[array].shape().as_array() {
        Some(shape) => (shape.dims(), shape.element_type()),
        None => return Ok(None),
    };
    let init_type = computation[init].shape().element_type();
    let Some(identity) = combiner_identity(combine, ty).filter(|_| init_type == Some(ty)) else { return Ok(None) };

    let mut b = ProgramBuilder::new(cx)?;
    let is_reduced = |d: &usize| op.dimensions.contains(d);
    let (reduced, kept): (Vec<usize>, Vec<usize>) = (0..dims.len()).partition(is_reduced);
    let mut at = vec![Coordinate::default(); dims.len()];
    for &d in &kept {
        at[d] = b.loop_over_dimension(dims, d);
    }
    let sum = b.splat(ty, identity);
    for &d in &reduced {
        at[d] = b.loop_over_dimension(dims, d);
    }
    let Some(value) = expression.value(&mut b, array, &at)? else { return Ok(None) };
    // Replace lanes outside the array by the identity.
    let beyond: Vec<(Coordinate, usize)> = reduced.iter().map(|&d| (at[d].clone(), dims[d])).collect();
    let outside = b.splat(ty, identity);
    let value = b.choose(value, outside, beyond);
    b.accumulate(sum, combine, value);
    b.end_loops(reduced.len());
    expression.forget();

    let (rows, columns) = (reduced.iter().any(|&d| at[d].per_row != 0), reduced.iter().any(|&d| at[d].per_column != 0));
    b.reduce(sum, combine, rows, columns);
    let Some(init) = expression.value(&mut b, init, &[])? else { return Ok(None) };
    b.accumulate(sum, combine, init);
    let kept_at: Vec<Coordinate> = kept.iter().map(|&d| at[d].clone()).collect();
    b.store(sum, cx.operands.len(), &kept_at);
    b.end_loops(kept.len());
    Ok(Some(b.finish()))
}
