//! Expands Cholesky factorizations column by column, or in blocks of columns.

use std::collections::BTreeMap;

use xla_hlo::ops::{BinaryOp, Cholesky, CompareDirection, TransposeKind, TriangularSolve, UnaryOp};
use xla_hlo::{ArrayShape, Computation, ElementType, InstrId, Module, Op, Opcode, Result, Scalar};

use super::counted::{counted_loop, times};
use super::matrix::{
    adjoint, conjugate, distance, extended_by_identity, first, part, product, spread, with_part, zeros_like,
};
use crate::rewrite::builder::Inserter;
use crate::rewrite::graph::is_static;
use crate::rewrite::replace::replace_each;
use crate::{Pass, PassContext};

/// Expands `cholesky` into a loop over columns if the target lacks it, or over blocks of columns if the target factors
/// [small matrices](crate::TargetProfile::small_matrices) natively.
///
/// An iteration subtracts the contribution of the preceding columns from a column, by a matrix-vector product, and
/// divides by the root of the pivot. This takes n^3 operations in total. It is the left-looking variant of the
/// algorithm (G. H. Golub and C. F. Van Loan, "Matrix Computations"). With blocks, the pivot is a matrix, its root is a
/// Cholesky factor, and the division is a triangular solve. Floats narrower than `f32` are computed in `f32` and
/// rounded once. Results differ from the evaluator's, which computes in `f64`, by the rounding of the working type.
pub struct ExpandCholesky;

impl Pass for ExpandCholesky {
    fn name(&self) -> &'static str {
        "expand-cholesky"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let own = &cx.profile().small_matrices;
        if !cx.profile().lacks.contains(&Opcode::Cholesky) {
            return Ok(());
        }
        let wanted = |graph: &Computation, id: InstrId| is_lacking(graph, id, own);
        replace_each(self, module, cx, wanted, |at, id| expand(at, id, own))
    }
}

/// Whether the target does not support this case natively.
fn is_lacking(graph: &Computation, id: InstrId, own: &BTreeMap<ElementType, usize>) -> bool {
    let Op::Cholesky(op) = graph[id].op() else { return false };
    is_static(graph, id) && !(op.lower && super::is_small_matrix(graph, id, own))
}

fn expand(at: &mut Inserter<'_>, id: InstrId, own: &BTreeMap<ElementType, usize>) -> Result<InstrId> {
    let Op::Cholesky(op) = at.graph()[id].op().clone() else { return Ok(id) };
    let shape = at.array(id)?.clone();
    let a = at.operands(id)[0];
    if shape.element_count() == 0 {
        return Ok(a);
    }
    let ty = super::computed_in(shape.element_type());
    let order = own.get(&ty).copied();
    let a = at.convert(a, ty)?;
    let factor = if op.lower {
        lower_factor(at, a, order)?
    } else {
        // `u^H u = a` is `l l^H = a` with `l = u^H`.
        let a = adjoint(at, a)?;
        let factor = lower_factor(at, a, order)?;
        adjoint(at, factor)?
    };
    at.convert(factor, shape.element_type())
}

/// Returns the lower-triangular factor; NaN if a matrix is not positive definite. `order` is the number of rows of the
/// matrices that the target factors natively, if any.
fn lower_factor(at: &mut Inserter<'_>, a: InstrId, order: Option<usize>) -> Result<InstrId> {
    let &[.., n, _] = &at.dims(a)[..] else { return Ok(a) };
    match order {
        None => factor_loop(at, a, 1, column),
        Some(order) if n <= order => at.add(Cholesky { lower: true }, [a]),
        Some(order) => {
            let whole = extended_by_identity(at, a, n.next_multiple_of(order))?;
            let factor = factor_loop(at, whole, order, |at, a, factor, j| block(at, a, factor, j, order))?;
            first(at, factor, [n, n])
        }
    }
}

