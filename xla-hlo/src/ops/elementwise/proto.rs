//! Elementwise operations in protobuf.

use super::{
    Binary, BinaryOp, BitcastConvert, Clamp, Compare, Convert, ReducePrecision, ResultAccuracy, Select, Unary, UnaryOp,
};
use crate::proto::messages::{ResultAccuracyProto, ToleranceProto};
use crate::proto::numbers::fit;
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter, operand_type, proto_without_attributes};
use crate::text::AttributeWord;
use crate::{Error, Opcode, Result};

proto_without_attributes!(Select, Clamp, Convert, BitcastConvert);

const DEFAULT: i32 = 0;
const HIGHEST: i32 = 1;

impl ProtoAttributes for Unary {
    fn read_proto(opcode: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let op = UnaryOp::from_opcode(opcode).ok_or_else(|| Error::internal(format!("{opcode} is not unary")))?;
        let accuracy = r.message.result_accuracy.take().map_or(Ok(ResultAccuracy::Default), |a| read_accuracy(&a))?;
        Ok(Unary { op, accuracy })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        let mode = |mode| ResultAccuracyProto { mode: Some(mode), tolerance: None };
        let accuracy = match self.accuracy {
            ResultAccuracy::Default => return Ok(()),
            ResultAccuracy::High => {
                return Err(Error::unimplemented("result_accuracy={mode=high} has no number in protobuf"));
            }
            ResultAccuracy::Highest => mode(HIGHEST),
            ResultAccuracy::Tolerance { atol, rtol, ulps } => {
                ResultAccuracyProto { mode: None, tolerance: Some(ToleranceProto { atol, rtol, ulps }) }
            }
        };
        w.message.result_accuracy = Some(Box::new(accuracy));
        Ok(())
    }
}

fn read_accuracy(proto: &ResultAccuracyProto) -> Result<ResultAccuracy> {
    match (&proto.tolerance, proto.mode.unwrap_or(DEFAULT)) {
        (Some(t), _) => Ok(ResultAccuracy::Tolerance { atol: t.atol, rtol: t.rtol, ulps: t.ulps }),
        (None, DEFAULT) => Ok(ResultAccuracy::Default),
        (None, HIGHEST) => Ok(ResultAccuracy::Highest),
        (None, other) => {
            Err(Error::invalid_argument(format!("mode of result_accuracy is {other}, which has no meaning here")))
        }
    }
}

impl ProtoAttributes for Binary {
    fn read_proto(opcode: Opcode, _: &mut ProtoReader<'_>) -> Result<Self> {
        let op = BinaryOp::from_opcode(opcode).ok_or_else(|| Error::internal(format!("{opcode} is not binary")))?;
        Ok(Binary { op })
    }

    fn write_proto(&self, _: &mut ProtoWriter<'_>) -> Result<()> {
        Ok(())
    }
}

impl ProtoAttributes for Compare {
    /// Drops an order that is the default of the element type, as in text.
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let plain = Compare::new(ProtoReader::word("comparison_direction", &r.message.comparison_direction)?);
        if r.message.comparison_type.is_empty() {
            return Ok(plain);
        }
        let order = ProtoReader::word("comparison_type", &r.message.comparison_type)?;
        let own = plain.order_for(operand_type(&r.operands, 0));
        Ok(Compare { order: (order != own).then_some(order), ..plain })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.comparison_direction = self.direction.word().to_string();
        w.message.comparison_type = self.order_for(operand_type(&w.operands, 0)).word().to_string();
        Ok(())
    }
}

impl ProtoAttributes for ReducePrecision {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(ReducePrecision {
            exponent_bits: fit("exponent_bits", r.message.exponent_bits)?,
            mantissa_bits: fit("mantissa_bits", r.message.mantissa_bits)?,
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.exponent_bits = fit("exponent_bits", self.exponent_bits)?;
        w.message.mantissa_bits = fit("mantissa_bits", self.mantissa_bits)?;
        Ok(())
    }
}
