//! Evaluator of the control flow family.

use super::*;
use crate::Scalar;
use crate::eval::ScalarFunction;

pub(super) fn while_loop(op: &While, ev: &mut Evaluator<'_>, operands: Vec<Literal>, _: &Shape) -> Result<Literal> {
    let mut state = first(operands)?;
    // The clone of the state is dropped when the condition returns, so that the body may update the state in place.
    while is_true(&ev.call(op.condition, vec![state.clone()])?)? {
        state = ev.call(op.body, vec![state])?;
    }
    Ok(state)
}

pub(super) fn conditional(
    op: &Conditional,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    _: &Shape,
) -> Result<Literal> {
    let mut operands = operands.into_iter();
    let selector = operands.next().ok_or_else(|| Error::internal("the selector of a conditional is missing"))?;
    let branch = branch(op, &selector)?;
    let (Some(&computation), Some(operand)) = (op.branches.get(branch), operands.nth(branch)) else {
        return Err(Error::internal(format!("branch {branch} has no computation or no operand")));
    };
    ev.call(computation, vec![operand])
}

/// Returns the index of the selected branch: true selects branch 0, and an index out of range selects the last branch.
fn branch(op: &Conditional, selector: &Literal) -> Result<usize> {
    match selector.get(0) {
        Scalar::Pred(p) => Ok(usize::from(!p)),
        index => {
            let last = op.branches.len().saturating_sub(1);
            let index =
                index.as_i128().ok_or_else(|| Error::internal("the selector of a conditional is not an integer"))?;
            Ok(usize::try_from(index).unwrap_or(last).min(last))
        }
    }
}

pub(super) fn call(op: &Call, ev: &mut Evaluator<'_>, operands: Vec<Literal>, _: &Shape) -> Result<Literal> {
    ev.call(op.computation, operands)
}

pub(super) fn map(op: &Map, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let mut function = ScalarFunction::new(ev.module(), op.computation)?;
    let mut results = [Literal::zeros(shape.expect_array()?)?];
    ev.fill(&mut results, function.work(), &mut function, |ev, function, mut chunk| {
        let mut arguments = Vec::with_capacity(operands.len());
        for i in chunk.range.clone() {
            arguments.clear();
            arguments.extend(operands.iter().map(|operand| operand.get(i)));
            chunk.set(i, function.call(ev, &arguments)?);
        }
        Ok(())
    })?;
    let [result] = results;
    Ok(result)
}

pub(super) fn fusion(op: &Fusion, ev: &mut Evaluator<'_>, operands: Vec<Literal>, _: &Shape) -> Result<Literal> {
    ev.call(op.computation, operands)
}

fn first(operands: Vec<Literal>) -> Result<Literal> {
    operands.into_iter().next().ok_or_else(|| Error::internal("the operand is missing"))
}

fn is_true(condition: &Literal) -> Result<bool> {
    match condition.get(0) {
        Scalar::Pred(p) => Ok(p),
        other => Err(Error::internal(format!("the condition of a loop returned {other:?}, not a boolean"))),
    }
}
