//! Transposes and broadcasts, expressed by HLO's more restricted operations.

use xla_hlo::ops::{Broadcast, Reshape, Transpose};
use xla_hlo::{InstrId, Layout, Literal, Result, Shape};

use super::context::Lowering;

/// Adds a transpose to `shape`, with the layout that makes it a bitcast, as XLA's shape inference does.
pub(super) fn transpose(
    lowering: &mut Lowering<'_>,
    x: InstrId,
    shape: Shape,
    permutation: Vec<usize>,
) -> Result<InstrId> {
    if permutation.iter().enumerate().all(|(d, &from)| d == from) {
        return Ok(x);
    }
    let from = lowering.shape(x);
    let from = from.expect_array()?;
    let row_major = Layout::row_major(from.rank());
    let order = &from.layout().unwrap_or(&row_major).minor_to_major;
    let place = |d: &usize| permutation.iter().position(|from| from == d);
    let shape = match (shape, order.iter().map(place).collect::<Option<Vec<usize>>>()) {
        (Shape::Array(array), Some(order)) => array.with_layout(Some(Layout::from_minor_to_major(order))).into(),
        (shape, _) => shape,
    };
    lowering.add(Transpose { permutation }, shape, [x])
}

/// Broadcasts `x` to the shape `result`, with dimension `d` of `x` mapped to `dimensions[d]`. Dimensions of extent 1
/// are repeated as needed.
///
/// HLO's broadcast neither repeats dimensions of extent 1 nor transposes. Therefore, `x` is first transposed to the
/// order of the result, dimensions that repeat are removed by a reshape, and the broadcast adds them again. If no
/// element is repeated, the result is a reshape.
pub(super) fn repeat(
    lowering: &mut Lowering<'_>,
    mut x: InstrId,
    result: Shape,
    mut dimensions: Vec<usize>,
) -> Result<InstrId> {
    let to = result.expect_array()?;
    let literal = lowering.literal(x).filter(|literal| literal.array_shape().element_type() == to.element_type());
    if let Some(value) = literal.and_then(|literal| literal.uniform()).filter(|_| to.is_static()) {
        return lowering.constant(Literal::splat(to, value)?);
    }
    if !dimensions.is_sorted() {
        let mut permutation: Vec<usize> = (0..dimensions.len()).collect();
        permutation.sort_by_key(|&d| dimensions[d]);
        let from = lowering.shape(x);
        let dims: Vec<usize> =
            permutation.iter().map(|&d| from.expect_array().map(|from| from.dims()[d])).collect::<Result<_>>()?;
        x = transpose(lowering, x, Shape::array(from.expect_array()?.element_type(), dims), permutation)?;
        dimensions.sort_unstable();
    }
    let from = lowering.shape(x);
    let from = from.expect_array()?;
    let ty = from.element_type();
    let repeats = |d: usize| from.dims()[d] == 1 && to.dims()[dimensions[d]] != 1;
    let is_static = from.is_static() && to.is_static();
    if is_static && from.dims() == to.dims() {
        return Ok(x);
    }
    if is_static && from.element_count() == to.element_count() {
        return lowering.add(Reshape { inferred_dimension: None }, result, [x]);
    }
    if !(0..from.rank()).any(repeats) {
        return lowering.add(Broadcast { dimensions }, result, [x]);
    }
    let mut kept: Vec<usize> = (0..to.rank()).collect();
    kept.retain(|d| !dimensions.iter().position(|to| to == d).is_some_and(repeats));
    let mut dims = to.dims().to_vec();
    (0..from.rank()).filter(|&d| repeats(d)).for_each(|d| dims[dimensions[d]] = 1);
    x = lowering.add(Broadcast { dimensions }, Shape::array(ty, dims), [x])?;
    let dims: Vec<usize> = kept.iter().map(|&d| to.dims()[d]).collect();
    x = lowering.add(Reshape { inferred_dimension: None }, Shape::array(ty, dims), [x])?;
    lowering.add(Broadcast { dimensions: kept }, result, [x])
}
