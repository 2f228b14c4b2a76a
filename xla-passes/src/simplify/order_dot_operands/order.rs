//! The order of dimensions that a dot wants of its right operand.

use xla_hlo::{ArrayShape, Computation, InstrId, Op, Result, Shape};

use crate::layout::inverse;
use crate::rewrite::graph;

/// Columns side by side with which a target is content: fewer do not fill several vectors. An operand of fewer
/// columns is as good in any order, since each column is a sum along a row of memory then.
const ENOUGH_COLUMNS: usize = 64;

/// The permutation that puts the right operand of a dot in order: in place `i` comes dimension `permutation[i]`. `None`
/// where the order does not matter, or enough columns lie side by side already.
///
/// It does not matter to a single row: then each element of the operand is read once, and is not packed.
pub(super) fn wanted(computation: &Computation, id: InstrId) -> Option<Vec<usize>> {
    let Op::Dot(dot) = computation[id].op() else { return None };
    let shape = |i: usize| computation[computation[id].operand(i)].shape().as_array();
    let (left, right) = (shape(0)?, shape(1)?);
    let [l, r] = dot.dims.operands([left.rank(), right.rank()]);
    let is_matmul = extent(left, &l.free) > 1 && extent(right, r.contracting) > 1;
    if !is_matmul || extent(right, &r.free) < ENOUGH_COLUMNS || !graph::is_static(computation, id) {
        return None;
    }
    let minor = (0..right.rank()).rev().take_while(|d| right.dims()[*d] == 1 || r.free.contains(d));
    if extent(right, &minor.collect::<Vec<usize>>()) >= ENOUGH_COLUMNS {
        return None;
    }
    // Sums go through both operands in the order in which the left one lies.
    let mut sums: Vec<(usize, usize)> = l.contracting.iter().copied().zip(r.contracting.iter().copied()).collect();
    sums.sort_unstable();
    let contracting: Vec<usize> = sums.into_iter().map(|(_, d)| d).collect();
    Some([r.batch, &contracting, &r.free].concat())
}

fn extent(shape: &ArrayShape, dims: &[usize]) -> usize {
    dims.iter().map(|&d| shape.dims()[d]).fold(1, usize::saturating_mul)
}

/// The shape of an array in that order.
pub(super) fn ordered(shape: &Shape, order: &[usize]) -> Result<Shape> {
    let array = shape.expect_array()?;
    let dims: Vec<usize> = order.iter().map(|&d| array.dims()[d]).collect();
    Ok(Shape::array(array.element_type(), dims).with_default_layouts())
}

/// Gives a dot the right operand that is the present one in that order.
pub(super) fn set_right(computation: &mut Computation, id: InstrId, operand: InstrId, order: &[usize]) {
    let Op::Dot(dot) = computation[id].op() else { return };
    let mut dot = dot.clone();
    let places = inverse(order);
    let dims = dot.dims.rhs_batch.iter_mut().chain(&mut dot.dims.rhs_contracting);
    dims.for_each(|d| *d = places[*d]);
    computation.set_op(id, dot.into());
    computation.replace_operand(id, 1, operand);
}
