//! Adapter from raw-memory handlers to literals, for the evaluator and for platforms with their own layouts.

use super::context::CustomCallContext;
use super::handler::CustomCallHandler;
use super::raw::{RawCall, RawCustomCall, RawOperand, RawResult};
use crate::shape::IndexIter;
use crate::{ArrayShape, Error, Literal, Result, Shape};

/// Adapter that makes a [`CustomCallHandler`] of a handler on raw memory.
#[derive(Clone, Copy, Debug)]
pub struct OnMemory<H>(pub H);

impl<H: RawCustomCall> CustomCallHandler for OnMemory<H> {
    /// Stores the operands in the layouts of the program, executes the call, and reads the results.
    fn call(&self, call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
        let fresh;
        let state = match call.state {
            Some(state) => state,
            None => {
                fresh = self.0.instantiate(call)?;
                &fresh
            }
        };
        let stated = call.op().operand_layouts.as_deref().unwrap_or_default();
        let operand_shape = |(i, operand): (usize, &Literal)| operand.shape().with_layouts_of(stated.get(i));
        let shapes: Vec<Shape> = operands.iter().enumerate().map(operand_shape).collect();
        let values: Vec<Literal> = operands.into_iter().flat_map(leaves_of).collect();
        let leaves = || shapes.iter().flat_map(Shape::leaves).map(|(_, leaf)| leaf);
        let inputs: Vec<Vec<u8>> = leaves().zip(&values).map(|(shape, value)| laid_out(shape, value)).collect();
        let result = call.result_shape().with_default_layouts();
        let results: Vec<&Shape> = result.leaves().into_iter().map(|(_, leaf)| leaf).collect();
        let mut outputs: Vec<Vec<u8>> = results.iter().map(|shape| vec![0; shape.byte_size()]).collect();
        let operands = leaves().zip(&inputs).map(|(shape, bytes)| RawOperand { shape, bytes, alias: None });
        let mut operands: Vec<RawOperand<'_>> = operands.collect();
        for (operand, result) in call.op().aliased_leaves(&shapes.iter().collect::<Vec<_>>(), &result) {
            outputs[result].copy_from_slice(operands[operand].bytes);
            operands[operand] = RawOperand { bytes: &[], alias: Some(result), ..operands[operand].clone() };
        }
        let places = results.iter().zip(&mut outputs);
        let places = places.map(|(&shape, bytes)| RawResult { shape, bytes }).collect();
        self.0.execute(&mut RawCall { context: *call, state, device: 0, operands, results: places })?;
        let mut values = results.iter().zip(outputs).map(|(shape, bytes)| read(shape, bytes));
        regroup(&result, &mut values)
    }

    fn raw(&self) -> Option<&dyn RawCustomCall> {
        Some(&self.0)
    }
}

/// Returns the arrays and tokens of a value, depth first.
fn leaves_of(literal: Literal) -> Vec<Literal> {
    match literal.shape() {
        Shape::Tuple(_) => literal.into_elements().into_iter().flat_map(leaves_of).collect(),
        Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => vec![literal],
    }
}

/// Assembles a value from its leaves; the inverse of [`leaves_of`].
fn regroup(shape: &Shape, leaves: &mut dyn Iterator<Item = Result<Literal>>) -> Result<Literal> {
    match shape {
        Shape::Tuple(elements) => {
            Ok(Literal::tuple(elements.iter().map(|element| regroup(element, leaves)).collect::<Result<_>>()?))
        }
        Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
            leaves.next().ok_or_else(|| Error::internal("a custom call has fewer results than its shape"))?
        }
    }
}

/// Returns the bytes of a value in the layout of its shape.
fn laid_out(shape: &Shape, value: &Literal) -> Vec<u8> {
    let Shape::Array(array) = shape else { return Vec::new() };
    let mut bytes = vec![0; value.byte_len()];
    let (source, width) = (value.bytes(), array.element_type().byte_width());
    for_each_place(array, &mut |logical, physical| {
        let (from, to) = (logical * width, physical * width);
        bytes[to..to + width].copy_from_slice(&source[from..from + width]);
    });
    bytes
}

/// Reads a value of shape `shape` from bytes in the shape's layout.
fn read(shape: &Shape, bytes: Vec<u8>) -> Result<Literal> {
    let array = match shape {
        Shape::Array(array) => array,
        Shape::Token => return Ok(Literal::token()),
        Shape::Tuple(_) | Shape::Opaque | Shape::Buffer(_) => {
            return Err(Error::unimplemented(format!(
                "a custom call on raw memory cannot have a result of shape {shape}"
            )));
        }
    };
    let (mut logical_bytes, width) = (vec![0; bytes.len()], array.element_type().byte_width());
    for_each_place(array, &mut |logical, physical| {
        let (from, to) = (physical * width, logical * width);
        logical_bytes[to..to + width].copy_from_slice(&bytes[from..from + width]);
    });
    Literal::from_bytes(array, logical_bytes)
}

/// Calls `f` with the index of each element in row-major order and in the order of the layout.
fn for_each_place(shape: &ArrayShape, f: &mut dyn FnMut(usize, usize)) {
    let strides = crate::strides(shape.dims(), &shape.minor_to_major());
    let mut indices = IndexIter::new(shape.dims());
    let mut logical = 0;
    while let Some(index) = indices.next_index() {
        f(logical, index.iter().zip(&strides).map(|(i, stride)| i * stride).sum());
        logical += 1;
    }
}
