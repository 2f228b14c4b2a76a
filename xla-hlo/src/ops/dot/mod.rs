//! Dots: contractions of two arrays.

mod attributes;
mod dims;
mod eval;
mod precision;
mod proto;
mod ragged;
mod scaled;
mod shape;
mod sharding;

pub use dims::{DotDims, DotOperandDims};
pub use precision::{DotAlgorithm, Precision};
pub use ragged::{RaggedDot, RaggedMode};
pub use scaled::ScaledDot;

pub(in crate::ops) use proto::{read_precision_config, write_precision_config};

use super::{OpRules, Opcode, ReadAttributes, ShapeContext, dot_arithmetic};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{ElementType, Error, Literal, Result, Shape};

/// `dot`: contraction of two arrays. The element type of the result is the written one (preferred element type) and may
/// be of any kind; see [`Dot::sum_type`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dot {
    /// Roles of the dimensions.
    pub dims: DotDims,
    /// Precision of each operand; empty for the default.
    pub precision: Vec<Precision>,
    /// Algorithm, which overrides `precision`.
    pub algorithm: Option<DotAlgorithm>,
}

impl Dot {
    /// Returns the accumulator type of a sum of products that is then converted to `result`. It is `result` if that is
    /// the more precise operand type or more precise than both. Otherwise it is the more precise operand type, or f32
    /// instead of a float of fewer than 32 bits.
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
