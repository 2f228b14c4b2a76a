//! Shape rules of the sorting family.

use super::*;
use crate::ops::checks::{self, ensure};

/// Returns the shapes of the operands, which must have the same dimensions.
pub(super) fn sort(op: &Sort, cx: &ShapeContext<'_>) -> Result<Shape> {
    let first = cx.array(0)?;
    ensure!(
        op.dimension < first.rank(),
        "the sorted dimension {} is not one of the {} dimensions of operand 0, {first}",
        op.dimension,
        first.rank()
    );
    let mut arrays = Vec::with_capacity(cx.operands().len());
    for i in 0..cx.operands().len() {
        let array = cx.array(i)?;
        ensure!(
            array.same_dims(first),
            "arrays that are sorted together must have the same dimensions, but operand 0 is {first} and operand {i} is {array}"
        );
        arrays.push(array);
    }
    let scalars: Vec<Shape> = arrays.iter().flat_map(|a| [a, a]).map(|a| Shape::scalar(a.element_type())).collect();
    cx.expect_parameters(op.computation, &scalars.iter().collect::<Vec<_>>())?;
    let answer = cx.result_shape(op.computation)?;
    ensure!(
        answer.compatible(&Shape::scalar(ElementType::Pred)),
        "the comparator {} must return pred[], it returns {}",
        cx.computation(op.computation)?.name(),
        answer.without_layout()
    );
    let mut results: Vec<Shape> = arrays.into_iter().map(|a| a.clone().with_layout(None).into()).collect();
    match results.pop() {
        Some(only) if results.is_empty() => Ok(only),
        last => {
            results.extend(last);
            Ok(Shape::Tuple(results))
        }
    }
}

/// Returns the shapes of the values and their indices, with `k` elements in the last dimension.
pub(super) fn top_k(op: &TopK, cx: &ShapeContext<'_>) -> Result<Shape> {
    let operand = cx.array(0)?;
    let ty = operand.element_type();
    ensure!(!ty.is_complex(), "complex numbers have no order, so topk cannot take {operand}");
    let mut dims = operand.dims().to_vec();
    let Some(last) = dims.last_mut() else {
        return Err(Error::invalid_argument(format!("topk takes an array of at least one dimension, not {operand}")));
    };
    ensure!(op.k <= *last, "k={} must not exceed the size {last} of the last dimension of {operand}", op.k);
    ensure!(
        *last <= 1 << 31,
        "topk returns indices as s32, which cannot number the {last} elements of the last dimension of {operand}"
    );
    *last = op.k;
    Ok(Shape::Tuple(vec![checks::array(ty, dims.clone())?, checks::array(ElementType::S32, dims)?]))
}
