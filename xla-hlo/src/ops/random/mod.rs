//! Random bits.

mod attributes;
mod eval;
mod proto;
mod shape;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Error, Literal, Result, Shape};

/// Which generator makes the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RngAlgorithm {
    /// The platform's: Philox everywhere here.
    Default,
    /// Threefry 2x32, 20 rounds.
    ThreeFry,
    /// Philox 4x32, 10 rounds.
    Philox,
}

/// Random bits from a state: gives `(new state, bits)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RngBitGenerator {
    /// Which generator.
    pub algorithm: RngAlgorithm,
}

impl ReadAttributes for RngBitGenerator {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(RngBitGenerator { algorithm: r.required("algorithm")? })
    }
}

impl OpRules for RngBitGenerator {
    fn opcode(&self) -> Opcode {
        Opcode::RngBitGenerator
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::rng_bit_generator(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("algorithm", &self.algorithm);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::rng_bit_generator(self, ev, operands, shape)
    }
}
