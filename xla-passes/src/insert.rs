//! Adds instructions to a computation, in the shapes that the rules of their operations give.

use xla_hlo::ops::{
    Binary, BinaryOp, Broadcast, Compare, CompareDirection, Constant, Convert, Iota, Parameter, Reduce, Reshape,
    Select, ShapeContext,
};
use xla_hlo::{
    ArrayShape, CompId, Computation, ElementType, InstrId, Instruction, Literal, Module, Op, Result, Scalar, Shape,
};

/// Where instructions are added. Arrays come in row-major layout.
pub(crate) struct Inserter<'m> {
    module: &'m mut Module,
    computation: CompId,
}

impl<'m> Inserter<'m> {
    /// Adds to that computation.
    pub(crate) fn new(module: &'m mut Module, computation: CompId) -> Inserter<'m> {
        Inserter { module, computation }
    }

    /// The computation that is added to.
    pub(crate) fn computation(&self) -> &Computation {
        &self.module[self.computation]
    }

    /// The same for editing.
    pub(crate) fn computation_mut(&mut self) -> &mut Computation {
        self.module.computation_mut(self.computation)
    }

    /// A called computation.
    pub(crate) fn called(&self, id: CompId) -> Option<&Computation> {
        self.module.get(id)
    }

    /// The shape of an array.
    pub(crate) fn array(&self, id: InstrId) -> Result<ArrayShape> {
        self.computation()[id].shape().expect_array().cloned()
    }

    /// Any operation whose shape follows from its operands.
    pub(crate) fn add(&mut self, op: impl Into<Op>, operands: impl Into<Vec<InstrId>>) -> Result<InstrId> {
        let (op, operands) = (op.into(), operands.into());
        let computation = &self.module[self.computation];
        let shapes: Vec<&Shape> = operands.iter().map(|&o| computation[o].shape()).collect();
        let shape = op.rules().infer_shape(&ShapeContext::new(self.module, &shapes, None))?;
        Ok(self.add_as(op, shape, operands))
    }

    /// Any operation of that shape.
    pub(crate) fn add_as(&mut self, op: impl Into<Op>, shape: Shape, operands: impl Into<Vec<InstrId>>) -> InstrId {
        let instruction = Instruction::new(op.into(), shape.with_default_layouts(), operands);
        self.computation_mut().add(instruction)
    }

    /// A scalar constant.
    pub(crate) fn scalar(&mut self, ty: ElementType, value: Scalar) -> InstrId {
        self.add_as(Constant { literal: Literal::scalar(ty, value) }, Shape::scalar(ty), [])
    }

    /// An integer constant of that type.
    pub(crate) fn integer(&mut self, ty: ElementType, value: i64) -> InstrId {
        self.scalar(ty, Scalar::from_i64(ty, value))
    }

    /// The scalar `x` in every element of an array of `dims`.
    pub(crate) fn splat(&mut self, x: InstrId, dims: &[usize]) -> Result<InstrId> {
        self.broadcast(x, dims, &[])
    }

    /// `x` along new dimensions; its own become `dimensions`. Gives `x` where there is nothing to do.
    pub(crate) fn broadcast(&mut self, x: InstrId, dims: &[usize], dimensions: &[usize]) -> Result<InstrId> {
        let shape = self.array(x)?;
        if shape.dims() == dims && dimensions.iter().enumerate().all(|(i, &d)| i == d) {
            return Ok(x);
        }
        let shape = Shape::array(shape.element_type(), dims);
        Ok(self.add_as(Broadcast { dimensions: dimensions.into() }, shape, [x]))
    }

    /// Zeros of an array shape.
    pub(crate) fn zeros(&mut self, shape: &ArrayShape) -> Result<InstrId> {
        let ty = shape.element_type();
        let literal = Literal::zeros(&ArrayShape::scalar(ty))?;
        let zero = self.add_as(Constant { literal }, Shape::scalar(ty), []);
        self.splat(zero, shape.dims())
    }

    /// The index along dimension `d`.
    pub(crate) fn iota(&mut self, ty: ElementType, dims: &[usize], d: usize) -> InstrId {
        self.add_as(Iota { dimension: d }, Shape::array(ty, dims), [])
    }

    /// Both of them, element by element.
    pub(crate) fn binary(&mut self, op: BinaryOp, a: InstrId, b: InstrId) -> Result<InstrId> {
        self.add(Binary { op }, [a, b])
    }

    /// Whether `a` stands to `b` so, element by element.
    pub(crate) fn compare(&mut self, direction: CompareDirection, a: InstrId, b: InstrId) -> Result<InstrId> {
        self.add(Compare { direction, order: None }, [a, b])
    }

    /// `a` where `choice` holds, else `b`.
    pub(crate) fn select(&mut self, choice: InstrId, a: InstrId, b: InstrId) -> Result<InstrId> {
        self.add(Select, [choice, a, b])
    }

    /// The same numbers in another type.
    pub(crate) fn convert(&mut self, x: InstrId, ty: ElementType) -> Result<InstrId> {
        let shape = self.array(x)?;
        if shape.element_type() == ty {
            return Ok(x);
        }
        Ok(self.add_as(Convert, Shape::array(ty, shape.dims()), [x]))
    }

    /// The same elements under other dimensions.
    pub(crate) fn reshape(&mut self, x: InstrId, dims: &[usize]) -> Result<InstrId> {
        let shape = self.array(x)?;
        if shape.dims() == dims {
            return Ok(x);
        }
        Ok(self.add_as(Reshape { inferred_dimension: None }, Shape::array(shape.element_type(), dims), [x]))
    }

    /// A fold of one array with a binary operation.
    pub(crate) fn fold(&mut self, op: BinaryOp, x: InstrId, init: InstrId, dimensions: &[usize]) -> Result<InstrId> {
        let ty = self.array(x)?.element_type();
        let computation = self.combiner(op, ty);
        self.add(Reduce { dimensions: dimensions.into(), computation }, [x, init])
    }

    /// A computation of one binary operation on two scalars.
    fn combiner(&mut self, op: BinaryOp, ty: ElementType) -> CompId {
        let mut combiner = Computation::new("combine");
        let shape = Shape::scalar(ty);
        let parameter = |number: usize| Instruction::new(Parameter { number }.into(), shape.clone(), []);
        let (a, b) = (combiner.add(parameter(0)), combiner.add(parameter(1)));
        let root = combiner.add(Instruction::new(Binary { op }.into(), shape.clone(), [a, b]));
        combiner.set_root(root);
        self.module.add(combiner)
    }
}
