//! Shape rules of the dot family.

use super::*;
use crate::ops::checks::{self, ensure};
use crate::ops::dot_arithmetic::precision;
use crate::{ArrayShape, ElementType};

/// Returns the shape of a dot, `[batch, left free, right free]`. Batch and contracting dimensions are paired by
/// position and must agree in size.
pub(super) fn dot(op: &Dot, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (ty, dims) = contraction(&op.dims, &op.precision, &[], cx)?;
    checks::array(ty, dims)
}

/// Returns the element type and dimensions of a contraction of operands 0 and 1. The result omits the free dimensions
/// `dropped` of the right operand.
pub(super) fn contraction(
    dims: &DotDims,
    precision: &[Precision],
    dropped: &[usize],
    cx: &ShapeContext<'_>,
) -> Result<(ElementType, Vec<usize>)> {
    let (lhs, rhs) = (cx.array(0)?, cx.array(1)?);
    check_pairs("batch", (lhs, &dims.lhs_batch), (rhs, &dims.rhs_batch))?;
    check_pairs("contracting", (lhs, &dims.lhs_contracting), (rhs, &dims.rhs_contracting))?;
    let used = |batch: &[usize], contracting: &[usize]| [batch, contracting].concat();
    checks::distinct("batch and contracting dimensions", &used(&dims.lhs_batch, &dims.lhs_contracting), lhs.rank())
        .map_err(|e| e.context("left operand"))?;
    checks::distinct("batch and contracting dimensions", &used(&dims.rhs_batch, &dims.rhs_contracting), rhs.rank())
        .map_err(|e| e.context("right operand"))?;
    ensure!(
        precision.is_empty() || precision.len() == 2,
        "operand_precision must have one entry for each of the 2 operands, not {}",
        precision.len()
    );
    let mut result: Vec<usize> = dims.lhs_batch.iter().map(|&d| lhs.dims()[d]).collect();
    result.extend(dims.lhs(lhs.rank()).free.iter().map(|&d| lhs.dims()[d]));
    let columns = dims.rhs(rhs.rank()).free;
    result.extend(columns.iter().filter(|d| !dropped.contains(d)).map(|&d| rhs.dims()[d]));
    Ok((result_type(lhs.element_type(), rhs.element_type(), cx), result))
}

fn check_pairs(what: &str, (lhs, left): (&ArrayShape, &[usize]), (rhs, right): (&ArrayShape, &[usize])) -> Result<()> {
    ensure!(
        left.len() == right.len(),
        "{what} dimensions pair up, but the left operand has {left:?} and the right one {right:?}"
    );
    for (&l, &r) in left.iter().zip(right) {
        let (Some(a), Some(b)) = (lhs.dims().get(l), rhs.dims().get(r)) else {
            return Err(Error::invalid_argument(format!(
                "{what} dimensions {l} of the left operand {lhs} and {r} of the right operand {rhs} do not both exist"
            )));
        };
        ensure!(
            a == b,
            "{what} dimensions pair up, but dimension {l} of the left operand {lhs} has size {a} and dimension {r} of the right operand {rhs} has size {b}"
        );
    }
    Ok(())
}

/// Returns the written type, or by default the more precise of the operand types.
fn result_type(lhs: ElementType, rhs: ElementType, cx: &ShapeContext<'_>) -> ElementType {
    cx.written_element_type_or(if precision(rhs) > precision(lhs) { rhs } else { lhs })
}
