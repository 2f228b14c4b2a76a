//! Parameters, constants, tuples, optimization barriers and domains.

mod attributes;
mod eval;
mod proto;
mod shape;
mod sharding;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Error, Literal, Result, Shape, Sharding};

/// `parameter(number)`: an input of the computation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// Number of the input, from 0.
    pub number: usize,
}

impl ReadAttributes for Parameter {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Parameter { number: r.parameter_number()? })
    }
}

impl OpRules for Parameter {
    fn opcode(&self) -> Opcode {
        Opcode::Parameter
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::parameter(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::parameter(self, ev, operands, shape)
    }
}

/// `constant(literal)`: a literal value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Constant {
    /// Value of the constant.
    pub literal: Literal,
}

impl ReadAttributes for Constant {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Constant { literal: r.literal()? })
    }
}

impl OpRules for Constant {
    fn opcode(&self) -> Opcode {
        Opcode::Constant
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::constant(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::constant(self, ev, operands, shape)
    }
}

/// `tuple(...)`: a tuple of its operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tuple;

impl ReadAttributes for Tuple {
    fn read(_: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Tuple)
    }
}

impl OpRules for Tuple {
    fn opcode(&self) -> Opcode {
        Opcode::Tuple
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::tuple(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::tuple(self, ev, operands, shape)
    }
}

/// `get-tuple-element`: one element of a tuple.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetTupleElement {
    /// Index of the element, from 0.
    pub index: usize,
}

impl ReadAttributes for GetTupleElement {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(GetTupleElement { index: r.required("index")? })
    }
}

impl OpRules for GetTupleElement {
    fn opcode(&self) -> Opcode {
        Opcode::GetTupleElement
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::get_tuple_element(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("index", &self.index);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::get_tuple_element(self, ev, operands, shape)
    }
}

/// `opt-barrier`: identity that blocks code motion and CSE across it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OptBarrier;

impl ReadAttributes for OptBarrier {
    fn read(_: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(OptBarrier)
    }
}

impl OpRules for OptBarrier {
    fn opcode(&self) -> Opcode {
        Opcode::OptBarrier
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::opt_barrier(self, cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::opt_barrier(self, ev, operands, shape)
    }
}

/// `domain`: the boundary between two regions of different shardings; returns its operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Domain {
    /// Property that differs between the regions: always `sharding`.
    pub kind: String,
    /// Sharding of the region before the boundary.
    pub entry: Sharding,
    /// Sharding of the region after the boundary.
    pub exit: Sharding,
}

impl ReadAttributes for Domain {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        r.required("domain")
    }
}

impl OpRules for Domain {
    fn opcode(&self) -> Opcode {
        Opcode::Domain
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        Ok(cx.operand(0)?.without_layout())
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("domain", self);
    }

    fn evaluate(&self, _: &mut Evaluator<'_>, operands: Vec<Literal>, _: &Shape) -> Result<Literal> {
        operands.into_iter().next().ok_or_else(super::checks::missing_operand)
    }
}
