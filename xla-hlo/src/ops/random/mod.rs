//! Random bits, random numbers, and stochastic rounding.

mod attributes;
mod distribution;
mod eval;
mod proto;
mod shape;
mod stochastic;
#[cfg(test)]
mod tests;

pub use distribution::{RNG_KEY, words_of_rng};

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Error, Literal, Result, Shape};

/// Generator of the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RngAlgorithm {
    /// The platform's: Philox everywhere here.
    Default,
    /// Threefry 2x32, 20 rounds.
    ThreeFry,
    /// Philox 4x32, 10 rounds.
    Philox,
}

/// Random bits from a state: returns `(new state, bits)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RngBitGenerator {
    /// The generator.
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

/// Distribution of the numbers of `rng`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RngDistribution {
    /// Evenly from operand 0 on, below operand 1: `[a, b)`.
    Uniform,
    /// Normally, with operand 0 the mean and operand 1 the standard deviation.
    Normal,
}

/// Random numbers of the written shape, drawn from the device's [`RandomState`](crate::eval::RandomState).
///
/// Both operands are scalars of the result's element type: floats for either distribution, integers and truth values
/// for the uniform one. The numbers are this project's own: see `distribution.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rng {
    /// The distribution.
    pub distribution: RngDistribution,
}

impl ReadAttributes for Rng {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Rng { distribution: r.required("distribution")? })
    }
}

impl OpRules for Rng {
    fn opcode(&self) -> Opcode {
        Opcode::Rng
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::rng(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("distribution", &self.distribution);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        distribution::rng(self, ev, operands, shape)
    }
}

/// The device's [`RandomState`](crate::eval::RandomState) before it is moved on by `delta`: `u64[2]`, the low half
/// first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RngGetAndUpdateState {
    /// Increment of the counter.
    pub delta: i64,
}

impl ReadAttributes for RngGetAndUpdateState {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(RngGetAndUpdateState { delta: r.required("delta")? })
    }
}

impl OpRules for RngGetAndUpdateState {
    fn opcode(&self) -> Opcode {
        Opcode::RngGetAndUpdateState
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::rng_get_and_update_state(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("delta", &self.delta);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, _: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        distribution::rng_get_and_update_state(self, ev, shape)
    }
}

/// Floats as integers, rounded to one of the two neighbours: away from zero with a chance of their fraction.
///
/// Operand 1 are the random bits, unsigned integers as wide as the floats of operand 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StochasticConvert;

impl ReadAttributes for StochasticConvert {
    fn read(_: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(StochasticConvert)
    }
}

impl OpRules for StochasticConvert {
    fn opcode(&self) -> Opcode {
        Opcode::StochasticConvert
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::stochastic_convert(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        stochastic::convert(operands, shape)
    }
}
