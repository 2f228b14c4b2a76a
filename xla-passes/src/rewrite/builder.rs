//! Inserts instructions into a computation, with the shapes that the rules of their operations infer.

use xla_hlo::ops::{
    Binary, BinaryOp, BitcastConvert, Broadcast, Compare, CompareDirection, Concatenate, Constant, Convert,
    GetTupleElement, Iota, Parameter, Reduce, Reshape, Select, ShapeContext, Slice, SliceRange, Tuple, Unary, UnaryOp,
};
use xla_hlo::{
    ArrayShape, CompId, Computation, ElementKind, ElementType, InstrId, Instruction, Literal, Module, Op, Result,
    Scalar, Shape,
};

/// Adds instructions to one computation of a module. Arrays have a row-major layout.
///
/// Methods without effect (such as a conversion to the present type) return their operand.
pub(crate) struct Inserter<'m> {
    module: &'m mut Module,
    computation: CompId,
}

/// Queries.
impl<'m> Inserter<'m> {
    /// Creates an inserter for a computation.
    pub fn new(module: &'m mut Module, computation: CompId) -> Inserter<'m> {
        Inserter { module, computation }
    }

    pub fn module(&self) -> &Module {
        self.module
    }

    pub fn module_mut(&mut self) -> &mut Module {
        self.module
    }

    /// Returns the computation.
    pub fn graph(&self) -> &Computation {
        &self.module[self.computation]
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

    /// Returns the shape of an array, and an error for other shapes.
    pub fn array(&self, id: InstrId) -> Result<&ArrayShape> {
        self.shape(id).expect_array()
    }

    /// Returns the dimensions of an array; empty for other shapes.
    pub fn dims(&self, id: InstrId) -> Vec<usize> {
        self.shape(id).as_array().map(|a| a.dims().to_vec()).unwrap_or_default()
    }

    pub fn element_type(&self, id: InstrId) -> Result<ElementType> {
        Ok(self.array(id)?.element_type())
    }
}

/// Arbitrary operations.
impl Inserter<'_> {
    /// Adds an operation whose shape follows from its operands and attributes.
    pub fn add(&mut self, op: impl Into<Op>, operands: impl Into<Vec<InstrId>>) -> Result<InstrId> {
        self.insert(op.into(), None, operands.into())
    }

    /// Adds an operation with that shape, which its rules must accept.
    pub fn add_as(
        &mut self,
        op: impl Into<Op>,
        shape: impl Into<Shape>,
        operands: impl Into<Vec<InstrId>>,
    ) -> Result<InstrId> {
        self.insert(op.into(), Some(shape.into()), operands.into())
    }

    fn insert(&mut self, op: Op, shape: Option<Shape>, operands: Vec<InstrId>) -> Result<InstrId> {
        let shapes: Vec<&Shape> = operands.iter().map(|&o| self.shape(o)).collect();
        let cx = ShapeContext::new(self.module, &shapes, shape.as_ref());
        let inferred = op.rules().infer_shape(&cx).map_err(|e| e.context(op.opcode()))?;
        let shape = shape.unwrap_or(inferred).with_default_layouts();
        Ok(self.graph_mut().add(Instruction::new(op, shape, operands)))
    }
}

/// Constants.
impl Inserter<'_> {
    pub fn literal(&mut self, literal: Literal) -> Result<InstrId> {
        let shape = literal.shape().clone();
        self.add_as(Constant { literal }, shape, [])
    }

    pub fn scalar(&mut self, ty: ElementType, value: Scalar) -> Result<InstrId> {
        self.literal(Literal::scalar(ty, value))
    }

    /// Adds an integer constant of that type.
    pub fn integer(&mut self, ty: ElementType, value: i64) -> Result<InstrId> {
        self.scalar(ty, Scalar::from_i64(ty, value))
    }

    /// Adds an array of that shape filled with the value.
    pub fn splat(&mut self, shape: &ArrayShape, value: Scalar) -> Result<InstrId> {
        let scalar = self.scalar(shape.element_type(), value)?;
        self.broadcast(scalar, shape.dims(), &[])
    }

    /// Adds an array of that shape in which all bits are zero.
    pub fn zeros(&mut self, shape: &ArrayShape) -> Result<InstrId> {
        let zero = self.literal(Literal::zeros(&ArrayShape::scalar(shape.element_type()))?)?;
        self.broadcast(zero, shape.dims(), &[])
    }

    /// Adds an array of the index along a dimension.
    pub fn iota(&mut self, ty: ElementType, dims: &[usize], dimension: usize) -> Result<InstrId> {
        self.add_as(Iota { dimension }, Shape::array(ty, dims), [])
    }
}

