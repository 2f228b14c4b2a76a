//! Batches of matrices, stored in the last two dimensions of an array.

use xla_hlo::ops::{
    BinaryOp, CompareDirection, Dot, DotDims, DynamicSlice, DynamicUpdateSlice, Pad, PadDim, Transpose, UnaryOp,
};
use xla_hlo::{ArrayShape, InstrId, Result, Scalar};

use super::counted::COUNTER;
use crate::rewrite::builder::Inserter;

/// Transposes each matrix.
pub(super) fn transpose(at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
    let rank = at.dims(x).len();
    let mut permutation: Vec<usize> = (0..rank).collect();
    permutation.swap(rank - 2, rank - 1);
    at.add(Transpose { permutation }, [x])
}

/// Negates the imaginary part of each complex number; real numbers are unchanged.
pub(super) fn conjugate(at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
    if !at.element_type(x)?.is_complex() {
        return Ok(x);
    }
    let (re, im) = (at.unary(UnaryOp::Real, x)?, at.unary(UnaryOp::Imag, x)?);
    let im = at.unary(UnaryOp::Negate, im)?;
    at.binary(BinaryOp::Complex, re, im)
}

/// Transposes and conjugates each matrix.
pub(super) fn adjoint(at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
    let x = transpose(at, x)?;
    conjugate(at, x)
}

/// Emits the matrix products `x y`, or `x y^T`.
pub(super) fn product(at: &mut Inserter<'_>, x: InstrId, y: InstrId, transposed: bool) -> Result<InstrId> {
    let rank = at.dims(x).len();
    let batch: Vec<usize> = (0..rank - 2).collect();
    let dims = DotDims {
        lhs_batch: batch.clone(),
        rhs_batch: batch,
        lhs_contracting: vec![rank - 1],
        rhs_contracting: vec![if transposed { rank - 1 } else { rank - 2 }],
    };
    at.add(Dot { dims, precision: vec![], algorithm: None }, [x, y])
}

/// Returns the part of each matrix with `sizes` rows and columns that starts at a row and column (0 if `None`).
pub(super) fn part(
    at: &mut Inserter<'_>,
    x: InstrId,
    start: [Option<InstrId>; 2],
    sizes: [usize; 2],
) -> Result<InstrId> {
    let operands = [vec![x], starts(at, x, start)?].concat();
    let sizes = matrices(at, x, sizes);
    at.add(DynamicSlice { sizes }, operands)
}

/// Replaces the part of each matrix that starts at a row and column.
pub(super) fn with_part(
    at: &mut Inserter<'_>,
    x: InstrId,
    part: InstrId,
    start: [Option<InstrId>; 2],
) -> Result<InstrId> {
    let operands = [vec![x, part], starts(at, x, start)?].concat();
    at.add(DynamicUpdateSlice, operands)
}

/// Broadcasts the only element of each matrix of `x` to matrices of `sizes` rows and columns.
pub(super) fn spread(at: &mut Inserter<'_>, x: InstrId, sizes: [usize; 2]) -> Result<InstrId> {
    let dims = matrices(at, x, sizes);
    let batch = dims.len() - 2;
    let numbers = at.reshape(x, &dims[..batch])?;
    at.broadcast(numbers, &dims, &(0..batch).collect::<Vec<_>>())
}

/// Returns a number (of the counter's type) minus the row index, or the column index, of each element of `like`.
pub(super) fn distance(at: &mut Inserter<'_>, number: InstrId, like: InstrId, to_row: bool) -> Result<InstrId> {
    let dims = at.dims(like);
    let dimension = dims.len() - if to_row { 2 } else { 1 };
    let place = at.iota(COUNTER, &dims, dimension)?;
    let number = at.broadcast(number, &dims, &[])?;
    at.binary(BinaryOp::Subtract, number, place)
}

/// Returns zeros in the shape of an array.
pub(super) fn zeros_like(at: &mut Inserter<'_>, x: InstrId) -> Result<InstrId> {
    let shape: ArrayShape = at.array(x)?.clone();
    at.splat(&shape, Scalar::zero(shape.element_type()))
}

/// Pads matrices with zeros below and to the right, to `sizes` rows and columns.
pub(super) fn extended(at: &mut Inserter<'_>, x: InstrId, sizes: [usize; 2]) -> Result<InstrId> {
    let from = at.dims(x);
    let to = matrices(at, x, sizes);
    if from == to {
        return Ok(x);
    }
    let dims = from.iter().zip(&to).map(|(&from, &to)| PadDim { low: 0, high: (to - from) as i64, interior: 0 });
    let zero = Scalar::zero(at.element_type(x)?);
    let zero = at.scalar(at.element_type(x)?, zero)?;
    at.add(Pad { dims: dims.collect() }, [x, zero])
}

/// Pads square matrices with an identity at the lower right, to `n` rows and columns.
pub(super) fn extended_by_identity(at: &mut Inserter<'_>, x: InstrId, n: usize) -> Result<InstrId> {
    let own = at.dims(x)[at.dims(x).len() - 1];
    if own == n {
        return Ok(x);
    }
    let x = extended(at, x, [n, n])?;
    let dims = at.dims(x);
    let row = at.iota(COUNTER, &dims, dims.len() - 2)?;
    let column = at.iota(COUNTER, &dims, dims.len() - 1)?;
    let bound = at.array(row)?.clone();
    let bound = at.splat(&bound, Scalar::Signed(own as i64))?;
    let is_new = at.compare(CompareDirection::Ge, row, bound)?;
    let is_diagonal = at.compare(CompareDirection::Eq, row, column)?;
    let is_one = at.binary(BinaryOp::And, is_new, is_diagonal)?;
    let shape = at.array(x)?.clone();
    let one = if shape.element_type().is_complex() { Scalar::Complex(1.0, 0.0) } else { Scalar::Float(1.0) };
    let one = at.splat(&shape, one)?;
    at.select(is_one, one, x)
}

/// Returns the first rows and columns of each matrix.
pub(super) fn first(at: &mut Inserter<'_>, x: InstrId, [rows, columns]: [usize; 2]) -> Result<InstrId> {
    let rank = at.dims(x).len();
    let x = at.slice(x, rank - 2, 0, rows)?;
    at.slice(x, rank - 1, 0, columns)
}

/// Returns the dimensions of an array with the batch dimensions of `x` and matrices of other sizes.
fn matrices(at: &Inserter<'_>, x: InstrId, sizes: [usize; 2]) -> Vec<usize> {
    let mut dims = at.dims(x);
    dims.truncate(dims.len() - 2);
    dims.extend(sizes);
    dims
}

fn starts(at: &mut Inserter<'_>, x: InstrId, start: [Option<InstrId>; 2]) -> Result<Vec<InstrId>> {
    let zero = at.scalar(COUNTER, Scalar::Signed(0))?;
    let batch = at.dims(x).len() - 2;
    Ok(std::iter::repeat_n(zero, batch).chain(start.map(|s| s.unwrap_or(zero))).collect())
}
