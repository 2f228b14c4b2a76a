//! Value of an instruction at an index.

use xla_hlo::ops::{Family, Op, UnaryOp};
use xla_hlo::{Computation, ElementKind, ElementType, Error, InstrId, Literal, Result};

use crate::elemental::{self, Value};
use crate::fused::core::address::Number;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::value::Source;
use crate::math::gpu;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Computes the value of an array instruction at an index, with the width of the index.
    pub(crate) fn element(&mut self, id: InstrId, index: &Index) -> Result<Value<'e, 'ctx>> {
        let values = self.elements(id, index)?;
        values.first().copied().ok_or_else(|| Error::internal(format!("%{} has no element", self.graph()[id].name())))
    }

    /// Computes the values of an instruction at an index: one for an array, several for a tuple of arrays.
    pub(crate) fn elements(&mut self, id: InstrId, index: &Index) -> Result<Vec<Value<'e, 'ctx>>> {
        let width = self.width(index);
        if self.guard != self.branch && is_single(self.graph(), id) {
            let values = self.single(id)?;
            return Ok(values.into_iter().map(|v| v.splat(width)).collect());
        }
        self.for_width(width, |s| s.elements_of_width(id, index, width))
    }

    fn elements_of_width(&mut self, id: InstrId, index: &Index, width: u32) -> Result<Vec<Value<'e, 'ctx>>> {
        let key = (id, index.clone(), self.guard);
        if let Some(known) = self.values.get(&key) {
            return Ok(known.clone());
        }
        let level = self.level(index);
        let values = self.at_level(level, |s| {
            let values = match s.kept(id, index)? {
                Some(value) => vec![value],
                None => s.compute(id, index)?,
            };
            if let [value] = values[..] {
                s.keep(id, index, value.splat(width))?;
            }
            Ok(values.into_iter().map(|v| v.splat(width)).collect::<Vec<_>>())
        })?;
        self.values.insert(key, values.clone());
        Ok(values)
    }

    /// Computes the only element of an array without the current guard: its index is always valid, and all users share
    /// one value in front of the loops, whatever their guards. A branch computes its own.
    fn single(&mut self, id: InstrId) -> Result<Vec<Value<'e, 'ctx>>> {
        let rank = self.graph()[id].shape().expect_array()?.rank();
        let outer = std::mem::replace(&mut self.guard, self.branch);
        let values = self.elements(id, &vec![AffineExpr::default(); rank]);
        self.guard = outer;
        values
    }

    fn compute(&mut self, id: InstrId, index: &Index) -> Result<Vec<Value<'e, 'ctx>>> {
        if let Some(&value) = self.registers.get(&id) {
            return Ok(vec![value]);
        }
        if let Some(source) = self.sources.get(&id).cloned() {
            return Ok(vec![self.load(id, &source, index)?]);
        }
        let instruction = &self.graph()[id];
        let operands = instruction.operands();
        let one = |value: Result<Value<'e, 'ctx>>| value.map(|v| vec![v]);
        match instruction.op() {
            Op::Constant(c) => one(self.constant(id, &c.literal, index)),
            Op::GetTupleElement(gte) => {
                let tuple = self.elements(operands[0], index)?;
                let value = tuple.get(gte.index).copied();
                one(value.ok_or_else(|| {
                    Error::internal(format!(
                        "%{} selects tuple element {}, which does not exist",
                        instruction.name(),
                        gte.index
                    ))
                }))
            }
            op if op.opcode().family() == Family::Elementwise => {
                let operands =
                    operands.iter().map(|&o| self.element_or_scalar(o, index)).collect::<Result<Vec<_>>>()?;
                if let Some(exponential) = self.brief_exponential(op, &operands) {
                    return Ok(vec![exponential]);
                }
                let result = instruction.shape().expect_array()?.element_type();
                one(elemental::operation(self.emitter, op, &operands, result))
            }
            Op::Copy(_)
            | Op::OptBarrier(_)
            | Op::Broadcast(_)
            | Op::Reshape(_)
            | Op::Bitcast(_)
            | Op::Transpose(_)
            | Op::Slice(_)
            | Op::Reverse(_)
            | Op::Pad(_)
            | Op::Concatenate(_)
            | Op::Iota(_)
            | Op::DynamicSlice(_)
            | Op::DynamicUpdateSlice(_)
            | Op::Gather(_) => one(self.moved(id, index)),
            Op::Map(map) => {
                let arguments = operands.iter().map(|&o| self.element(o, index)).collect::<Result<Vec<_>>>()?;
                self.call(map.computation, &arguments)
            }
            Op::Dot(dot) => one(self.contracted(id, dot, index)),
            Op::Convolution(convolution) => one(self.convolved(id, convolution, index)),
            Op::Reduce(reduce) => self.reduced(id, reduce, index),
            Op::ReduceWindow(reduce) => self.window_reduced(id, reduce, index),
            _ => Err(Error::internal(format!(
                "%{} ({}) cannot be emitted element by element",
                instruction.name(),
                instruction.opcode()
            ))),
        }
    }

    /// Returns an approximate exponential if the operation is one and the kernel allows it.
    fn brief_exponential(&self, op: &Op, operands: &[Value<'e, 'ctx>]) -> Option<Value<'e, 'ctx>> {
        let (Op::Unary(unary), &[x]) = (op, operands) else { return None };
        let may = self.brief && unary.op == UnaryOp::Exponential && x.element_type() == ElementType::F32;
        may.then(|| Value::new(ElementType::F32, gpu::exp_of_negative(x.lanes())))
    }

    /// Computes the element at the index, or the only element of a scalar operand among arrays.
    fn element_or_scalar(&mut self, id: InstrId, index: &Index) -> Result<Value<'e, 'ctx>> {
        let is_scalar = self.graph()[id].shape().expect_array()?.is_scalar();
        let value = if is_scalar { self.element(id, &Vec::new())? } else { self.element(id, index)? };
        let width = self.width(index);
        Ok(value.splat(width))
    }

    fn constant(&mut self, id: InstrId, literal: &Literal, index: &Index) -> Result<Value<'e, 'ctx>> {
        let shape = literal.array_shape();
        let ty = shape.element_type();
        if let Some(value) = literal.uniform() {
            return Ok(elemental::constant(self.emitter, ty, value));
        }
        let base = elemental::constant_array(self.emitter, literal)?;
        self.load(id, &Source { base, shape: shape.clone() }, index)
    }

    /// Converts a coordinate to a value of an element type.
    pub(crate) fn coordinate_value(&mut self, expr: &AffineExpr, ty: ElementType) -> Result<Value<'e, 'ctx>> {
        let small = expr.bounds(&self.symbols).is_some_and(|(low, high)| low >= 0 && high <= i64::from(i32::MAX));
        let number = self.number_of(expr)?;
        let lanes = match (number, small) {
            (Number::Strided { base, stride, width }, true) => {
                base.trunc(32).splat(width) + self.emitter.lane_numbers(32, width) * stride
            }
            (number, true) => self.lanes_of(number).trunc(32),
            (number, false) => self.lanes_of(number),
        };
        let from = if small { ElementType::S32 } else { ElementType::S64 };
        // Iota wraps to narrow integers; the conversion from the wide integer does that.
        let to = ty;
        debug_assert!(ty.kind() != ElementKind::Pred);
        elemental::convert(self.emitter, Value::new(from, lanes), to)
    }
}

/// Whether an instruction is an array of one element.
pub(crate) fn is_single(graph: &Computation, id: InstrId) -> bool {
    graph[id].shape().as_array().is_some_and(|shape| shape.is_static() && shape.element_count() == 1)
}
