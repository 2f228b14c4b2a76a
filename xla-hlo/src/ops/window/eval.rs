//! Evaluator of the window family.

use super::lines::reduces_separably;
use super::positions::Windows;
use super::*;
use crate::ops::checks;
use crate::ops::combiner::{Combiner, ReduceOperands, reduction_outputs, reduction_result};

/// Reduces the elements in each window, once from the initial value. Padding and dilation holes are skipped.
pub(super) fn reduce_window(
    op: &ReduceWindow,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let ReduceOperands { arrays, inits } = ReduceOperands::new(operands);
    let types: Vec<_> = arrays.iter().map(|a| a.array_shape().element_type()).collect();
    let mut combiner = Combiner::new(ev, op.computation, &types)?;
    let inits = combiner.accumulators(&inits);
    let mut outputs = reduction_outputs(shape)?;
    let (Some(array), Some(output)) = (arrays.first(), outputs.first()) else {
        return Err(checks::missing_operand());
    };
    let windows = Windows::new(&op.window, array, output.array_shape().dims())?;
    if let Some(order) = op.dimension_order(ev.module(), windows.base, &windows.output) {
        let sums = reduces_separably(&windows, &order, array, |a, b| combiner.pair(ev, a, b))?;
        ev.fill(&mut outputs, combiner.work(), &mut combiner, |ev, combiner, mut chunk| {
            for i in chunk.range.clone() {
                chunk.set(i, &[sums[i].map_or(Ok(inits[0]), |sum| combiner.step(ev, inits[0], sum))?]);
            }
            Ok(())
        })?;
        return reduction_result(shape, outputs);
    }
    let elements = windows.dims.iter().fold(1usize, |n, dim| n.saturating_mul(dim.size));
    let work = combiner.work().map(|work| work.saturating_mul(elements));
    ev.fill(&mut outputs, work, &mut combiner, |ev, combiner, mut chunk| {
        windows.for_each_of(chunk.range.clone(), |i, window| {
            let mut accumulators = inits.clone();
            window.for_each(|at| combiner.combine(ev, &mut accumulators, arrays.iter().map(|array| array.get(at))))?;
            chunk.set(i, &accumulators);
            Ok(())
        })
    })?;
    reduction_result(shape, outputs)
}

/// Visits the windows in row-major order. In each window, a scan keeps the current element if `select(current, next)`
/// is true, and otherwise takes the next one. The source's value is scattered to the element that remains.
pub(super) fn select_and_scatter(
    op: &SelectAndScatter,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let [operand, source, init] = checks::operands(operands)?;
    let ty = operand.array_shape().element_type();
    let mut select = Combiner::new(ev, op.select, &[ty])?;
    let mut scatter = Combiner::new(ev, op.scatter, &[source.array_shape().element_type()])?;
    let mut result = Literal::splat(shape.expect_array()?, scatter.accumulators(&[init.get(0)])[0])?;
    let windows = Windows::new(&op.window, &operand, source.array_shape().dims())?;
    windows.for_each(|i, window| {
        let mut chosen: Option<usize> = None;
        window.for_each(|candidate| {
            let stays = match chosen {
                Some(current) => select.step(ev, operand.get(current), operand.get(candidate))?.as_bool(),
                None => false,
            };
            if !stays {
                chosen = Some(candidate);
            }
            Ok(())
        })?;
        if let Some(at) = chosen {
            let value = scatter.step(ev, result.get(at), source.get(i))?;
            result.set(at, value);
        }
        Ok(())
    })?;
    Ok(result)
}
