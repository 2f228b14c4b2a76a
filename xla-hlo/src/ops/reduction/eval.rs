//! Meaning of the reduction family.

use super::*;

pub(super) fn reduce(op: &Reduce, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("reduce"))
}
