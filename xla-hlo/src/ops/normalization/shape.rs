//! Shape rules of the normalization family.

use super::*;
use crate::ops::checks::{self, ensure};
use crate::{ArrayShape, ElementType};

/// Checks that vectors have one element for each feature and that the gradient has the shape of `x`. Results of the
/// shape of `x` have its element type; result vectors may be written in another float type.
pub(super) fn batch_norm(op: &BatchNorm, cx: &ShapeContext<'_>) -> Result<Shape> {
    let x = cx.array(0)?;
    checks::float("operand 0", x)?;
    ensure!(
        op.feature_index < x.rank(),
        "feature_index {} is not a dimension of operand 0, which is {x}",
        op.feature_index
    );
    let features = x.dims()[op.feature_index];
    let names: &[&str] = match op.kind {
        BatchNormKind::Training => &["scale", "offset"],
        BatchNormKind::Inference => &["scale", "offset", "mean", "variance"],
        BatchNormKind::Grad => &["scale", "mean", "variance"],
    };
    for (i, name) in names.iter().enumerate() {
        let vector = cx.array(i + 1)?;
        checks::float(&format!("the {name}"), vector)?;
        ensure!(
            vector.dims() == [features],
            "the {name} must be a vector of the {features} features of operand 0 ({x}), it is {vector}"
        );
    }
    if op.kind == BatchNormKind::Grad {
        let gradient = cx.array(4)?;
        checks::float("the gradient", gradient)?;
        ensure!(gradient.same_dims(x), "the gradient must have the dimensions of operand 0 ({x}), it is {gradient}");
    }
    let whole = checks::array(x.element_type(), x.dims().to_vec())?;
    if op.kind == BatchNormKind::Inference {
        return Ok(whole);
    }
    let vectors =
        [1, 2].map(|i| Shape::from(ArrayShape::new(written_type(cx, i).unwrap_or(x.element_type()), [features])));
    Ok(Shape::Tuple([whole].into_iter().chain(vectors).collect()))
}

/// Returns the float type that is written for element `i` of the result.
fn written_type(cx: &ShapeContext<'_>, i: usize) -> Option<ElementType> {
    let written = cx.written().ok()?.as_tuple()?.get(i)?.element_type()?;
    written.is_float().then_some(written)
}
