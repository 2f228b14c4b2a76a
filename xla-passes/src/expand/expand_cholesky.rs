//! Expands Cholesky factorisations, column by column.

use xla_hlo::ops::{BinaryOp, CompareDirection, UnaryOp};
use xla_hlo::{ArrayShape, ElementType, InstrId, Module, Op, Opcode, Result, Scalar};

use super::counted::counted_loop;
use super::matrix::{conjugate, distance, part, product, spread, transpose, with_part, zeros_like};
use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Puts `cholesky` in terms of a loop over columns, where the target lacks it.
///
/// An iteration takes from a column what the columns in front of it explain, one product of a matrix and a vector, and
/// divides by the root of the pivot: n^3 operations in all, the left-looking form of the method (G. H. Golub and C. F.
/// Van Loan, "Matrix Computations"). Floats narrower than `f32` are computed in `f32` and rounded once. Results differ
/// from the evaluator's, which works in `f64`, by the rounding of the working type.
pub struct ExpandCholesky;

impl Pass for ExpandCholesky {
    fn name(&self) -> &'static str {
        "expand-cholesky"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::expand_lacking(self, Opcode::Cholesky, module, cx, expand)
    }
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let Op::Cholesky(op) = at.graph()[id].op().clone() else { return Ok(id) };
    let shape = at.array(id)?.clone();
    let a = at.operands(id)[0];
    if shape.element_count() == 0 {
        return Ok(a);
    }
    let a = at.convert(a, super::computed_in(shape.element_type()))?;
    let factor = if op.lower {
        lower_factor(at, a)?
    } else {
        // `u^H u = a` is `l l^H = a` with `l = u^H`.
        let a = adjoint(at, a)?;
        let factor = lower_factor(at, a)?;
        adjoint(at, factor)?
    };
    at.convert(factor, shape.element_type())
}

fn adjoint(at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
    let x = transpose(at, x)?;
    conjugate(at, x)
}

/// The factor of the lower triangles; NaN where a matrix is not positive definite.
fn lower_factor(at: &mut Inserter<'_>, a: InstrId) -> Result<InstrId> {
    let shape = at.array(a)?.clone();
    let &[ref batch @ .., n, _] = shape.dims() else { return Ok(a) };
    let factor = at.zeros(&shape)?;
    let valid = at.splat(&ArrayShape::new(ElementType::Pred, [batch, &[1, 1]].concat()), Scalar::Pred(true))?;
    let state = counted_loop(at, "cholesky", n, &[a, factor, valid], |at, j, state| {
        let &[a, factor, valid] = state else { return Ok(state.to_vec()) };
        let (factor, positive) = column(at, a, factor, j, n)?;
        Ok(vec![a, factor, at.binary(BinaryOp::And, valid, positive)?])
    })?;
    let valid = spread(at, state[2], [n, n])?;
    let nan =
        if shape.element_type().is_complex() { Scalar::Complex(f64::NAN, f64::NAN) } else { Scalar::Float(f64::NAN) };
    let nan = at.splat(&shape, nan)?;
    at.select(valid, state[1], nan)
}

/// The factor with its column `j`, and whether the pivot there is positive.
fn column(at: &mut Inserter<'_>, a: InstrId, factor: InstrId, j: InstrId, n: usize) -> Result<(InstrId, InstrId)> {
    let row = part(at, factor, [Some(j), None], [1, n])?;
    let row = conjugate(at, row)?;
    // Columns from `j` on are zero so far.
    let explained = product(at, factor, row, true)?;
    let column = part(at, a, [None, Some(j)], [n, 1])?;
    let rest = at.binary(BinaryOp::Subtract, column, explained)?;
    let pivot = part(at, rest, [Some(j), None], [1, 1])?;
    let pivot = real(at, pivot)?;
    let zero = zeros_like(at, pivot)?;
    let positive = at.compare(CompareDirection::Gt, pivot, zero)?;
    let root = at.unary(UnaryOp::Sqrt, pivot)?;
    let root = spread(at, root, [n, 1])?;
    let (below, diagonal) = scaled(at, rest, root)?;
    let distance = distance(at, j, rest, true)?;
    let (no_distance, zero) = (zeros_like(at, distance)?, zeros_like(at, rest)?);
    let is_below = at.compare(CompareDirection::Lt, distance, no_distance)?;
    let is_diagonal = at.compare(CompareDirection::Eq, distance, no_distance)?;
    let column = at.select(is_diagonal, diagonal, zero)?;
    let column = at.select(is_below, below, column)?;
    Ok((with_part(at, factor, column, [None, Some(j)])?, positive))
}

/// `x` divided by a real `root`, and the root in the type of `x`.
fn scaled(at: &mut Inserter<'_>, x: InstrId, root: InstrId) -> Result<(InstrId, InstrId)> {
    if !at.element_type(x)?.is_complex() {
        return Ok((at.binary(BinaryOp::Divide, x, root)?, root));
    }
    let (re, im) = (at.unary(UnaryOp::Real, x)?, at.unary(UnaryOp::Imag, x)?);
    let (re, im) = (at.binary(BinaryOp::Divide, re, root)?, at.binary(BinaryOp::Divide, im, root)?);
    let zero = zeros_like(at, root)?;
    Ok((at.binary(BinaryOp::Complex, re, im)?, at.binary(BinaryOp::Complex, root, zero)?))
}

fn real(at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
    if at.element_type(x)?.is_complex() { at.unary(UnaryOp::Real, x) } else { Ok(x) }
}
