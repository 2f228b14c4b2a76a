//! Evaluator of the dot family.

use super::*;
use crate::ops::checks;
use crate::ops::dot_arithmetic::{Domain, Wrapping};
use crate::ops::movement::strided::permuted;
use crate::{ElementKind, ElementType, Scalar};

/// Sums of products, as exact as the kind of the result's elements allows; precision and algorithm ask for less.
pub(super) fn dot(op: &Dot, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let [lhs, rhs] = checks::operands(operands)?;
    let dims = &op.dims;
    let left = Side::new(&lhs, &dims.lhs(lhs.array_shape().rank()));
    let right = Side::new(&rhs, &dims.rhs(rhs.array_shape().rank()));
    let ty = shape.expect_array()?.element_type();
    match ty.kind() {
        ElementKind::Pred => contract::<bool>(&left, &right, shape),
        ElementKind::Signed | ElementKind::Unsigned => contract::<Wrapping>(&left, &right, shape),
        ElementKind::Float => contract::<f64>(&left, &right, shape),
        ElementKind::Complex => contract::<(f64, f64)>(&left, &right, shape),
    }
}

/// An operand as an array `[batch, free, contracting]`, row major.
struct Side {
    element_type: ElementType,
    bytes: Vec<u8>,
    batch: usize,
    free: usize,
    contracting: usize,
}

impl Side {
    fn new(operand: &Literal, dims: &DotOperandDims<'_>) -> Side {
        let shape = operand.array_shape();
        // Saturates only where another dimension is empty.
        let count = |dims: &[usize]| dims.iter().fold(1usize, |n, &d| n.saturating_mul(shape.dims()[d]));
        Side {
            element_type: shape.element_type(),
            bytes: permuted(operand, &dims.permutation()),
            batch: count(dims.batch),
            free: count(&dims.free),
            contracting: count(dims.contracting),
        }
    }

    fn elements<T: Domain>(&self, result: ElementType) -> Vec<T> {
        let width = self.element_type.byte_width();
        self.bytes.chunks_exact(width).map(|b| T::from_element(Scalar::read(self.element_type, b), result)).collect()
    }
}

fn contract<T: Domain>(left: &Side, right: &Side, shape: &Shape) -> Result<Literal> {
    let shape = shape.expect_array()?;
    let mut out = Literal::zeros(shape)?;
    let (ty, length) = (shape.element_type(), left.contracting);
    let (a, b) = (left.elements::<T>(ty), right.elements::<T>(ty));
    if shape.dims().contains(&0) {
        return Ok(out);
    }
    let mut results = out.bytes_mut().chunks_exact_mut(ty.byte_width());
    for batch in 0..left.batch {
        for m in 0..left.free {
            for n in 0..right.free {
                let (i, j) = (batch * left.free + m, batch * right.free + n);
                let (x, y) = (&a[i * length..(i + 1) * length], &b[j * length..(j + 1) * length]);
                let sum = x.iter().zip(y).fold(T::ZERO, |sum, (&x, &y)| sum.plus_product(x, y));
                if let Some(result) = results.next() {
                    sum.to_element(ty).write(ty, result);
                }
            }
        }
    }
    Ok(out)
}