/// Computes the factor in steps of `width` columns. From the matrices, the factor so far and the index of the first new
/// column, `step` returns the factor with its next columns, and whether their pivots are positive.
fn factor_loop(
    at: &mut Inserter<'_>,
    a: InstrId,
    width: usize,
    step: impl FnOnce(&mut Inserter<'_>, InstrId, InstrId, InstrId) -> Result<(InstrId, InstrId)>,
) -> Result<InstrId> {
    let shape = at.array(a)?.clone();
    let &[ref batch @ .., n, _] = shape.dims() else { return Ok(a) };
    let factor = at.zeros(&shape)?;
    let valid = at.splat(&ArrayShape::new(ElementType::Pred, [batch, &[1, 1]].concat()), Scalar::Pred(true))?;
    let state = counted_loop(at, "cholesky", n / width, &[a, factor, valid], |at, number, state| {
        let &[a, factor, valid] = state else { return Ok(state.to_vec()) };
        let j = times(at, number, width)?;
        let (factor, positive) = step(at, a, factor, j)?;
        Ok(vec![a, factor, at.binary(BinaryOp::And, valid, positive)?])
    })?;
    let valid = spread(at, state[2], [n, n])?;
    let nan =
        if shape.element_type().is_complex() { Scalar::Complex(f64::NAN, f64::NAN) } else { Scalar::Float(f64::NAN) };
    let nan = at.splat(&shape, nan)?;
    at.select(valid, state[1], nan)
}

/// Adds the block of columns that starts at `j` to the factor. The target factors the pivot, a matrix of `order` rows.
fn block(at: &mut Inserter<'_>, a: InstrId, factor: InstrId, j: InstrId, order: usize) -> Result<(InstrId, InstrId)> {
    let rest = unexplained(at, a, factor, j, order)?;
    let pivot = part(at, rest, [Some(j), None], [order, order])?;
    let pivot = at.add(Cholesky { lower: true }, [pivot])?;
    // `x l^H = rest` is equivalent to `l x^H = rest^H`.
    let rest = adjoint(at, rest)?;
    let solve =
        TriangularSolve { left_side: true, lower: true, unit_diagonal: false, transpose_a: TransposeKind::NoTranspose };
    let columns = at.add(solve, [pivot, rest])?;
    let columns = adjoint(at, columns)?;
    let distance = distance(at, j, columns, true)?;
    let (no_distance, zero) = (zeros_like(at, distance)?, zeros_like(at, columns)?);
    let is_below = at.compare(CompareDirection::Lt, distance, no_distance)?;
    let columns = at.select(is_below, columns, zero)?;
    let columns = with_part(at, columns, pivot, [Some(j), None])?;
    // The native factorization returns NaN for a matrix that is not positive definite.
    let corner = part(at, pivot, [None, None], [1, 1])?;
    let corner = real(at, corner)?;
    let positive = at.compare(CompareDirection::Eq, corner, corner)?;
    Ok((with_part(at, factor, columns, [None, Some(j)])?, positive))
}

/// Returns the columns from `j` on minus the contribution of the preceding columns.
fn unexplained(at: &mut Inserter<'_>, a: InstrId, factor: InstrId, j: InstrId, count: usize) -> Result<InstrId> {
    let &[.., n, _] = &at.dims(a)[..] else { return Ok(a) };
    let rows = part(at, factor, [Some(j), None], [count, n])?;
    let rows = conjugate(at, rows)?;
    // The columns of the factor from `j` on are still zero.
    let explained = product(at, factor, rows, true)?;
    let columns = part(at, a, [None, Some(j)], [n, count])?;
    at.binary(BinaryOp::Subtract, columns, explained)
}

/// Adds column `j` to the factor. Also returns whether its pivot is positive.
fn column(at: &mut Inserter<'_>, a: InstrId, factor: InstrId, j: InstrId) -> Result<(InstrId, InstrId)> {
    let rest = unexplained(at, a, factor, j, 1)?;
    let &[.., n, _] = &at.dims(rest)[..] else { return Ok((factor, rest)) };
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

/// Returns `x` divided by a real `root`, and the root in the type of `x`.
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
