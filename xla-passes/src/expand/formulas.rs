//! Formulas: functions of floats expressed by simpler ones, emitted over arrays.

use std::collections::BTreeSet;

use xla_hlo::ops::{BinaryOp, CompareDirection, UnaryOp};
use xla_hlo::{ElementType, InstrId, Opcode, Result, Scalar};

use crate::rewrite::builder::Inserter;

/// Function that emits a formula.
pub(super) type Formula = fn(&mut Formulas<'_, '_>, InstrId) -> Result<InstrId>;

/// Emitter of formulas over arrays of one float type, `f32` or `f64`.
pub(super) struct Formulas<'a, 'm> {
    pub(super) at: &'a mut Inserter<'m>,
    pub(super) lacks: &'a BTreeSet<Opcode>,
    pub(super) ty: ElementType,
    /// Lookup table of the formulas.
    pub(super) formula: fn(UnaryOp) -> Option<Formula>,
}

/// Building blocks of the formulas.
impl Formulas<'_, '_> {
    /// Emits a function, by its formula if the target lacks it.
    pub(super) fn unary(&mut self, op: UnaryOp, x: InstrId) -> Result<InstrId> {
        match (self.formula)(op).filter(|_| self.lacks.contains(&op.opcode())) {
            Some(formula) => formula(self, x),
            None => self.at.unary(op, x),
        }
    }

    pub(super) fn add(&mut self, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.at.binary(BinaryOp::Add, x, y)
    }

    pub(super) fn subtract(&mut self, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.at.binary(BinaryOp::Subtract, x, y)
    }

    pub(super) fn multiply(&mut self, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.at.binary(BinaryOp::Multiply, x, y)
    }

    pub(super) fn divide(&mut self, x: InstrId, y: InstrId) -> Result<InstrId> {
        self.at.binary(BinaryOp::Divide, x, y)
    }

    pub(super) fn plus(&mut self, x: InstrId, value: f64) -> Result<InstrId> {
        self.at.binary_with(BinaryOp::Add, x, Scalar::Float(value))
    }

    pub(super) fn times(&mut self, x: InstrId, value: f64) -> Result<InstrId> {
        self.at.binary_with(BinaryOp::Multiply, x, Scalar::Float(value))
    }

    /// Emits a constant in the shape of `like`.
    pub(super) fn constant(&mut self, like: InstrId, value: f64) -> Result<InstrId> {
        let shape = self.at.array(like)?.clone();
        self.at.splat(&shape, Scalar::Float(value))
    }

    pub(super) fn compare(&mut self, x: InstrId, direction: CompareDirection, value: f64) -> Result<InstrId> {
        let value = self.constant(x, value)?;
        self.at.compare(direction, x, value)
    }

    /// Emits a select of `then` if the comparison of `x` with the value holds, and of `otherwise` if not.
    pub(super) fn when(
        &mut self,
        (x, direction, value): (InstrId, CompareDirection, f64),
        then: InstrId,
        otherwise: InstrId,
    ) -> Result<InstrId> {
        let is = self.compare(x, direction, value)?;
        self.at.select(is, then, otherwise)
    }

    pub(super) fn abs(&mut self, x: InstrId) -> Result<InstrId> {
        self.unary(UnaryOp::Abs, x)
    }

    /// Emits the odd function that equals `y` for positive `x`; -0 at -0.
    pub(super) fn odd(&mut self, x: InstrId, y: InstrId) -> Result<InstrId> {
        let sign = self.unary(UnaryOp::Sign, x)?;
        self.multiply(y, sign)
    }

    /// Returns `single` for `f32` and `double` for `f64`.
    pub(super) fn choose(&self, single: f64, double: f64) -> f64 {
        if self.ty == ElementType::F64 { double } else { single }
    }
}
