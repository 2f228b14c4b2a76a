//! Shape rules of the random family.

use super::*;
use crate::ops::checks::{self, ensure};
use crate::{ArrayShape, ElementKind, ElementType};

pub(super) fn rng_bit_generator(op: &RngBitGenerator, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (state, written) = (cx.array(0)?, cx.written()?);
    let sizes: &[usize] = match op.algorithm {
        RngAlgorithm::ThreeFry => &[2],
        RngAlgorithm::Philox | RngAlgorithm::Default => &[2, 3],
    };
    let is_state = |shape: &ArrayShape| {
        shape.element_type() == ElementType::U64 && matches!(shape.dims(), [n] if sizes.contains(n))
    };
    if !is_state(state) {
        let allowed: Vec<_> = sizes.iter().map(|n| format!("u64[{n}]")).collect();
        return Err(Error::invalid_argument(format!(
            "the state of rng-bit-generator must be {}, it is {}",
            allowed.join(" or "),
            state.clone().with_layout(None)
        )));
    }
    let state = Shape::from(state.clone().with_layout(None));
    match written.as_tuple() {
        Some([new_state, Shape::Array(bits)]) if new_state.compatible(&state) && has_patterns(bits.element_type()) => {
            Ok(Shape::Tuple(vec![state, bits.clone().with_layout(None).into()]))
        }
        _ => Err(Error::invalid_argument(format!(
            "the result of rng-bit-generator must be ({state}, an array of integers or floats), it is {}",
            written.without_layout()
        ))),
    }
}

/// Whether elements of a type can be made of random bits: integers, and floats by their bit pattern.
fn has_patterns(ty: ElementType) -> bool {
    ty.is_integer() || ty.is_float()
}

/// Returns the written shape. Both parameters must be scalars of its element type.
pub(super) fn rng(op: &Rng, cx: &ShapeContext<'_>) -> Result<Shape> {
    ensure!(cx.operands().len() == 2, "rng takes the 2 parameters of its distribution, not {}", cx.operands().len());
    let result = cx.written_array()?;
    for i in 0..2 {
        let parameter = cx.array(i)?;
        checks::scalar(&format!("parameter {i} of rng"), parameter)?;
        checks::same_element_type((&format!("parameter {i} of rng"), parameter), ("its result", result))?;
    }
    let ty = result.element_type();
    let (allowed, what) = match op.distribution {
        RngDistribution::Uniform => (ty.kind() != ElementKind::Complex, "truth values, integers or floats"),
        RngDistribution::Normal => (ty.is_float(), "floats"),
    };
    ensure!(allowed, "this distribution of rng returns {what}, not {ty}");
    checks::array(ty, result.dims().to_vec())
}

pub(super) fn rng_get_and_update_state(_: &RngGetAndUpdateState, cx: &ShapeContext<'_>) -> Result<Shape> {
    let state = Shape::array(ElementType::U64, [2]);
    let written = cx.written()?;
    ensure!(written.compatible(&state), "rng-get-and-update-state returns u64[2], not {}", written.without_layout());
    Ok(state)
}

pub(super) fn stochastic_convert(_: &StochasticConvert, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (x, random, result) = (cx.array(0)?, cx.array(1)?, cx.written_array()?);
    checks::float("operand 0", x)?;
    ensure!(
        random.element_type().kind() == ElementKind::Unsigned
            && random.element_type().bit_width() == x.element_type().bit_width(),
        "the random bits must be unsigned integers as wide as operand 0 ({x}), they are {random}"
    );
    checks::integer("the result", result)?;
    for (what, other) in [("the random bits", random), ("the result", result)] {
        ensure!(other.same_dims(x), "{what} must have the dimensions of operand 0 ({x}), they are {other}");
    }
    checks::array(result.element_type(), x.dims().to_vec())
}
