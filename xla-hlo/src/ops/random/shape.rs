//! Shape rules of the random family.

use super::*;

pub(super) fn rng_bit_generator(op: &RngBitGenerator, cx: &ShapeContext<'_>) -> Result<Shape> {
    let _ = (op, cx);
    Err(Error::unimplemented("rng_bit_generator"))
}
