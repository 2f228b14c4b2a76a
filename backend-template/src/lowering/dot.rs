//! Dot operations (matrix products) on the matrix unit.

use xla_hlo::ops::Dot;
use xla_hlo::{ElementType, Result, Scalar};
use xla_service::thunks::LoweringContext;

use super::builder::ProgramBuilder;
use crate::device::{Coordinate, Program, TILE_COLUMNS, TILE_ROWS};

/// Lowers a dot to loops over tiles of the result. The rows of a tile are the minor free dimension of the left operand,
/// its columns the minor free dimension of the right operand. The matrix unit contracts the minor contracting
/// dimension; all other dimensions become loops.
pub(super) fn lower(cx: &LoweringContext<'_>, op: &Dot) -> Result<Option<Program>> {
    let ([lhs, rhs], [result]) = (cx.operands, cx.results) else { return Ok(None) };
    let types = [lhs, rhs, result].map(|array| array.shape.element_type());
    // The matrix unit multiplies numbers of one kind. Lanes outside an operand load zero bits, which F8E8M0FNU, a type
    // without zero, decodes as another number.
    if types.iter().any(|ty| ty.kind() != types[2].kind() || *ty == ElementType::F8E8M0FNU) {
        return Ok(None);
    }
    let (left, right) = (lhs.shape.dims(), rhs.shape.dims());
    let [left_dims, right_dims] = op.dims.operands([left.len(), right.len()]);

    let mut b = ProgramBuilder::new(cx)?;
    let mut left_at = vec![Coordinate::default(); left.len()];
    let mut right_at = vec![Coordinate::default(); right.len()];
    let mut at = Vec::with_capacity(result.shape.rank());
    for (&l, &r) in left_dims.batch.iter().zip(right_dims.batch) {
        left_at[l] = Coordinate::of(b.begin_loop(left[l], 1));
        right_at[r] = left_at[l].clone();
        at.push(left_at[l].clone());
    }
    for &d in &left_dims.free {
        let is_minor = left_dims.free.last() == Some(&d);
        left_at[d] = axis(&mut b, left[d], if is_minor { TILE_ROWS } else { 1 }).per_row(i64::from(is_minor));
        at.push(left_at[d].clone());
    }
    for &d in &right_dims.free {
        let is_minor = right_dims.free.last() == Some(&d);
        right_at[d] = axis(&mut b, right[d], if is_minor { TILE_COLUMNS } else { 1 }).per_column(i64::from(is_minor));
        at.push(right_at[d].clone());
    }

    let sum = b.splat(types[2], Scalar::zero(types[2]));
    for (&l, &r) in left_dims.contracting.iter().zip(right_dims.contracting) {
        let is_minor = left_dims.contracting.last() == Some(&l);
        let depth = axis(&mut b, left[l], if is_minor { TILE_ROWS } else { 1 });
        left_at[l] = depth.clone().per_column(i64::from(is_minor));
        right_at[r] = depth.per_row(i64::from(is_minor));
    }
    let (mut x, mut y) = (b.load(0, &left_at), b.load(1, &right_at));
    if left_dims.contracting.is_empty() {
        // An outer product has depth 1: the other lanes must be zero.
        let (columns, rows) = (Coordinate::default().per_column(1), Coordinate::default().per_row(1));
        let zero = types.map(|ty| b.splat(ty, Scalar::zero(ty)));
        x = b.choose(x, zero[0], vec![(columns, 1)]);
        y = b.choose(y, zero[1], vec![(rows, 1)]);
    }
    b.matmul(sum, x, y);
    b.end_loops(left_dims.contracting.len());
    b.store(sum, 2, &at);
    b.end_loops(at.len());
    Ok(Some(b.finish()))
}

/// Opens a loop; returns its counter as a coordinate with the same value in all lanes.
fn axis(b: &mut ProgramBuilder, extent: usize, step: usize) -> Coordinate {
    Coordinate::of(b.begin_loop(extent, step))
}
