//! Adds instructions to a computation that is there: each method infers its result's shape.

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::{
    Binary, BinaryOp, Broadcast, Compare, CompareDirection, Concatenate, Constant, Convert, GetTupleElement, Iota,
    Reduce, Reshape, Select, ShapeContext, Slice, SliceRange, Tuple, Unary, UnaryOp,
};
use xla_hlo::{
    ArrayShape, CompId, Computation, ElementKind, ElementType, InstrId, Instruction, Literal, Module, Op, Result,
    Scalar, Shape,
};

/// Writes instructions into one computation of a module.
pub struct Writer<'m> {
    module: &'m mut Module,
    computation: CompId,
}

impl<'m> Writer<'m> {
    pub fn new(module: &'m mut Module, computation: CompId) -> Writer<'m> {
        Writer { module, computation }
    }

    /// The computation that is written into.
    pub fn graph(&self) -> &Computation {
        &self.module[self.computation]
    }

    pub fn module(&mut self) -> &mut Module {
        self.module
    }

    pub fn graph_mut(&mut self) -> &mut Computation {
        self.module.computation_mut(self.computation)
    }

    pub fn operands(&self, id: InstrId) -> Vec<InstrId> {
        self.graph()[id].operands().to_vec()
    }

    pub fn shape(&self, id: InstrId) -> &Shape {
        self.graph()[id].shape()
    }

    /// An array's shape; an error for what is no array.
    pub fn array(&self, id: InstrId) -> Result<&ArrayShape> {
        self.shape(id).expect_array()
    }

    pub fn dims(&self, id: InstrId) -> Vec<usize> {
        self.shape(id).as_array().map(|a| a.dims().to_vec()).unwrap_or_default()
    }

    pub fn element_type(&self, id: InstrId) -> Result<ElementType> {
        Ok(self.array(id)?.element_type())
    }

    /// Any operation. `shape` is needed where it does not follow from operands and attributes.
    pub fn add(&mut self, op: impl Into<Op>, shape: Option<Shape>, operands: &[InstrId]) -> Result<InstrId> {
        let op = op.into();
        let shapes: Vec<&Shape> = operands.iter().map(|&o| self.shape(o)).collect();
        let cx = ShapeContext::new(self.module, &shapes, shape.as_ref());
        let inferred = op.rules().infer_shape(&cx).map_err(|e| e.context(op.opcode()))?;
        let shape = shape.unwrap_or(inferred).with_default_layouts();
        Ok(self.graph_mut().add(Instruction::new(op, shape, operands.to_vec())))
    }

    pub fn unary(&mut self, op: UnaryOp, x: InstrId) -> Result<InstrId> {
        self.add(Unary::from(op), None, &[x])
    }

    pub fn binary(&mut self, op: BinaryOp, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.add(Binary { op }, None, &[x, y])
    }

    /// `x op value`, with the value in every element.
    pub fn binary_with(&mut self, op: BinaryOp, x: InstrId, value: Scalar) -> Result<InstrId> {
        let shape = self.array(x)?.clone();
        let y = self.splat(&shape, value)?;
        self.binary(op, x, y)
    }

    pub fn compare(&mut self, direction: CompareDirection, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.add(Compare::new(direction), None, &[x, y])
    }

    pub fn select(&mut self, pred: InstrId, on_true: InstrId, on_false: InstrId) -> Result<InstrId> {
        self.add(Select, None, &[pred, on_true, on_false])
    }

    /// The same numbers in that type; `x` itself where it has it.
    pub fn convert(&mut self, x: InstrId, to: ElementType) -> Result<InstrId> {
        if self.element_type(x)? == to {
            return Ok(x);
        }
        let shape = self.array(x)?.clone().with_layout(None).with_element_type(to);
        self.add(Convert, Some(shape.into()), &[x])
    }

    /// The same bits in that type, which is as wide.
    pub fn same_bits(&mut self, x: InstrId, to: ElementType) -> Result<InstrId> {
        if self.element_type(x)? == to {
            return Ok(x);
        }
        let shape = self.array(x)?.clone().with_layout(None).with_element_type(to);
        self.add(xla_hlo::ops::BitcastConvert, Some(shape.into()), &[x])
    }

    pub fn literal(&mut self, literal: Literal) -> Result<InstrId> {
        let shape = literal.shape().clone();
        self.add(Constant { literal }, Some(shape), &[])
    }

    /// An array of that shape with the value in every element.
    pub fn splat(&mut self, shape: &ArrayShape, value: Scalar) -> Result<InstrId> {
        let scalar = self.literal(Literal::scalar(shape.element_type(), value))?;
        self.broadcast(scalar, shape.dims(), &[])
    }

    /// Operand dimension `i` becomes dimension `dimensions[i]` of `dims`; a scalar that stays one is not copied.
    pub fn broadcast(&mut self, x: InstrId, dims: &[usize], dimensions: &[usize]) -> Result<InstrId> {
        let ty = self.element_type(x)?;
        if dims.is_empty() && dimensions.is_empty() {
            return Ok(x);
        }
        self.add(Broadcast { dimensions: dimensions.to_vec() }, Some(Shape::array(ty, dims)), &[x])
    }

    pub fn reshape(&mut self, x: InstrId, dims: &[usize]) -> Result<InstrId> {
        if self.dims(x) == dims {
            return Ok(x);
        }
        let ty = self.element_type(x)?;
        self.add(Reshape { inferred_dimension: None }, Some(Shape::array(ty, dims)), &[x])
    }

    /// Elements from `start` to `limit` along one dimension.
    pub fn slice(&mut self, x: InstrId, dimension: usize, start: usize, limit: usize) -> Result<InstrId> {
        let dims = self.dims(x);
        if start == 0 && limit == dims[dimension] {
            return Ok(x);
        }
        let range = |(d, &size): (usize, &usize)| {
            let (start, limit) = if d == dimension { (start, limit) } else { (0, size) };
            SliceRange { start, limit, stride: 1 }
        };
        let ranges = dims.iter().enumerate().map(range).collect();
        self.add(Slice { ranges }, None, &[x])
    }

    pub fn concatenate(&mut self, operands: &[InstrId], dimension: usize) -> Result<InstrId> {
        self.add(Concatenate { dimension }, None, operands)
    }

    pub fn iota(&mut self, ty: ElementType, dims: &[usize], dimension: usize) -> Result<InstrId> {
        self.add(Iota { dimension }, Some(Shape::array(ty, dims)), &[])
    }

    pub fn tuple(&mut self, elements: &[InstrId]) -> Result<InstrId> {
        self.add(Tuple, None, elements)
    }

    pub fn get(&mut self, tuple: InstrId, index: usize) -> Result<InstrId> {
        self.add(GetTupleElement { index }, None, &[tuple])
    }

    /// The sum over dimensions; of truth values, whether one is true.
    pub fn sum(&mut self, x: InstrId, dimensions: &[usize]) -> Result<InstrId> {
        let ty = self.element_type(x)?;
        let op = if ty.kind() == ElementKind::Pred { BinaryOp::Or } else { BinaryOp::Add };
        let computation = self.combiner(op, ty)?;
        let zero = self.literal(Literal::scalar(ty, Scalar::zero(ty)))?;
        self.add(Reduce { dimensions: dimensions.to_vec(), computation }, None, &[x, zero])
    }

    /// A new computation that combines two scalars.
    fn combiner(&mut self, op: BinaryOp, ty: ElementType) -> Result<CompId> {
        let mut scratch = ModuleBuilder::new("scratch");
        let mut b = scratch.computation("combine");
        let (x, y) = (b.parameter(Shape::scalar(ty))?, b.parameter(Shape::scalar(ty))?);
        let root = b.instruction(Binary { op }, None, [x, y])?;
        let main = b.finish(root);
        let computation = scratch.finish(main)?.entry().clone();
        Ok(self.module.add(computation))
    }
}
