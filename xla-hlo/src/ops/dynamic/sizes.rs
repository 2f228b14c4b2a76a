//! Evaluation of operations on values whose sizes are below their bounds.

use std::collections::HashMap;

use super::super::Family;
use crate::ops::{Op, ShapeContext};
use crate::{ArrayShape, Dynamism, Error, Literal, Module, Result, Shape};

/// Whether the sizes of a value may differ from its shape.
pub(crate) fn is_dynamic(shape: &Shape) -> bool {
    match shape {
        Shape::Array(array) => !array.is_static(),
        Shape::Tuple(elements) => elements.iter().any(is_dynamic),
        Shape::Buffer(_) | Shape::Token | Shape::Opaque => false,
    }
}

/// Whether a value of shape `value` is valid for `shape`: a bounded dimension has at most the size of its bound, an
/// unbounded one any size.
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

/// Returns the operation and the shape of its result for operands of actual sizes. `shape` holds the bounds of the
/// result.
///
/// Also resizes the operands: dimensions that must agree are cut to the smallest of their sizes.
pub(crate) fn at_real_sizes(op: &Op, module: &Module, operands: &mut [Literal], shape: &Shape) -> Result<(Op, Shape)> {
    cut_to_common_sizes(op, operands)?;
    let op = &slices_that_fit(op, operands, shape)?;
    let shapes: Vec<&Shape> = operands.iter().map(Literal::shape).collect();
    let infer = |op: &Op, written: &Shape| {
        let inferred = op.rules().infer_shape(&ShapeContext::new(module, &shapes, Some(written)));
        inferred.map_err(|e| e.context(format!("{} on arrays of their runtime sizes", op.opcode())))
    };
    let shape = match op {
        // These operations handle sizes themselves, or pass their operands on to operations that do.
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
        op if op.opcode().family() == Family::Elementwise => {
            let arrays = shapes.iter().filter_map(|s| s.as_array());
            let dims = arrays.max_by_key(|a| a.rank()).map(|a| a.dims().to_vec()).unwrap_or_default();
            infer(op, &with_dims(shape, dims)?)?
        }
        op => infer(op, &shape.at_bounds())?,
    };
    Ok((op.clone(), shape))
}

/// Adapts slice sizes to the actual size of the array. Along dimensions that are dynamic in the result, a slice ends at
/// the end of the array. Along other dimensions slices keep their size, and an array that is too small grows by
/// undefined elements.
fn slices_that_fit(op: &Op, operands: &mut [Literal], shape: &Shape) -> Result<Op> {
    let ends = |d: usize| shape.as_array().is_some_and(|result| result.dynamism(d) != Dynamism::Static);
    let Some(x) = operands.first().and_then(|x| x.shape().as_array()) else { return Ok(op.clone()) };
    let mut dims = x.dims().to_vec();
    let mut fit = |size: &mut usize, operand: usize, result: usize| {
        if ends(result) {
            *size = dims[operand].min(*size);
        }
        dims[operand] = dims[operand].max(*size);
    };
    let fitted = match op.clone() {
        Op::Slice(mut slice) => {
            for (d, range) in slice.ranges.iter_mut().enumerate() {
                fit(&mut range.limit, d, d);
                range.start = range.start.min(range.limit);
            }
            Op::from(slice)
        }
        Op::DynamicSlice(mut slice) => {
            slice.sizes.iter_mut().enumerate().for_each(|(d, size)| fit(size, d, d));
            Op::from(slice)
        }
        Op::Gather(mut gather) => {
            let left_out =
                |d: &usize| gather.collapsed_slice_dims.contains(d) || gather.operand_batching_dims.contains(d);
            let along = (0..gather.slice_sizes.len()).filter(|d| !left_out(d)).zip(&gather.offset_dims);
            for (d, &result) in along {
                fit(&mut gather.slice_sizes[d], d, result);
            }
            for &d in &gather.collapsed_slice_dims {
                dims[d] = dims[d].max(gather.slice_sizes[d]);
            }
            Op::from(gather)
        }
        Op::TopK(mut top) => {
            if let (Some(result), Some(&size)) = (shape.as_tuple().and_then(|s| s.first()?.as_array()), dims.last())
                && result.dynamism(dims.len() - 1) != Dynamism::Static
            {
                top.k = top.k.min(size);
            }
            Op::from(top)
        }
        other => return Ok(other),
    };
    operands[0] = operands[0].resized(&dims)?;
    Ok(fitted)
}

fn cut_to_common_sizes(op: &Op, operands: &mut [Literal]) -> Result<()> {
    let arrays = operands.iter().filter_map(|o| o.shape().as_array());
    let rank = arrays.map(ArrayShape::rank).max().unwrap_or_default();
    // For each dimension of an operand, the id of its size. Dimensions with equal ids must agree in size.
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
        *operand = operand.resized(&dims)?;
    }
    Ok(())
}

fn with_dims(shape: &Shape, dims: Vec<usize>) -> Result<Shape> {
    Ok(ArrayShape::new(shape.expect_array()?.element_type(), dims).into())
}

/// Returns the sizes of a reshape's result. If exactly one dimension is dynamic, its size follows from the number of
/// elements and the other sizes.
fn reshaped(value: &ArrayShape, result: &ArrayShape) -> Result<Vec<usize>> {
    let mut dims = result.dims().to_vec();
    let mut dynamic = (0..result.rank()).filter(|&d| result.dynamism(d) != Dynamism::Static);
    let (Some(d), None) = (dynamic.next(), dynamic.next()) else {
        if value.element_count() == result.element_count() {
            return Ok(dims);
        }
        return Err(Error::unimplemented(format!(
            "reshape of {value} to {result} is ambiguous: the sizes of the result do not follow from the operand"
        )));
    };
    let others: usize = dims.iter().enumerate().filter(|(i, _)| *i != d).map(|(_, &size)| size).product();
    dims[d] = value.element_count().checked_div(others).unwrap_or(dims[d]);
    Ok(dims)
}
