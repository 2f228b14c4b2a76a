//! Evaluator of operations on dynamic sizes.

use super::super::checks;
use super::Dynamic;
use crate::{ArrayShape, ElementType, Error, Literal, Result, Scalar, Shape};

/// Evaluates an operation on dynamic sizes. `shape` is the shape of the instruction, with bounds.
pub(super) fn evaluate(op: &Dynamic, operands: &[Literal], shape: &Shape) -> Result<Literal> {
    let x = operands.first().ok_or_else(checks::missing_operand)?;
    let sizes: Vec<i128> = operands[1..].iter().map(|size| size.get(0).as_i128().unwrap_or_default()).collect();
    match op {
        Dynamic::GetDimensionSize { dimension } => {
            let size = x.array_shape().dims()[*dimension];
            Ok(Literal::scalar(ElementType::S32, Scalar::from_i64(ElementType::S32, size as i64)))
        }
        Dynamic::SetDimensionSize { dimension } => {
            let size = sizes.first().ok_or_else(checks::missing_operand)?;
            let bound = shape.expect_array()?.dims()[*dimension];
            let mut dims = x.array_shape().dims().to_vec();
            dims[*dimension] = (*size).clamp(0, bound as i128) as usize;
            x.resized(&dims)
        }
        Dynamic::DynamicReshape => {
            let bounds = shape.expect_array()?.dims();
            let dims: Vec<usize> =
                sizes.iter().zip(bounds).map(|(&size, &bound)| size.clamp(0, bound as i128) as usize).collect();
            let shape = ArrayShape::new(x.array_shape().element_type(), dims);
            if shape.element_count() != x.array_shape().element_count() {
                return Err(Error::invalid_argument(format!(
                    "dynamic-reshape of {} to {shape} changes the number of elements",
                    x.shape()
                )));
            }
            x.reshaped(&shape)
        }
    }
}
