//! Padding by amounts that are values of the program, to a static result shape. Each element of the result is gathered
//! from the operand or is the padding value.

use xla_hlo::ops::{
    Binary, BinaryOp, Broadcast, Compare, CompareDirection, Constant, Convert, Gather, Iota, Op, Reshape, Select,
    Slice, SliceRange,
};
use xla_hlo::{ArrayShape, ElementType, InstrId, Literal, Result, Scalar, Shape};

use super::context::Lowering;

/// Padding of one dimension, as `s64` scalars.
#[derive(Clone, Copy)]
pub(super) struct Amounts {
    /// Number of padding elements before the operand; negative values trim it.
    pub low: InstrId,
    /// Number of padding elements between two elements of the operand.
    pub interior: InstrId,
}

/// Returns the element of `list` at index `place`, as an `s64` scalar.
pub(super) fn element(lowering: &mut Lowering<'_>, list: InstrId, place: &[usize]) -> Result<InstrId> {
    let ty = lowering.shape(list).expect_array()?.element_type();
    let ranges = place.iter().map(|&start| SliceRange { start, limit: start + 1, stride: 1 }).collect();
    let one = lowering.infer(Slice { ranges }, [list])?;
    let one = lowering.add(Reshape { inferred_dimension: None }, Shape::scalar(ty), [one])?;
    if ty == ElementType::S64 { Ok(one) } else { lowering.add(Convert, Shape::scalar(ElementType::S64), [one]) }
}

/// Adds an `s64` scalar constant.
pub(super) fn number(lowering: &mut Lowering<'_>, value: i64) -> Result<InstrId> {
    lowering.infer(Constant { literal: Literal::scalar(ElementType::S64, Scalar::Signed(value)) }, [])
}

/// Pads the static array `x` with a scalar along one dimension to `extent` elements.
pub(super) fn pad(
    lowering: &mut Lowering<'_>,
    [x, value]: [InstrId; 2],
    dimension: usize,
    amounts: Amounts,
    extent: usize,
) -> Result<InstrId> {
    let shape = lowering.shape(x);
    let from = shape.expect_array()?;
    let mut dims = from.dims().to_vec();
    let available = std::mem::replace(&mut dims[dimension], extent);
    let result = ArrayShape::new(from.element_type(), dims);
    result.checked_element_count()?;
    let padding = lowering.add(Broadcast { dimensions: Vec::new() }, Shape::Array(result.clone()), [value])?;
    if available == 0 || extent == 0 {
        return Ok(padding);
    }
    let (places, is_element) = places(lowering, amounts, extent, available)?;
    let others: Vec<usize> = (0..from.rank()).filter(|&d| d != dimension).collect();
    let gather = Gather {
        offset_dims: others,
        collapsed_slice_dims: vec![dimension],
        start_index_map: vec![dimension],
        operand_batching_dims: Vec::new(),
        start_indices_batching_dims: Vec::new(),
        index_vector_dim: 1,
        slice_sizes: from.dims().iter().enumerate().map(|(d, &size)| if d == dimension { 1 } else { size }).collect(),
        indices_are_sorted: false,
    };
    let elements = lowering.add(gather, Shape::Array(result.clone()), [x, places])?;
    let mask = Shape::array(ElementType::Pred, result.dims().to_vec());
    let is_element = lowering.add(Broadcast { dimensions: vec![dimension] }, mask, [is_element])?;
    lowering.add(Select, Shape::Array(result), [is_element, elements, padding])
}

/// Computes, for each index of the padded dimension, the index of its element in the operand and whether that element
/// exists.
fn places(
    lowering: &mut Lowering<'_>,
    amounts: Amounts,
    extent: usize,
    available: usize,
) -> Result<(InstrId, InstrId)> {
    let row = Shape::array(ElementType::S64, [extent]);
    let binary = |lowering: &mut Lowering<'_>, op: BinaryOp, x: InstrId, y: InstrId| {
        lowering.infer(Op::from(Binary { op }), [x, y])
    };
    let spread = |lowering: &mut Lowering<'_>, scalar: InstrId| {
        lowering.add(Broadcast { dimensions: Vec::new() }, row.clone(), [scalar])
    };
    let (zero, one) = (number(lowering, 0)?, number(lowering, 1)?);
    let count = number(lowering, i64::try_from(available).unwrap_or(i64::MAX))?;
    let step = binary(lowering, BinaryOp::Add, amounts.interior, one)?;
    let [low, step, zero, count] =
        [spread(lowering, amounts.low)?, spread(lowering, step)?, spread(lowering, zero)?, spread(lowering, count)?];
    let numbers = lowering.add(Iota { dimension: 0 }, row, [])?;
    let ahead = binary(lowering, BinaryOp::Subtract, numbers, low)?;
    let place = binary(lowering, BinaryOp::Divide, ahead, step)?;
    let rest = binary(lowering, BinaryOp::Remainder, ahead, step)?;
    let compare = |lowering: &mut Lowering<'_>, direction, x, y| lowering.infer(Compare::new(direction), [x, y]);
    let is_behind = compare(lowering, CompareDirection::Ge, ahead, zero)?;
    let is_whole = compare(lowering, CompareDirection::Eq, rest, zero)?;
    let is_inside = compare(lowering, CompareDirection::Lt, place, count)?;
    let is_element = binary(lowering, BinaryOp::And, is_behind, is_whole)?;
    let is_element = binary(lowering, BinaryOp::And, is_element, is_inside)?;
    Ok((place, is_element))
}
