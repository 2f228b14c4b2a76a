//! Batch normalisation and its gradient.

mod attributes;
mod eval;
mod proto;
mod shape;
mod sharding;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Error, Literal, Result, Shape};

/// Kind of batch normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchNormKind {
    /// Maps `(x, scale, offset)` to `(normalised x, mean, variance)`, where mean and variance are computed from `x`.
    Training,
    /// Maps `(x, scale, offset, mean, variance)` to the normalised `x`.
    Inference,
    /// Maps `(x, scale, mean, variance, gradient of the result)` to the gradients of `(x, scale, offset)`.
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

/// Number added to a variance before the square root: an `f32`, stored as bits so that it can be compared and hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epsilon(u32);

impl Epsilon {
    /// Creates an epsilon from its value.
    pub fn new(value: f32) -> Epsilon {
        Epsilon(value.to_bits())
    }

    /// Returns the value.
    pub fn get(self) -> f32 {
        f32::from_bits(self.0)
    }
}

/// Normalisation over all dimensions but the feature dimension:
/// `(x - mean) / sqrt(variance + epsilon) * scale + offset`.
///
/// `x` is an array of floats. Scale, offset, mean and variance are vectors with one element for each feature. The
/// variance is biased: the sum of squares is divided by the number of elements of a feature. Statistics of no elements
/// are NaN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BatchNorm {
    /// Kind of batch normalisation.
    pub kind: BatchNormKind,
    /// Number added to the variance.
    pub epsilon: Epsilon,
    /// The feature dimension of `x`.
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
