//! Shape rules of the random family.

use super::*;
use crate::{ArrayShape, ElementType};

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

/// Random bits make an integer or, as its pattern, a float.
fn has_patterns(ty: ElementType) -> bool {
    ty.is_integer() || ty.is_float()
}
