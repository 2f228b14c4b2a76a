//! Expands triangular solves row by row, or in blocks of rows.

use std::collections::BTreeMap;

use xla_hlo::ops::{BinaryOp, CompareDirection, TransposeKind, TriangularSolve};
use xla_hlo::{Computation, ElementType, InstrId, Module, Op, Opcode, Result, Scalar};

use super::counted::{COUNTER, counted_loop, times};
use super::matrix::{
    conjugate, distance, extended, extended_by_identity, first, part, product, spread, transpose, with_part, zeros_like,
};
use crate::rewrite::builder::Inserter;
use crate::rewrite::graph::is_static;
use crate::rewrite::replace::replace_each;
use crate::{Pass, PassContext};

/// Expands `triangular-solve` into a loop over rows if the target lacks it, or over blocks of rows if the target solves
/// [small matrices](crate::TargetProfile::small_matrices) natively.
///
/// An iteration subtracts the contribution of the known unknowns from a row of the right-hand sides, by a vector-matrix
/// product, and divides by the diagonal. This takes n^2 operations per right-hand side. With blocks, the diagonal is a
/// matrix, and the division is a small solve. Floats narrower than `f32` are computed in `f32` and rounded once.
/// Results differ from the evaluator's, which computes in `f64`, by the rounding of the working type. Division of a
/// complex number by zero has the result of `divide`.
pub struct ExpandTriangularSolves;

impl Pass for ExpandTriangularSolves {
    fn name(&self) -> &'static str {
        "expand-triangular-solves"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let own = &cx.profile().small_matrices;
        if !cx.profile().lacks.contains(&Opcode::TriangularSolve) {
            return Ok(());
        }
        let wanted = |graph: &Computation, id: InstrId| is_lacking(graph, id, own);
        replace_each(self, module, cx, wanted, |at, id| expand(at, id, own))
    }
}

/// Whether the target does not support this case natively.
fn is_lacking(graph: &Computation, id: InstrId, own: &BTreeMap<ElementType, usize>) -> bool {
    let Op::TriangularSolve(op) = graph[id].op() else { return false };
    let as_it_is = op.left_side && op.transpose_a == TransposeKind::NoTranspose;
    is_static(graph, id) && !(as_it_is && super::is_small_matrix(graph, id, own))
}

fn expand(at: &mut Inserter<'_>, id: InstrId, own: &BTreeMap<ElementType, usize>) -> Result<InstrId> {
    let Op::TriangularSolve(op) = at.graph()[id].op().clone() else { return Ok(id) };
    let shape = at.array(id)?.clone();
    let &[a, b] = &at.operands(id)[..] else { return Ok(id) };
    if shape.element_count() == 0 {
        return Ok(b);
    }
    let ty = super::computed_in(shape.element_type());
    let (mut a, mut b) = (at.convert(a, ty)?, at.convert(b, ty)?);
    // `x op(a) = b` is equivalent to `op(a)^T x^T = b^T`.
    let left_side = op.left_side;
    let transposed = (op.transpose_a != TransposeKind::NoTranspose) == op.left_side;
    if transposed {
        a = transpose(at, a)?;
    }
    if op.transpose_a == TransposeKind::Adjoint {
        a = conjugate(at, a)?;
    }
    if !left_side {
        b = transpose(at, b)?;
    }
    let op = TriangularSolve {
        left_side: true,
        lower: op.lower != transposed,
        unit_diagonal: op.unit_diagonal,
        transpose_a: TransposeKind::NoTranspose,
    };
    let mut x = solve(at, a, b, op, own.get(&ty).copied())?;
    if !left_side {
        x = transpose(at, x)?;
    }
    at.convert(x, shape.element_type())
}

/// Returns `x` with `a x = b`; `op` determines the triangle of `a`. `order` is the number of rows of the matrices that
/// the target solves natively, if any.
fn solve(at: &mut Inserter<'_>, a: InstrId, b: InstrId, op: TriangularSolve, order: Option<usize>) -> Result<InstrId> {
    let &[.., n, count] = &at.dims(b)[..] else { return Ok(b) };
    match order {
        None => substitute(at, a, b, &op, 1),
        Some(order) if n <= order => at.add(op, [a, b]),
        Some(order) => {
            let whole = n.next_multiple_of(order);
            let a = extended_by_identity(at, a, whole)?;
            let b = extended(at, b, [whole, count])?;
            let x = substitute(at, a, b, &op, order)?;
            first(at, x, [n, count])
        }
    }
}

/// Solves like [`solve`], in steps of `width` rows.
fn substitute(at: &mut Inserter<'_>, a: InstrId, b: InstrId, op: &TriangularSolve, width: usize) -> Result<InstrId> {
    let &[.., n, count] = &at.dims(b)[..] else { return Ok(b) };
    let x = zeros_like(at, b)?;
    let steps = n / width;
    let state = counted_loop(at, "triangular_solve", steps, &[a, b, x], |at, step, state| {
        let &[a, b, x] = state else { return Ok(state.to_vec()) };
        let number = if op.lower {
            step
        } else {
            let last = at.scalar(COUNTER, Scalar::Signed(steps as i64 - 1))?;
            at.binary(BinaryOp::Subtract, last, step)?
        };
        let i = times(at, number, width)?;
        let rows = part(at, a, [Some(i), None], [width, n])?;
        let rows = known(at, rows, i, op.lower, width)?;
        let explained = product(at, rows, x, false)?;
        let given = part(at, b, [Some(i), None], [width, count])?;
        let mut unknowns = at.binary(BinaryOp::Subtract, given, explained)?;
        if width > 1 || !op.unit_diagonal {
            let diagonal = part(at, a, [Some(i), Some(i)], [width, width])?;
            unknowns = divided(at, unknowns, diagonal, op)?;
        }
        Ok(vec![a, b, with_part(at, x, unknowns, [Some(i), None])?])
    })?;
    Ok(state[2])
}

/// Solves for the unknowns of a block of rows after the contribution of the known ones was subtracted.
fn divided(at: &mut Inserter<'_>, x: InstrId, diagonal: InstrId, op: &TriangularSolve) -> Result<InstrId> {
    let &[.., width, count] = &at.dims(x)[..] else { return Ok(x) };
    if width > 1 {
        return at.add(op.clone(), [diagonal, x]);
    }
    let diagonal = spread(at, diagonal, [1, count])?;
    at.binary(BinaryOp::Divide, x, diagonal)
}

/// Returns `width` rows from `i` on with only the coefficients of unknowns that are already solved. The others may hold
/// any value and are set to zero.
fn known(at: &mut Inserter<'_>, rows: InstrId, i: InstrId, lower: bool, width: usize) -> Result<InstrId> {
    let border =
        if lower || width == 1 { i } else { at.binary_with(BinaryOp::Add, i, Scalar::Signed(width as i64 - 1))? };
    let distance = distance(at, border, rows, false)?;
    let (no_distance, zero) = (zeros_like(at, distance)?, zeros_like(at, rows)?);
    let found = if lower { CompareDirection::Gt } else { CompareDirection::Lt };
    let is_found = at.compare(found, distance, no_distance)?;
    at.select(is_found, rows, zero)
}
