//! Meaning of the window family.

use super::*;

pub(super) fn reduce_window(
    op: &ReduceWindow,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("reduce_window"))
}

pub(super) fn select_and_scatter(
    op: &SelectAndScatter,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let _ = (op, ev, operands, shape);
    Err(Error::unimplemented("select_and_scatter"))
}
