//! Evaluator of the dot family.

use super::*;
use crate::eval::parallel::PRODUCT;
use crate::ops::checks;
use crate::ops::dot_arithmetic::{Domain, Wrapping, converted, elements, rounded_sum_type};
use crate::ops::movement::strided::permuted;
use crate::{ArrayShape, ElementKind, ElementType};

/// Evaluates a dot in the widest arithmetic for the class of [`Dot::sum_type`] and converts the sums to the result
/// type. `precision` and `algorithm` only permit less accuracy and are ignored.
pub(super) fn dot(op: &Dot, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [lhs, rhs] = checks::operands(operands)?;
    let dims = &op.dims;
    let left = Side::new(&lhs, &dims.lhs(lhs.array_shape().rank()));
    let right = Side::new(&rhs, &dims.rhs(rhs.array_shape().rank()));
    let shape = shape.expect_array()?;
    let result = shape.element_type();
    let ty = rounded_sum_type(Dot::sum_type(left.element_type, right.element_type, result), result);
    let sums = shape.clone().with_element_type(ty);
    let sums = match ty.kind() {
        ElementKind::Pred => contract::<bool>(ev, &left, &right, &sums),
        ElementKind::Signed | ElementKind::Unsigned => contract::<Wrapping>(ev, &left, &right, &sums),
        ElementKind::Float => contract::<f64>(ev, &left, &right, &sums),
        ElementKind::Complex => contract::<(f64, f64)>(ev, &left, &right, &sums),
    };
    converted(sums?, result)
}

/// An operand as a row-major array `[batch, free, contracting]`.
struct Side {
    element_type: ElementType,
    bytes: Vec<u8>,
    free: usize,
    contracting: usize,
}

impl Side {
    fn new(operand: &Literal, dims: &DotOperandDims<'_>) -> Side {
        let shape = operand.array_shape();
        // Saturates only if another dimension has size 0.
        let count = |dims: &[usize]| dims.iter().fold(1usize, |n, &d| n.saturating_mul(shape.dims()[d]));
        Side {
            element_type: shape.element_type(),
            bytes: permuted(operand, &dims.permutation()),
            free: count(&dims.free),
            contracting: count(dims.contracting),
        }
    }

    fn elements<T: Domain>(&self, ev: &mut Evaluator<'_>) -> Result<Vec<T>> {
        elements(ev, self.element_type, &self.bytes)
    }
}

fn contract<T: Domain>(ev: &mut Evaluator<'_>, left: &Side, right: &Side, shape: &ArrayShape) -> Result<Literal> {
    let (ty, length) = (shape.element_type(), left.contracting);
    let (a, b) = (left.elements::<T>(ev)?, right.elements::<T>(ev)?);
    ev.array(shape, length.saturating_mul(PRODUCT), |i| {
        let (row, column) = (i / right.free, i % right.free);
        let column = row / left.free * right.free + column;
        let (x, y) = (&a[row * length..(row + 1) * length], &b[column * length..(column + 1) * length]);
        x.iter().zip(y).fold(T::ZERO, |sum, (&x, &y)| sum.plus_product(x, y)).to_element(ty)
    })
}
