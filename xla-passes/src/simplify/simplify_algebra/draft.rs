//! Drafts: the computation that a rule inspects, and the instructions that it proposes.

use xla_hlo::ops::{Binary, BinaryOp, Broadcast, Constant, Reshape, Transpose};
use xla_hlo::{ArrayShape, CompId, Computation, ElementType, InstrId, Instruction, Literal, Module, Op, Scalar, Shape};

use crate::TargetProfile;

/// A value in a draft: an existing instruction or one that the draft adds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DraftValue {
    /// An instruction of the computation.
    Old(InstrId),
    /// A proposed instruction, by position.
    New(usize),
}

impl From<InstrId> for DraftValue {
    fn from(id: InstrId) -> DraftValue {
        DraftValue::Old(id)
    }
}

/// An instruction that a rule proposes.
pub struct Proposed {
    /// Operation of the instruction.
    pub op: Op,
    /// Shape of the result; layouts are added later.
    pub shape: Shape,
    /// Operands of the instruction.
    pub operands: Vec<DraftValue>,
}

/// The computation and the proposals of a rule so far.
pub struct Draft<'c> {
    module: &'c Module,
    computation: &'c Computation,
    profile: &'c TargetProfile,
    proposed: Vec<Proposed>,
}

impl<'c> Draft<'c> {
    /// Creates an empty draft.
    pub fn new(module: &'c Module, computation: CompId, profile: &'c TargetProfile) -> Draft<'c> {
        Draft { module, computation: &module[computation], profile, proposed: Vec::new() }
    }

    /// Returns the proposed instructions, operands before users.
    pub fn into_proposed(self) -> Vec<Proposed> {
        self.proposed
    }

    /// Returns the target profile.
    pub fn profile(&self) -> &'c TargetProfile {
        self.profile
    }

    /// Returns a called computation.
    pub fn called(&self, id: CompId) -> &'c Computation {
        &self.module[id]
    }

    /// Returns an instruction.
    pub fn instruction(&self, id: InstrId) -> &'c Instruction {
        &self.computation[id]
    }

    /// Returns the operation of an instruction.
    pub fn op(&self, id: InstrId) -> &'c Op {
        self.computation[id].op()
    }

    /// Returns an operand of an instruction.
    pub fn operand(&self, id: InstrId, i: usize) -> InstrId {
        self.computation[id].operand(i)
    }

    /// Returns the array shape of an instruction; `None` for tuples and tokens.
    pub fn shape(&self, id: InstrId) -> Option<&'c ArrayShape> {
        self.computation[id].shape().as_array()
    }

    /// Returns the sizes of an array; empty for other shapes.
    pub fn dims(&self, id: InstrId) -> &'c [usize] {
        self.shape(id).map_or(&[], ArrayShape::dims)
    }

    /// Returns the element type of an array.
    pub fn element_type(&self, id: InstrId) -> Option<ElementType> {
        self.shape(id).map(ArrayShape::element_type)
    }

    /// Whether `id` has exactly one user, the instruction under consideration, and is not the root.
    pub fn is_used_once(&self, id: InstrId) -> bool {
        self.computation[id].users().len() == 1 && self.computation.root() != id
    }

    /// Whether an instruction is the root of the computation.
    pub fn is_root(&self, id: InstrId) -> bool {
        self.computation.root() == id
    }

    /// Returns the value of all elements of a splat: a constant with equal elements, or a broadcast of one.
    pub fn splat(&self, mut id: InstrId) -> Option<Scalar> {
        while let Op::Broadcast(_) | Op::Reshape(_) = self.op(id) {
            id = self.operand(id, 0);
        }
        match self.op(id) {
            Op::Constant(constant) => constant.literal.uniform(),
            _ => None,
        }
    }

    /// Returns the splat value as a real float.
    pub fn float_splat(&self, id: InstrId) -> Option<f64> {
        match self.splat(id)? {
            Scalar::Float(v) => Some(v),
            _ => None,
        }
    }

    /// Returns the splat value as an integer.
    pub fn integer_splat(&self, id: InstrId) -> Option<i128> {
        self.splat(id)?.as_i128()
    }

    /// Proposes an instruction.
    pub fn add(&mut self, op: impl Into<Op>, shape: ArrayShape, operands: impl Into<Vec<DraftValue>>) -> DraftValue {
        self.proposed.push(Proposed { op: op.into(), shape: Shape::Array(shape), operands: operands.into() });
        DraftValue::New(self.proposed.len() - 1)
    }

    /// Proposes the operation of `id` on other operands, in the same shape.
    pub fn same(&mut self, id: InstrId, operands: impl Into<Vec<DraftValue>>) -> Option<DraftValue> {
        let shape = self.shape(id)?.clone();
        Some(self.add(self.op(id).clone(), shape, operands))
    }

    /// Proposes a binary operation in the shape of `like`.
    pub fn binary(
        &mut self,
        op: BinaryOp,
        like: InstrId,
        lhs: impl Into<DraftValue>,
        rhs: impl Into<DraftValue>,
    ) -> Option<DraftValue> {
        let shape = self.shape(like)?.clone();
        Some(self.add(Binary { op }, shape, [lhs.into(), rhs.into()]))
    }

    /// Proposes a reshape, or returns `x` if it already has these dimensions.
    pub fn reshape(&mut self, x: InstrId, dims: &[usize]) -> Option<DraftValue> {
        let shape = self.shape(x)?;
        if shape.dims() == dims {
            return Some(x.into());
        }
        let new = ArrayShape::new(shape.element_type(), dims);
        Some(self.add(plain_reshape(), new, [x.into()]))
    }

    /// Proposes a broadcast to `shape`.
    pub fn broadcast(&mut self, x: impl Into<DraftValue>, shape: ArrayShape, dimensions: Vec<usize>) -> DraftValue {
        self.add(Broadcast { dimensions }, shape, [x.into()])
    }

    /// Proposes a transpose.
    pub fn transpose(&mut self, x: impl Into<DraftValue>, shape: ArrayShape, permutation: Vec<usize>) -> DraftValue {
        self.add(Transpose { permutation }, shape, [x.into()])
    }

    /// Proposes an array of `shape` filled with the scalar `x`.
    pub fn splat_from(&mut self, x: InstrId, shape: ArrayShape) -> DraftValue {
        if shape.is_scalar() { x.into() } else { self.broadcast(x, shape, Vec::new()) }
    }

    /// Proposes an array of `shape` filled with `value`.
    pub fn splat_of(&mut self, shape: &ArrayShape, value: Scalar) -> DraftValue {
        let ty = shape.element_type();
        let literal = Literal::scalar(ty, value);
        let scalar = self.add(Constant { literal }, ArrayShape::scalar(ty), []);
        if shape.is_scalar() { scalar } else { self.broadcast(scalar, shape.clone(), Vec::new()) }
    }
}

/// Returns a reshape operation without an inferred dimension.
pub fn plain_reshape() -> Reshape {
    Reshape { inferred_dimension: None }
}
