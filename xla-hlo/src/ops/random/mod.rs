//! Random bits, random numbers, and stochastic rounding.

mod attributes;
mod distribution;
mod eval;
mod proto;
mod shape;
mod sharding;
mod stochastic;

pub use distribution::{RNG_KEY, words_of_rng};

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Error, Literal, Result, Shape};

/// Generator of random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RngAlgorithm {
    /// Chosen by the platform; all platforms of this workspace use Philox.
    Default,
    /// Threefry 2x32-20.
    ThreeFry,
    /// Philox 4x32-10.
    Philox,
}

/// `rng-bit-generator`: random bits from a state. Returns `(new state, bits)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RngBitGenerator {
    /// Generator algorithm.
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
    /// Uniform over `[a, b)`, where `a` is operand 0 and `b` operand 1.
    Uniform,
    /// Normal, where operand 0 is the mean and operand 1 the standard deviation.
    Normal,
}

/// `rng`: random numbers of the written shape, drawn from the device's [`RandomState`](crate::eval::RandomState).
///
/// Both operands are scalars of the result's element type: floats for either distribution, integers and booleans for
/// the uniform one. The numbers are specific to this project, see `distribution.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rng {
    /// Distribution of the numbers.
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

/// `rng-get-and-update-state`: the device's [`RandomState`](crate::eval::RandomState) before it is advanced by `delta`.
/// The result is `u64[2]`, low half first.
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

/// `stochastic-convert`: floats converted to integers by rounding to one of the two neighbours. The probability of
/// rounding away from zero is the fraction of the magnitude.
///
/// Operand 1 contains the random bits, unsigned integers as wide as the floats of operand 0.
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
