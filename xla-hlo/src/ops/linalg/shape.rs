//! Shape rules of the linear algebra family.

use super::*;
use crate::ArrayShape;
use crate::ops::checks::{self, ensure};

/// Returns the shape of the operand, whose matrices must be square.
pub(super) fn cholesky(cx: &ShapeContext<'_>) -> Result<Shape> {
    let a = cx.array(0)?;
    square("the operand", a)?;
    numbers("the operand", a)?;
    checks::array(a.element_type(), a.dims().to_vec())
}

/// Returns the shape of operand 1. The number of rows of each of its matrices (or columns, if the unknown is on the
/// left) must equal the size of operand 0's matrices.
pub(super) fn triangular_solve(op: &TriangularSolve, cx: &ShapeContext<'_>) -> Result<Shape> {
    triangular_solve_of(op, cx.array(0)?, cx.array(1)?)
}

/// Returns the shape of a triangular solve like [`triangular_solve`], for operands that are not in a shape context.
pub(in crate::ops) fn triangular_solve_of(op: &TriangularSolve, a: &ArrayShape, b: &ArrayShape) -> Result<Shape> {
    square("operand 0", a)?;
    numbers("operand 0", a)?;
    checks::same_element_type(("operand 0", a), ("operand 1", b))?;
    ensure!(a.rank() == b.rank(), "operand 0 {a} and operand 1 {b} must have the same rank");
    let batch = a.rank() - 2;
    ensure!(
        a.dims()[..batch] == b.dims()[..batch],
        "the dimensions before the last two must be equal, operand 0 is {a} and operand 1 {b}"
    );
    let shared = if op.left_side { batch } else { batch + 1 };
    ensure!(
        b.dims()[shared] == a.dims()[batch],
        "left_side={} requires size {} in dimension {shared} of operand 1, which is {b}",
        op.left_side,
        a.dims()[batch]
    );
    checks::array(b.element_type(), b.dims().to_vec())
}

fn square(what: &str, shape: &ArrayShape) -> Result<()> {
    match shape.dims() {
        [.., rows, columns] if rows == columns => Ok(()),
        _ => Err(crate::Error::invalid_argument(format!(
            "the last two dimensions of {what} must be those of a square matrix, it is {shape}"
        ))),
    }
}

fn numbers(what: &str, shape: &ArrayShape) -> Result<()> {
    let ty = shape.element_type();
    ensure!(ty.is_float() || ty.is_complex(), "{what} must have float or complex elements, it is {shape}");
    Ok(())
}
