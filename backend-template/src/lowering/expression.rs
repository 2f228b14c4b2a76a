//! Elementwise operations and data movement: computes a tile of an instruction's elements at any coordinates.
//!
//! Data movement emits no instructions: a transpose, slice or broadcast only maps coordinates of its result to
//! coordinates of its operand. At the end of the chain, the DMA unit loads the elements of an array at the mapped
//! coordinates.

use std::collections::HashMap;

use xla_hlo::ops::{DynamicSlice, Pad, Slice};
use xla_hlo::{CompId, Computation, InstrId, Module, Op, Result, Shape};
use xla_service::thunks::LoweringContext;

use super::builder::ProgramBuilder;
use crate::device::{Coordinate, Register, VectorOp};

/// Value of an instruction that the expression reads and does not compute.
#[derive(Clone, Copy)]
enum Leaf {
    /// Array in memory, bound as tensor number.
    Tensor(usize),
    /// Value in a register.
    Value(Register),
}

/// Expression tree over the instructions of one computation.
pub(super) struct Expression<'a> {
    computation: &'a Computation,
    /// Inputs of the expression.
    leaves: HashMap<InstrId, Leaf>,
    /// Values that the current loop body has already computed, by instruction and coordinates.
    known: HashMap<(InstrId, Vec<Coordinate>), Register>,
}

impl<'a> Expression<'a> {
    /// Creates the expression of the context's instruction alone; its operands are in memory. `None` if an operand is
    /// not an array.
    pub fn of_instruction(cx: &LoweringContext<'a>) -> Option<Expression<'a>> {
        let operands = cx.instruction().operands();
        Expression::new(cx.computation(), operands, cx.operands.len())
    }

    /// Creates the expression of a fusion; its parameters are in memory. `None` if a parameter is not an array.
    pub fn of_fusion(module: &'a Module, fused: CompId, cx: &LoweringContext<'_>) -> Option<Expression<'a>> {
        let computation = &module[fused];
        Expression::new(computation, computation.parameters(), cx.operands.len())
    }