/// Elementwise operations.
impl Inserter<'_> {
    pub fn unary(&mut self, op: UnaryOp, x: InstrId) -> Result<InstrId> {
        self.add(Unary::from(op), [x])
    }

    pub fn binary(&mut self, op: BinaryOp, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.add(Binary { op }, [x, y])
    }

    /// Adds `x op value`, with the value splat to the shape of `x`.
    pub fn binary_with(&mut self, op: BinaryOp, x: InstrId, value: Scalar) -> Result<InstrId> {
        let shape = self.array(x)?.clone();
        let y = self.splat(&shape, value)?;
        self.binary(op, x, y)
    }

    pub fn compare(&mut self, direction: CompareDirection, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.add(Compare::new(direction), [x, y])
    }

    pub fn select(&mut self, pred: InstrId, on_true: InstrId, on_false: InstrId) -> Result<InstrId> {
        self.add(Select, [pred, on_true, on_false])
    }

    /// Converts numbers to that type.
    pub fn convert(&mut self, x: InstrId, to: ElementType) -> Result<InstrId> {
        if self.element_type(x)? == to {
            return Ok(x);
        }
        self.add_as(Convert, Shape::array(to, self.dims(x)), [x])
    }

    /// Reinterprets bits in that type, which must have the same width.
    pub fn same_bits(&mut self, x: InstrId, to: ElementType) -> Result<InstrId> {
        if self.element_type(x)? == to {
            return Ok(x);
        }
        self.add_as(BitcastConvert, Shape::array(to, self.dims(x)), [x])
    }
}

/// Data movement and reductions.
impl Inserter<'_> {
    /// Maps operand dimension `i` to dimension `dimensions[i]` of `dims`; returns a scalar that stays a scalar.
    pub fn broadcast(&mut self, x: InstrId, dims: &[usize], dimensions: &[usize]) -> Result<InstrId> {
        let shape = self.array(x)?;
        if shape.dims() == dims && dimensions.iter().enumerate().all(|(i, &d)| i == d) {
            return Ok(x);
        }
        let shape = Shape::array(shape.element_type(), dims);
        self.add_as(Broadcast { dimensions: dimensions.to_vec() }, shape, [x])
    }

    /// Reshapes to other dimensions.
    pub fn reshape(&mut self, x: InstrId, dims: &[usize]) -> Result<InstrId> {
        let shape = self.array(x)?;
        if shape.dims() == dims {
            return Ok(x);
        }
        let shape = Shape::array(shape.element_type(), dims);
        self.add_as(Reshape { inferred_dimension: None }, shape, [x])
    }

    /// Slices from `start` to `limit` along one dimension.
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
        self.add(Slice { ranges }, [x])
    }

    pub fn concatenate(&mut self, operands: &[InstrId], dimension: usize) -> Result<InstrId> {
        self.add(Concatenate { dimension }, operands)
    }

    /// Reduces one array with a binary operation.
    pub fn reduce(&mut self, op: BinaryOp, x: InstrId, init: InstrId, dimensions: &[usize]) -> Result<InstrId> {
        let ty = self.element_type(x)?;
        let computation = self.combiner(op, ty);
        self.add(Reduce { dimensions: dimensions.to_vec(), computation }, [x, init])
    }

    /// Sums over dimensions; for booleans, whether any is true.
    pub fn sum(&mut self, x: InstrId, dimensions: &[usize]) -> Result<InstrId> {
        let ty = self.element_type(x)?;
        let op = if ty.kind() == ElementKind::Pred { BinaryOp::Or } else { BinaryOp::Add };
        let zero = self.scalar(ty, Scalar::zero(ty))?;
        self.reduce(op, x, zero, dimensions)
    }

    /// Adds a computation of one binary operation on two scalars.
    pub fn combiner(&mut self, op: BinaryOp, ty: ElementType) -> CompId {
        let mut combiner = Computation::new("combine");
        let shape = Shape::scalar(ty);
        let parameter = |number: usize| Instruction::new(Parameter { number }.into(), shape.clone(), []);
        let (x, y) = (combiner.add(parameter(0)), combiner.add(parameter(1)));
        let root = combiner.add(Instruction::new(Binary { op }.into(), shape.clone(), [x, y]));
        combiner.set_root(root);
        self.module.add(combiner)
    }
}

/// Tuples.
impl Inserter<'_> {
    pub fn tuple(&mut self, elements: &[InstrId]) -> Result<InstrId> {
        self.add(Tuple, elements)
    }

    pub fn get(&mut self, tuple: InstrId, index: usize) -> Result<InstrId> {
        self.add(GetTupleElement { index }, [tuple])
    }
}
