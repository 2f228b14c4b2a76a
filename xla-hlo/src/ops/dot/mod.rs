//! Dots: contractions of two arrays.

mod attributes;
mod eval;
mod precision;
mod proto;
mod ragged;
mod scaled;
mod shape;
#[cfg(test)]
mod tests;

pub use precision::{DotAlgorithm, Precision};
pub use ragged::{RaggedDot, RaggedMode};
pub use scaled::ScaledDot;

pub(in crate::ops) use proto::{read_precision_config, write_precision_config};

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Error, Literal, Result, Shape};

/// Which dimensions of two arrays are contracted and which run along.
///
/// The result has the batch dimensions, then the free ones of the left, then the free ones of the right operand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DotDims {
    /// Batch dimensions of the left operand, paired by position with the right's.
    pub lhs_batch: Vec<usize>,
    /// Batch dimensions of the right operand.
    pub rhs_batch: Vec<usize>,
    /// Contracted dimensions of the left operand, paired by position with the right's.
    pub lhs_contracting: Vec<usize>,
    /// Contracted dimensions of the right operand.
    pub rhs_contracting: Vec<usize>,
}

/// Contraction of two arrays. The result's element type is the written one (preferred element type) and may be wider
/// than the operands'.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dot {
    /// Which dimensions do what.
    pub dims: DotDims,
    /// One for each operand, or empty for the default.
    pub precision: Vec<Precision>,
    /// Overrides the precision.
    pub algorithm: Option<DotAlgorithm>,
}

impl DotDims {
    /// Dimensions of an operand of that rank that are neither contracted nor batch, ascending.
    pub fn free(rank: usize, batch: &[usize], contracting: &[usize]) -> Vec<usize> {
        (0..rank).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect()
    }

    fn read(r: &mut AttributeReader<'_>) -> Result<DotDims> {
        Ok(DotDims {
            lhs_batch: r.optional("lhs_batch_dims")?.unwrap_or_default(),
            lhs_contracting: r.optional("lhs_contracting_dims")?.unwrap_or_default(),
            rhs_batch: r.optional("rhs_batch_dims")?.unwrap_or_default(),
            rhs_contracting: r.optional("rhs_contracting_dims")?.unwrap_or_default(),
        })
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        let batched = !self.lhs_batch.is_empty() || !self.rhs_batch.is_empty();
        for (name, list, shown) in [
            ("lhs_batch_dims", &self.lhs_batch, batched),
            ("lhs_contracting_dims", &self.lhs_contracting, true),
            ("rhs_batch_dims", &self.rhs_batch, batched),
            ("rhs_contracting_dims", &self.rhs_contracting, true),
        ] {
            if shown {
                w.attribute(name, list);
            }
        }
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
