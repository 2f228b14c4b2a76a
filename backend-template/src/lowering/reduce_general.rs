//! Reductions of several arrays by any scalar computation: each lane computes its own result, combining one element at
//! a time.

use xla_hlo::ops::Reduce;
use xla_hlo::{ElementType, InstrId, Op, Result};
use xla_service::thunks::LoweringContext;

use super::builder::ProgramBuilder;
use super::expression::Expression;
use crate::device::{Coordinate, Program, Register};

/// Lowers a reduction of expressions. `operands` holds the arrays, followed by their initial values.
///
/// Lanes cover the kept dimensions. The loops run over the reduced dimensions in row-major order.
pub(super) fn lower(
    cx: &LoweringContext<'_>,
    mut expression: Expression<'_>,
    op: &Reduce,
    operands: &[InstrId],
) -> Result<Option<Program>> {
    let computation = expression.computation();
    let combiner = &cx.module[op.computation];
    let (arrays, inits) = operands.split_at(operands.len() / 2);
    let type_of = |id: &InstrId| computation[*id].shape().element_type();
    let types: Vec<Option<ElementType>> = arrays.iter().map(type_of).collect();
    let taken = combiner.parameters().iter().map(|&p| combiner[p].shape().element_type());
    if !inits.iter().map(type_of).eq(types.iter().copied()) || !taken.eq([&types[..], &types[..]].concat()) {
        return Ok(None);
    }
    let Some(dims) = computation[arrays[0]].shape().as_array().map(|array| array.dims()) else { return Ok(None) };
    let (reduced, kept): (Vec<usize>, Vec<usize>) = (0..dims.len()).partition(|d| op.dimensions.contains(d));

    let mut b = ProgramBuilder::new(cx)?;
    let mut at = vec![Coordinate::default(); dims.len()];
    let kept_dims: Vec<usize> = kept.iter().map(|&d| dims[d]).collect();
    let lanes = b.loop_over_tiles(&kept_dims);
    kept.iter().zip(&lanes).for_each(|(&d, lanes)| at[d] = lanes.clone());
    let mut accumulators: Vec<Register> = Vec::with_capacity(inits.len());
    for &init in inits {
        let Some(value) = expression.value(&mut b, init, &[])? else { return Ok(None) };
        accumulators.push(b.copied(value));
    }
    expression.forget();
    for &d in &reduced {
        at[d] = Coordinate::of(b.begin_loop(dims[d], 1));
    }
    let mut arguments = accumulators.clone();
    for &array in arrays {
        let Some(value) = expression.value(&mut b, array, &at)? else { return Ok(None) };
        arguments.push(value);
    }
    let mut combine = Expression::of_values(combiner, &arguments);
    let root = &combiner[combiner.root()];
    let results = if matches!(root.op(), Op::Tuple(_)) { root.operands() } else { &[combiner.root()] };
    let mut next = Vec::with_capacity(results.len());
    for &result in results {
        let Some(value) = combine.value(&mut b, result, &[])? else { return Ok(None) };
        next.push(b.copied(value));
    }
    accumulators.iter().zip(next).for_each(|(&accumulator, next)| b.assign(accumulator, next));
    b.end_loops(reduced.len());
    for (accumulator, tensor) in accumulators.into_iter().zip(cx.operands.len()..) {
        b.store(accumulator, tensor, &lanes);
    }
    b.end_loops(kept.len());
    Ok(Some(b.finish()))
}
