//! Evaluator of the sorting family.

use super::*;
use crate::eval::ScalarFunction;
use crate::ops::checks;
use crate::ops::combiner::reduction_result;

/// Sorts each row stably by merging.
pub(super) fn sort(op: &Sort, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let dims = operands.first().ok_or_else(checks::missing_operand)?.array_shape().dims();
    let count: usize = dims.iter().product();
    // A dimension without elements has no rows, however many its others would make.
    let (length, inner) = match count {
        0 => return reduction_result(shape, operands),
        _ => (dims[op.dimension], dims[op.dimension + 1..].iter().product::<usize>()),
    };
    let mut results = operands.clone();
    let mut comparator = ScalarFunction::new(ev.module(), op.computation)?;
    let mut arguments = Vec::with_capacity(2 * operands.len());
    for row in 0..count / length {
        let first = row / inner * length * inner + row % inner;
        let place = |i: usize| first + i * inner;
        let order = merge_sorted(length, &mut |a, b| {
            arguments.clear();
            arguments.extend(operands.iter().flat_map(|x| [x.get(place(a)), x.get(place(b))]));
            Ok(comparator.call(ev, &arguments)?.first().is_some_and(|answer| answer.as_bool()))
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

/// The numbers below `count` in the order of `precedes`, equal ones ascending. They are all there whatever
/// `precedes` answers.
fn merge_sorted(count: usize, precedes: &mut dyn FnMut(usize, usize) -> Result<bool>) -> Result<Vec<usize>> {
    let mut sorted: Vec<usize> = (0..count).collect();
    let mut merged = Vec::with_capacity(count);
    let mut run = 1;
    while run < count {
        merged.clear();
        for pair in sorted.chunks(2 * run) {
            let (mut left, mut right) = pair.split_at(run.min(pair.len()));
            while let (Some((&l, lefts)), Some((&r, rights))) = (left.split_first(), right.split_first()) {
                if precedes(r, l)? {
                    merged.push(r);
                    right = rights;
                } else {
                    merged.push(l);
                    left = lefts;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(&mut sorted, &mut merged);
        run *= 2;
    }
    Ok(sorted)
}

/// The best of each row, by a stable sort of the whole row.
pub(super) fn top_k(op: &TopK, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [operand] = checks::operands(operands)?;
    let Some([values, places]) = shape.as_tuple() else {
        return Err(Error::internal("the result is not a pair of values and places"));
    };
    let (mut values, mut places) = (Literal::zeros(values.expect_array()?)?, Literal::zeros(places.expect_array()?)?);
    let ty = operand.array_shape().element_type();
    let length = operand.array_shape().dims().last().copied().unwrap_or(0);
    for row in 0..values.array_shape().element_count().checked_div(op.k).unwrap_or(0) {
        let first = row * length;
        let mut keys = Vec::with_capacity(length);
        for i in 0..length {
            let key = order_key(ty, operand.get(first + i));
            let key = key.ok_or_else(|| Error::internal("complex numbers are ordered"))?;
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
