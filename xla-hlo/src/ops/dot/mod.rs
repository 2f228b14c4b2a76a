//! Dots: contractions of two arrays.

mod attributes;
mod dims;
mod eval;
mod precision;
mod proto;
mod ragged;
mod scaled;
mod shape;
#[cfg(test)]
mod tests;

pub use dims::{DotDims, DotOperandDims};
pub use precision::{DotAlgorithm, Precision};
pub use ragged::{RaggedDot, RaggedMode};
pub use scaled::ScaledDot;

pub(in crate::ops) use proto::{read_precision_config, write_precision_config};

use super::{OpRules, Opcode, ReadAttributes, ShapeContext, dot_arithmetic};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{ElementType, Error, Literal, Result, Shape};

/// Contraction of two arrays. The result's element type is the written one (preferred element type), of any kind; see
/// [`Dot::sum_type`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dot {
    /// Roles of the dimensions.
    pub dims: DotDims,
    /// One for each operand, or empty for the default.
    pub precision: Vec<Precision>,
    /// Overrides the precision.
    pub algorithm: Option<DotAlgorithm>,
}

impl Dot {
    /// The element type in which sums of products are computed before they are converted to `result`: the result's type
    /// where that can hold more than the operands', otherwise the wider of theirs.
    pub fn sum_type(lhs: ElementType, rhs: ElementType, result: ElementType) -> ElementType {
        dot_arithmetic::sum_type(lhs, rhs, result)
    }
}

fn write_precision(precision: &Vec<Precision>, w: &mut AttributeWriter<'_>) {
    if precision.iter().any(|p| *p != Precision::Default) {
        w.attribute("operand_precision", precision);
    }
}

impl ReadAttributes for Dot {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Dot {
            dims: DotDims::read(r)?,
            precision: r.optional("operand_precision")?.unwrap_or_default(),
            algorithm: r.optional("algorithm")?,
        })
    }
}

impl OpRules for Dot {
    fn opcode(&self) -> Opcode {
        Opcode::Dot
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::dot(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        self.dims.write(w);
        write_precision(&self.precision, w);
        if let Some(algorithm) = &self.algorithm {
            w.attribute("algorithm", algorithm);
        }
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::dot(self, ev, operands, shape)
    }
}
