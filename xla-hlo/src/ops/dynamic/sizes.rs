//! Evaluating any operation on values whose sizes are below their bounds.

use std::collections::HashMap;

use super::super::{Family, Slice};
use super::eval::resized;
use crate::ops::{Op, ShapeContext};
use crate::{ArrayShape, Dynamism, Error, Literal, Module, Result, Shape};

/// Whether a value may have other sizes than its shape says.
pub(crate) fn is_dynamic(shape: &Shape) -> bool {
    match shape {
        Shape::Array(array) => !array.is_static(),
        Shape::Tuple(elements) => elements.iter().any(is_dynamic),
        Shape::Buffer(_) | Shape::Token | Shape::Opaque => false,
    }
}

/// Whether a value of shape `value` may stand where `shape` is said: sizes of dynamic dimensions are up to the bound.
pub(crate) fn fits(value: &Shape, shape: &Shape) -> bool {
    match (value, shape) {
        (Shape::Array(value), Shape::Array(shape)) if !shape.is_static() => {
            let size_fits = |(d, (&size, &bound)): (usize, (&usize, &usize))| match shape.dynamism(d) {
                Dynamism::Static => size == bound,
                Dynamism::Bounded => size <= bound,
                Dynamism::Unbounded => true,
            };
            value.element_type() == shape.element_type()
                && value.rank() == shape.rank()
                && value.dims().iter().zip(shape.dims()).enumerate().all(size_fits)
        }
        (Shape::Tuple(values), Shape::Tuple(shapes)) => {
            values.len() == shapes.len() && values.iter().zip(shapes).all(|(value, shape)| fits(value, shape))
        }
        _ => value.compatible(shape),
    }
}

/// The operation, and the shape of its result, on operands of the sizes they really have; `shape` has the bounds.
///
/// Where dimensions of operands pair up, the smallest size counts for all of them, and the others are cut.
pub(crate) fn at_real_sizes(op: &Op, module: &Module, operands: &mut [Literal], shape: &Shape) -> Result<(Op, Shape)> {
    cut_to_common_sizes(op, operands)?;
    let shapes: Vec<&Shape> = operands.iter().map(Literal::shape).collect();
    let infer = |op: &Op, written: &Shape| {
        let inferred = op.rules().infer_shape(&ShapeContext::new(module, &shapes, Some(written)));
        inferred.map_err(|e| e.context(format!("{} on arrays of the sizes they have when running", op.opcode())))
    };
    let shape = match op {
        // These know sizes, or hand their operands on to who does.
        Op::Dynamic(_)
        | Op::Tuple(_)
        | Op::GetTupleElement(_)
        | Op::OptBarrier(_)
        | Op::Domain(_)
        | Op::AddDependency(_)
        | Op::Copy(_)
        | Op::While(_)
        | Op::Conditional(_)
        | Op::Call(_)
        | Op::Fusion(_)
        | Op::Async(_) => shape.clone(),
        Op::Broadcast(broadcast) => {
            let mut dims = shape.expect_array()?.dims().to_vec();
            for (&size, &d) in shapes[0].expect_array()?.dims().iter().zip(&broadcast.dimensions) {
                dims[d] = size;
            }
            infer(op, &with_dims(shape, dims)?)?
        }
        Op::Reshape(_) => infer(op, &with_dims(shape, reshaped(shapes[0].expect_array()?, shape.expect_array()?)?)?)?,
        Op::Slice(slice) => {
            // A slice of everything is one of all there is.
            let (operand, result) = (shapes[0].expect_array()?, shape.expect_array()?);
            let mut ranges = slice.ranges.clone();
            for (d, (range, &size)) in ranges.iter_mut().zip(operand.dims()).enumerate() {
                if result.dynamism(d) != Dynamism::Static && range.start == 0 && range.stride == 1 {
                    range.limit = range.limit.min(size);
                }
            }
            let op = Op::from(Slice { ranges });
            let shape = infer(&op, shape)?;
            return Ok((op, shape));
        }
        op if op.opcode().family() == Family::Elementwise => {
            let arrays = shapes.iter().filter_map(|s| s.as_array());
            let dims = arrays.max_by_key(|a| a.rank()).map(|a| a.dims().to_vec()).unwrap_or_default();
            infer(op, &with_dims(shape, dims)?)?
        }
        op => infer(op, &without_bounds(shape))?,
    };
    Ok((op.clone(), shape))
}

fn cut_to_common_sizes(op: &Op, operands: &mut [Literal]) -> Result<()> {
    let arrays = operands.iter().filter_map(|o| o.shape().as_array());
    let rank = arrays.map(ArrayShape::rank).max().unwrap_or_default();
    // Of each operand, the number of the size that each dimension has; equal numbers pair up.
    let numbers = |i: usize, own: usize| -> Option<Vec<usize>> {
        match op {
            Op::Dot(dot) => {
                let sides = [
                    (&dot.dims.lhs_batch, &dot.dims.lhs_contracting),
                    (&dot.dims.rhs_batch, &dot.dims.rhs_contracting),
                ];
                let (batch, contracting) = sides.get(i)?;
                let paired = |d: usize| batch.iter().chain(contracting.iter()).position(|&p| p == d);
                Some((0..own).map(|d| paired(d).unwrap_or(rank * 2 + i * rank + d)).collect())
            }
            Op::Concatenate(concatenate) => {
                Some((0..own).map(|d| if d == concatenate.dimension { rank * (i + 1) + d } else { d }).collect())
            }
            op => (op.opcode().family() == Family::Elementwise && own == rank).then(|| (0..own).collect()),
        }
    };
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    let mut found = Vec::with_capacity(operands.len());
    for (i, operand) in operands.iter().enumerate() {
        let dims = operand.shape().as_array().map(ArrayShape::dims).unwrap_or_default();
        let numbers = numbers(i, dims.len()).unwrap_or_default();
        for (&number, &size) in numbers.iter().zip(dims) {
            sizes.entry(number).and_modify(|s| *s = size.min(*s)).or_insert(size);
        }
        found.push(numbers);
    }
    for (operand, numbers) in operands.iter_mut().zip(found).filter(|(_, numbers)| !numbers.is_empty()) {
        let dims: Vec<usize> = numbers.iter().map(|number| sizes[number]).collect();
        *operand = resized(operand, &dims)?;
    }
    Ok(())
}

fn with_dims(shape: &Shape, dims: Vec<usize>) -> Result<Shape> {
    Ok(ArrayShape::new(shape.expect_array()?.element_type(), dims).into())
}

fn without_bounds(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => array.clone().with_dynamism(Vec::new()).into(),
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(without_bounds).collect()),
        Shape::Buffer(_) | Shape::Token | Shape::Opaque => shape.clone(),
    }
}

/// The sizes of a reshape's result: the only dynamic dimension takes what elements the others leave.
fn reshaped(value: &ArrayShape, result: &ArrayShape) -> Result<Vec<usize>> {
    let mut dims = result.dims().to_vec();
    let mut dynamic = (0..result.rank()).filter(|&d| result.dynamism(d) != Dynamism::Static);
    let (Some(d), None) = (dynamic.next(), dynamic.next()) else {
        if value.element_count() == result.element_count() {
            return Ok(dims);
        }
        return Err(Error::unimplemented(format!("reshape of {value} to {result}: its sizes do not follow")));
    };
    let others: usize = dims.iter().enumerate().filter(|(i, _)| *i != d).map(|(_, &size)| size).product();
    dims[d] = value.element_count().checked_div(others).unwrap_or(dims[d]);
    Ok(dims)
}
