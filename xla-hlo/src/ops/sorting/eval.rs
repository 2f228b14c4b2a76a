//! Evaluator of the sorting family.

use super::*;
use crate::eval::ScalarFunction;
use crate::ops::checks;
use crate::ops::combiner::reduction_result;

/// Sorts each row by a stable merge sort.
pub(super) fn sort(op: &Sort, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let dims = operands.first().ok_or_else(checks::missing_operand)?.array_shape().dims();
    let count: usize = dims.iter().product();
    // If any dimension has size 0, there is nothing to sort, however large the other dimensions are.
    let (length, inner) = match count {
        0 => return reduction_result(shape, operands),
        _ => (dims[op.dimension], dims[op.dimension + 1..].iter().product::<usize>()),
    };
    let mut results = operands.clone();
    let mut comparator = (ScalarFunction::new(ev.module(), op.computation)?, Vec::with_capacity(2 * operands.len()));
    for row in 0..count / length {
        let first = row / inner * length * inner + row % inner;
        let place = |i: usize| first + i * inner;
        let order = merge_sorted(ev, &mut comparator, length, &|a, b, arguments| {
            arguments.extend(operands.iter().flat_map(|x| [x.get(place(a)), x.get(place(b))]));
        })?;
        for (result, operand) in results.iter_mut().zip(&operands) {
            for (to, &from) in order.iter().enumerate() {
                let element = operand.element_bytes(place(from));
                result.bytes_mut()[place(to) * element.len()..][..element.len()].copy_from_slice(element);
            }
        }
    }
    reduction_result(shape, results)
}

/// Sorts the numbers below `count` by the comparator, stably. The result is a permutation even if the comparator is not
/// an order. `arguments` appends the comparator's arguments for two numbers to a vector.
fn merge_sorted(
    ev: &mut Evaluator<'_>,
    comparator: &mut (ScalarFunction, Vec<Scalar>),
    count: usize,
    arguments: &(impl Fn(usize, usize, &mut Vec<Scalar>) + Sync),
) -> Result<Vec<usize>> {
    let mut sorted: Vec<usize> = (0..count).collect();
    let mut merged = sorted.clone();
    let mut run = 1;
    while run < count {
        let length = ev.chunk_length(count, comparator.0.work()).next_multiple_of(2 * run);
        let parts = sorted.chunks(length).zip(merged.chunks_mut(length)).collect();
        ev.for_each(parts, comparator, |ev, (comparator, values), (sorted, merged): (&[usize], &mut [usize])| {
            let mut precedes = |a, b| {
                values.clear();
                arguments(a, b, values);
                Ok(comparator.call(ev, values)?.first().is_some_and(|answer| answer.as_bool()))
            };
            let mut pairs = sorted.chunks(2 * run).zip(merged.chunks_mut(2 * run));
            pairs.try_for_each(|(pair, merged)| merge(pair.split_at(run.min(pair.len())), merged, &mut precedes))
        })?;
        std::mem::swap(&mut sorted, &mut merged);
        run *= 2;
    }
    Ok(sorted)
}

/// Merges two sorted runs into `merged`, whose length is the sum of theirs.
fn merge(
    (mut left, mut right): (&[usize], &[usize]),
    merged: &mut [usize],
    precedes: &mut impl FnMut(usize, usize) -> Result<bool>,
) -> Result<()> {
    for place in merged {
        let takes_right = match (left.first(), right.first()) {
            (Some(&l), Some(&r)) => precedes(r, l)?,
            (first, _) => first.is_none(),
        };
        let from = if takes_right { &mut right } else { &mut left };
        if let Some((&first, rest)) = from.split_first() {
            (*place, *from) = (first, rest);
        }
    }
    Ok(())
}

/// Selects the best elements of each row by a stable sort of the whole row.
pub(super) fn top_k(op: &TopK, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [operand] = checks::operands(operands)?;
    let Some([values, places]) = shape.as_tuple() else {
        return Err(Error::internal("the result of topk is not a pair of values and indices"));
    };
    let (mut values, mut places) = (Literal::zeros(values.expect_array()?)?, Literal::zeros(places.expect_array()?)?);
    let ty = operand.array_shape().element_type();
    let length = operand.array_shape().dims().last().copied().unwrap_or(0);
    for row in 0..values.array_shape().element_count().checked_div(op.k).unwrap_or(0) {
        let first = row * length;
        let mut keys = Vec::with_capacity(length);
        for i in 0..length {
            let key = order_key(ty, operand.get(first + i));
            let key = key.ok_or_else(|| Error::internal("topk cannot order complex numbers"))?;
            keys.push((if op.largest { -key } else { key }, i));
        }
        keys.sort_unstable();
        for (to, (_, from)) in keys.into_iter().take(op.k).enumerate() {
            let to = row * op.k + to;
            let element = operand.element_bytes(first + from);
            values.bytes_mut()[to * element.len()..][..element.len()].copy_from_slice(element);
            places.set(to, Scalar::Signed(from as i64));
        }
    }
    Ok(Literal::tuple(vec![values, places]))
}
