//! Dots in protobuf.

use super::{Dot, DotAlgorithm, DotDims, Precision, RaggedDot, ScaledDot};
use crate::proto::messages::{DotDimensionNumbers, HloInstructionProto, PrecisionConfig, RaggedDotDimensionNumbers};
use crate::proto::numbers::{indices, longs, required};
use crate::proto::{ProtoAttributes, ProtoNumber, ProtoReader, ProtoWriter, proto_numbers};
use crate::{Opcode, Result};

proto_numbers! { Precision: 0 => Default, 1 => High, 2 => Highest }

proto_numbers! {
    DotAlgorithm:
    1 => AnyF8AnyF8F32,
    2 => AnyF8AnyF8F32FastAccum,
    3 => F16F16F16,
    4 => F16F16F32,
    5 => Bf16Bf16Bf16,
    6 => Bf16Bf16F32,
    7 => Bf16Bf16F32X3,
    8 => Bf16Bf16F32X6,
    9 => Tf32Tf32F32,
    10 => Tf32Tf32F32X3,
    11 => F32F32F32,
    12 => F64F64F64,
    13 => Bf16Bf16F32X9,
}

/// Reads the precision of products: `operand_precision` (as in text, empty for the default) and `algorithm`.
pub(in crate::ops) fn read_precision_config(
    config: Option<&PrecisionConfig>,
) -> Result<(Vec<Precision>, Option<DotAlgorithm>)> {
    let Some(config) = config else { return Ok((Vec::new(), None)) };
    let precision = |&number: &i32| ProtoReader::number("operand_precision", number);
    let mut precisions: Vec<Precision> = config.operand_precision.iter().map(precision).collect::<Result<_>>()?;
    if precisions.iter().all(|p| *p == Precision::Default) {
        precisions.clear();
    }
    let algorithm = match config.algorithm {
        0 => None,
        number => Some(ProtoReader::number("algorithm", number)?),
    };
    Ok((precisions, algorithm))
}

/// Writes a message for [`read_precision_config`]. `operands` is the number of operands that have a precision.
pub(in crate::ops) fn write_precision_config(
    precisions: &[Precision],
    algorithm: Option<DotAlgorithm>,
    operands: usize,
) -> PrecisionConfig {
    let mut operand_precision: Vec<i32> = precisions.iter().map(|p| p.number()).collect();
    if operand_precision.is_empty() {
        operand_precision = vec![Precision::Default.number(); operands];
    }
    PrecisionConfig { operand_precision, algorithm: algorithm.map_or(0, ProtoNumber::number) }
}

fn read_dims(proto: &DotDimensionNumbers) -> Result<DotDims> {
    Ok(DotDims {
        lhs_batch: indices("lhs_batch_dimensions", &proto.lhs_batch_dimensions)?,
        rhs_batch: indices("rhs_batch_dimensions", &proto.rhs_batch_dimensions)?,
        lhs_contracting: indices("lhs_contracting_dimensions", &proto.lhs_contracting_dimensions)?,
        rhs_contracting: indices("rhs_contracting_dimensions", &proto.rhs_contracting_dimensions)?,
    })
}

fn write_dims(dims: &DotDims) -> Result<DotDimensionNumbers> {
    Ok(DotDimensionNumbers {
        lhs_contracting_dimensions: longs("a contracting dimension", &dims.lhs_contracting)?,
        rhs_contracting_dimensions: longs("a contracting dimension", &dims.rhs_contracting)?,
        lhs_batch_dimensions: longs("a batch dimension", &dims.lhs_batch)?,
        rhs_batch_dimensions: longs("a batch dimension", &dims.rhs_batch)?,
    })
}

/// Reads the dimension numbers of a message, which must be present.
fn required_dims(message: &mut HloInstructionProto) -> Result<DotDims> {
    read_dims(&*required("dot_dimension_numbers", message.dot_dimension_numbers.take())?)
}

impl ProtoAttributes for Dot {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let (precision, algorithm) = read_precision_config(r.message.precision_config.as_deref())?;
        Ok(Dot { dims: required_dims(&mut r.message)?, precision, algorithm })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.dot_dimension_numbers = Some(Box::new(write_dims(&self.dims)?));
        w.message.precision_config = Some(Box::new(write_precision_config(&self.precision, self.algorithm, 2)));
        Ok(())
    }
}

impl ProtoAttributes for ScaledDot {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let (precision, algorithm) = read_precision_config(r.message.precision_config.as_deref())?;
        Ok(ScaledDot { dims: required_dims(&mut r.message)?, precision, algorithm })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.dot_dimension_numbers = Some(Box::new(write_dims(&self.dims)?));
        w.message.precision_config = Some(Box::new(write_precision_config(&self.precision, self.algorithm, 2)));
        Ok(())
    }
}

impl ProtoAttributes for RaggedDot {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let (precision, _) = read_precision_config(r.message.precision_config.as_deref())?;
        let numbers = required("ragged_dot_dimension_numbers", r.message.ragged_dot_dimension_numbers.take())?;
        let dims = read_dims(&numbers.dot_dimension_numbers.unwrap_or_default())?;
        let ragged = indices("lhs_ragged_dimensions", &numbers.lhs_ragged_dimensions)?;
        let groups = indices("rhs_group_dimensions", &numbers.rhs_group_dimensions)?;
        RaggedDot::with_lists(dims, &ragged, &groups, precision)
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.ragged_dot_dimension_numbers = Some(Box::new(RaggedDotDimensionNumbers {
            dot_dimension_numbers: Some(write_dims(&self.dims)?),
            lhs_ragged_dimensions: longs("the ragged dimension", &[self.ragged_dimension])?,
            rhs_group_dimensions: longs("the group dimension", self.group_dimension.as_slice())?,
        }));
        w.message.precision_config = Some(Box::new(write_precision_config(&self.precision, None, 2)));
        Ok(())
    }
}
