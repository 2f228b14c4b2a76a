//! Meaning of the dot family.

use super::*;

pub(super) fn dot(op: &Dot, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("dot"))
}
