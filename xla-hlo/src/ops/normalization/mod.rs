//! Batch normalisation and its gradient.

mod attributes;
mod eval;
mod proto;
mod shape;
#[cfg(test)]
mod tests;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Error, Literal, Result, Shape};

/// Kind of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchNormKind {
    /// `(x, scale, offset)` to `(normalised x, mean, variance)`, the statistics being those of `x`.
    Training,
    /// `(x, scale, offset, mean, variance)` to the normalised `x`.
    Inference,
    /// `(x, scale, mean, variance, gradient of the result)` to the gradients of `(x, scale, offset)`.
    Grad,
}

impl BatchNormKind {
    fn from_opcode(opcode: Opcode) -> Result<BatchNormKind> {
        match opcode {
            Opcode::BatchNormTraining => Ok(BatchNormKind::Training),
            Opcode::BatchNormInference => Ok(BatchNormKind::Inference),
            Opcode::BatchNormGrad => Ok(BatchNormKind::Grad),
            other => Err(Error::internal(format!("{other} is not a batch normalisation"))),
        }
    }
}

/// Number that is added to a variance before its root is taken: an `f32`, held as bits so that it can be compared and
/// hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epsilon(u32);

impl Epsilon {
    /// That number.
    pub fn new(value: f32) -> Epsilon {
        Epsilon(value.to_bits())
    }

    /// The number.
    pub fn get(self) -> f32 {
        f32::from_bits(self.0)
    }
}

/// Normalisation over all dimensions but one, the features: `(x - mean) / sqrt(variance + epsilon) * scale + offset`.
///
/// `x` is an array of floats; scale, offset, mean and variance are vectors with an element for each feature. The
/// variance is the biased one: squares are divided by how many elements a feature has. Statistics of no elements are
/// NaN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BatchNorm {
    /// Kind of the operation.
    pub kind: BatchNormKind,
    /// Added to the variance.
    pub epsilon: Epsilon,
    /// The dimension of `x` that counts features.
    pub feature_index: usize,
}

impl ReadAttributes for BatchNorm {
    fn read(opcode: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        let kind = BatchNormKind::from_opcode(opcode)?;
        Ok(BatchNorm { kind, epsilon: r.required("epsilon")?, feature_index: r.required("feature_index")? })
    }
}

impl OpRules for BatchNorm {
    fn opcode(&self) -> Opcode {
        match self.kind {
            BatchNormKind::Training => Opcode::BatchNormTraining,
            BatchNormKind::Inference => Opcode::BatchNormInference,
            BatchNormKind::Grad => Opcode::BatchNormGrad,
        }
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::batch_norm(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("epsilon", &self.epsilon);
        w.attribute("feature_index", &self.feature_index);
    }

    fn evaluate(&self, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::batch_norm(self, &operands, shape)
    }
}
