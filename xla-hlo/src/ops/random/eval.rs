//! Meaning of the random family.

use super::*;

pub(super) fn rng_bit_generator(
    op: &RngBitGenerator,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("rng_bit_generator"))
}