    /// Creates an expression whose leaves are the first tensors of the program. `None` if a leaf is not an array.
    fn new(computation: &'a Computation, leaves: &[InstrId], operands: usize) -> Option<Expression<'a>> {
        let are_arrays = leaves.iter().all(|&leaf| matches!(computation[leaf].shape(), Shape::Array(_)));
        let tensors = leaves.iter().copied().zip((0..).map(Leaf::Tensor)).collect();
        let is_one_each = are_arrays && leaves.len() == operands;
        is_one_each.then_some(Expression { computation, leaves: tensors, known: HashMap::new() })
    }

    /// Creates the expression of a scalar computation whose parameters have the given values.
    pub fn of_values(computation: &'a Computation, values: &[Register]) -> Expression<'a> {
        let parameters = computation.parameters().iter().copied();
        let leaves = parameters.zip(values.iter().copied().map(Leaf::Value)).collect();
        Expression { computation, leaves, known: HashMap::new() }
    }

    /// Returns the computation that contains the instructions.
    pub fn computation(&self) -> &'a Computation {
        self.computation
    }

    /// Discards the computed values. Call it when the loop ends in which they were computed.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// Returns the elements of an instruction at coordinates, one per dimension. `None` if the device lacks one of the
    /// operations.
    ///
    /// Computed values are reused. Therefore all calls must be in the same loop body, or [`Expression::forget`] must be
    /// called in between.
    pub fn value(&mut self, b: &mut ProgramBuilder, id: InstrId, at: &[Coordinate]) -> Result<Option<Register>> {
        let key = (id, at.to_vec());
        if let Some(&register) = self.known.get(&key) {
            return Ok(Some(register));
        }
        let value = match self.leaves.get(&id) {
            Some(&Leaf::Tensor(tensor)) => Some(b.load(tensor, at)),
            Some(&Leaf::Value(register)) => Some(register),
            None => self.compute(b, id, at)?,
        };
        self.known.extend(value.map(|register| (key, register)));
        Ok(value)
    }

    /// Computes an instruction that is not a leaf.
    fn compute(&mut self, b: &mut ProgramBuilder, id: InstrId, at: &[Coordinate]) -> Result<Option<Register>> {
        let instruction = &self.computation[id];
        let Some(shape) = instruction.shape().as_array() else { return Ok(None) };
        let operand = |i: usize| instruction.operand(i);
        let dims_of = |i: usize| self.computation[operand(i)].shape().expect_array().map(|array| array.dims());
        match instruction.op() {
            Op::Constant(constant) if shape.is_scalar() => {
                Ok(Some(b.splat(shape.element_type(), constant.literal.get(0))))
            }
            Op::Iota(iota) => Ok(Some(b.iota(shape.element_type(), at[iota.dimension].clone()))),
            Op::Copy(_) => self.value(b, operand(0), at),
            Op::Broadcast(op) => {
                let at: Vec<Coordinate> = op.dimensions.iter().map(|&d| at[d].clone()).collect();
                self.value(b, operand(0), &at)
            }
            Op::Transpose(op) => {
                let mut inside = at.to_vec();
                op.permutation.iter().zip(at).for_each(|(&d, coordinate)| inside[d] = coordinate.clone());
                self.value(b, operand(0), &inside)
            }
            Op::Slice(op) => self.value(b, operand(0), &sliced(op, at)),
            Op::Reverse(op) => {
                let mut inside = at.to_vec();
                for &d in &op.dimensions {
                    inside[d] = at[d].clone().scaled(-1, shape.dims()[d] as i64 - 1);
                }
                self.value(b, operand(0), &inside)
            }
            Op::Pad(op) => self.pad(b, op, [operand(0), operand(1)], dims_of(0)?, at),
            Op::Concatenate(op) => self.concatenate(b, instruction.operands(), op.dimension, at),
            Op::DynamicSlice(op) => self.dynamic_slice(b, op, instruction.operands(), dims_of(0)?, at),
            op => match vector_op(op) {
                Some(op) => self.elementwise(b, id, op, at),
                None => Ok(None),
            },
        }
    }

    /// Computes the operands at the same coordinates, then applies the operation.
    fn elementwise(
        &mut self,
        b: &mut ProgramBuilder,
        id: InstrId,
        op: VectorOp,
        at: &[Coordinate],
    ) -> Result<Option<Register>> {
        let (instruction, ty) = (&self.computation[id], self.computation[id].shape().expect_array()?.element_type());
        let mut operands = Vec::with_capacity(3);
        for &operand in instruction.operands() {
            let shape = self.computation[operand].shape().expect_array()?;
            if op == VectorOp::BitcastConvert && shape.element_type().bit_width() != ty.bit_width() {
                return Ok(None);
            }
            // A scalar operand of an elementwise operation is broadcast to all elements.
            let at = match shape.rank() {
                0 => &[],
                rank if rank == at.len() => at,
                _ => return Ok(None),
            };
            let Some(register) = self.value(b, operand, at)? else { return Ok(None) };
            operands.push(register);
        }
        Ok(Some(b.vector(ty, op, operands)))
    }

    /// Selects the array in lanes within its bounds, otherwise the padding value.
    fn pad(
        &mut self,
        b: &mut ProgramBuilder,
        op: &Pad,
        [array, padding]: [InstrId; 2],
        dims: &[usize],
        at: &[Coordinate],
    ) -> Result<Option<Register>> {
        if op.dims.iter().any(|dim| dim.interior > 0) {
            return Ok(None);
        }
        let inside: Vec<Coordinate> = at.iter().zip(&op.dims).map(|(c, dim)| c.clone().scaled(1, -dim.low)).collect();
        let (Some(array), Some(padding)) = (self.value(b, array, &inside)?, self.value(b, padding, &[])?) else {
            return Ok(None);
        };
        Ok(Some(b.choose(array, padding, inside.into_iter().zip(dims.iter().copied()).collect())))
    }

    /// Selects, in each lane, the array that contains the lane's coordinate.
    fn concatenate(
        &mut self,
        b: &mut ProgramBuilder,
        arrays: &[InstrId],
        dimension: usize,
        at: &[Coordinate],
    ) -> Result<Option<Register>> {
        let mut result: Option<Register> = None;
        let mut start = 0;
        for &array in arrays {
            let size = self.computation[array].shape().expect_array()?.dims()[dimension];
            let mut inside = at.to_vec();
            inside[dimension] = at[dimension].clone().scaled(1, -start);
            let place = inside[dimension].clone();
            let Some(value) = self.value(b, array, &inside)? else { return Ok(None) };
            result = Some(result.map_or(value, |before| b.choose(value, before, vec![(place, size)])));
            start += size as i64;
        }
        Ok(result)
    }

    /// Reads the starts into index registers and adds them to the coordinates.
    fn dynamic_slice(
        &mut self,
        b: &mut ProgramBuilder,
        op: &DynamicSlice,
        operands: &[InstrId],
        dims: &[usize],
        at: &[Coordinate],
    ) -> Result<Option<Register>> {
        let (array, starts) = (operands[0], &operands[1..]);
        let mut inside = Vec::with_capacity(at.len());
        for (d, coordinate) in at.iter().enumerate() {
            // Either one start operand per dimension, or a single vector of starts.
            let Some(start) = starts.get(d).or(starts.last()) else { return Ok(None) };
            let Some(&Leaf::Tensor(tensor)) = self.leaves.get(start) else { return Ok(None) };
            let start = b.load_start(tensor, d, dims[d] - op.sizes[d]);
            inside.push(coordinate.clone().plus(&start));
        }
        self.value(b, array, &inside)
    }
}

/// Maps coordinates in a slice to coordinates in its operand.
fn sliced(op: &Slice, at: &[Coordinate]) -> Vec<Coordinate> {
    let ranges = at.iter().zip(&op.ranges);
    ranges.map(|(coordinate, range)| coordinate.clone().scaled(range.stride as i64, range.start as i64)).collect()
}

/// Returns the vector instruction that implements an operation.
fn vector_op(op: &Op) -> Option<VectorOp> {
    Some(match op {
        Op::Unary(unary) => VectorOp::Unary(unary.op),
        Op::Binary(binary) => VectorOp::Binary(binary.op),
        Op::Compare(compare) => VectorOp::Compare(compare.clone()),
        Op::Select(_) => VectorOp::Select,
        Op::Clamp(_) => VectorOp::Clamp,
        Op::Convert(_) => VectorOp::Convert,
        Op::BitcastConvert(_) => VectorOp::BitcastConvert,
        Op::ReducePrecision(op) => VectorOp::ReducePrecision(op.clone()),
        _ => return None,
    })
}
