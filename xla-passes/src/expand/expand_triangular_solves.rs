//! Expands triangular solves, one unknown after the other.

use xla_hlo::ops::{BinaryOp, CompareDirection, TransposeKind, TriangularSolve};
use xla_hlo::{InstrId, Module, Op, Opcode, Result, Scalar};

use super::counted::{COUNTER, counted_loop};
use super::matrix::{conjugate, distance, part, product, spread, transpose, with_part, zeros_like};
use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Puts `triangular-solve` in terms of a loop over rows, where the target lacks it.
///
/// An iteration takes from a row of the right-hand sides what the unknowns found so far explain, one product of a
/// vector and a matrix, and divides by the diagonal: n^2 operations for each right-hand side. Floats narrower than
/// `f32` are computed in `f32` and rounded once. Results differ from the evaluator's, which works in `f64`, by the
/// rounding of the working type; a complex number divided by zero is the result of `divide`.
pub struct ExpandTriangularSolves;

impl Pass for ExpandTriangularSolves {
    fn name(&self) -> &'static str {
        "expand-triangular-solves"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::expand_lacking(self, Opcode::TriangularSolve, module, cx, expand)
    }
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let Op::TriangularSolve(op) = at.graph()[id].op().clone() else { return Ok(id) };
    let shape = at.array(id)?.clone();
    let &[a, b] = &at.operands(id)[..] else { return Ok(id) };
    if shape.element_count() == 0 {
        return Ok(b);
    }
    let ty = super::computed_in(shape.element_type());
    let (mut a, mut b) = (at.convert(a, ty)?, at.convert(b, ty)?);
    // `x op(a) = b` is `op(a)^T x^T = b^T`.
    let transposed = (op.transpose_a != TransposeKind::NoTranspose) == op.left_side;
    if transposed {
        a = transpose(at, a)?;
    }
    if op.transpose_a == TransposeKind::Adjoint {
        a = conjugate(at, a)?;
    }
    if !op.left_side {
        b = transpose(at, b)?;
    }
    let mut x = substitute(at, a, b, &TriangularSolve { lower: op.lower != transposed, ..op.clone() })?;
    if !op.left_side {
        x = transpose(at, x)?;
    }
    at.convert(x, shape.element_type())
}

/// The `x` with `a x = b`, of which `op` says which triangle of `a` is meant.
fn substitute(at: &mut Inserter<'_>, a: InstrId, b: InstrId, op: &TriangularSolve) -> Result<InstrId> {
    let &[.., n, count] = &at.dims(b)[..] else { return Ok(b) };
    let x = zeros_like(at, b)?;
    let state = counted_loop(at, "triangular_solve", n, &[a, b, x], |at, step, state| {
        let &[a, b, x] = state else { return Ok(state.to_vec()) };
        let i = if op.lower {
            step
        } else {
            let last = at.scalar(COUNTER, Scalar::Signed(n as i64 - 1))?;
            at.binary(BinaryOp::Subtract, last, step)?
        };
        let row = part(at, a, [Some(i), None], [1, n])?;
        let row = known(at, row, i, op.lower)?;
        let explained = product(at, row, x, false)?;
        let given = part(at, b, [Some(i), None], [1, count])?;
        let mut unknowns = at.binary(BinaryOp::Subtract, given, explained)?;
        if !op.unit_diagonal {
            let diagonal = part(at, a, [Some(i), Some(i)], [1, 1])?;
            let diagonal = spread(at, diagonal, [1, count])?;
            unknowns = at.binary(BinaryOp::Divide, unknowns, diagonal)?;
        }
        Ok(vec![a, b, with_part(at, x, unknowns, [Some(i), None])?])
    })?;
    Ok(state[2])
}

/// Row `i` with the coefficients of unknowns that are found already, the others, which may be anything, zero.
fn known(at: &mut Inserter<'_>, row: InstrId, i: InstrId, lower: bool) -> Result<InstrId> {
    let distance = distance(at, i, row, false)?;
    let (no_distance, zero) = (zeros_like(at, distance)?, zeros_like(at, row)?);
    let found = if lower { CompareDirection::Gt } else { CompareDirection::Lt };
    let is_found = at.compare(found, distance, no_distance)?;
    at.select(is_found, row, zero)
}
