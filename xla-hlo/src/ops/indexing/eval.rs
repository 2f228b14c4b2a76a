//! Meaning of the indexing family.

use super::*;

pub(super) fn gather(op: &Gather, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("gather"))
}

pub(super) fn scatter(op: &Scatter, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("scatter"))
}
