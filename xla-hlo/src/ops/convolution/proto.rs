//! Convolutions in protobuf.

use super::{Convolution, ConvolutionDims, ConvolutionKind, Sparsity, SparsityConfig};
use crate::ops::dot::{read_precision_config, write_precision_config};
use crate::ops::window::{read_window, write_window};
use crate::proto::messages::{self, ConvolutionDimensionNumbers, TensorSparsityConfig};
use crate::proto::numbers::{fit, index, indices, longs, required};
use crate::proto::{ProtoAttributes, ProtoNumber, ProtoReader, ProtoWriter, proto_numbers};
use crate::{Opcode, Result, ResultExt};

proto_numbers! { ConvolutionKind: 0 => Unset, 1 => Forward, 2 => InputGradient, 3 => KernelGradient }

/// Reads dimension numbers.
pub(in crate::ops) fn read_dims(proto: &ConvolutionDimensionNumbers) -> Result<ConvolutionDims> {
    Ok(ConvolutionDims {
        input_batch: index("input_batch_dimension", proto.input_batch_dimension)?,
        input_feature: index("input_feature_dimension", proto.input_feature_dimension)?,
        input_spatial: indices("input_spatial_dimensions", &proto.input_spatial_dimensions)?,
        kernel_input_feature: index("kernel_input_feature_dimension", proto.kernel_input_feature_dimension)?,
        kernel_output_feature: index("kernel_output_feature_dimension", proto.kernel_output_feature_dimension)?,
        kernel_spatial: indices("kernel_spatial_dimensions", &proto.kernel_spatial_dimensions)?,
        output_batch: index("output_batch_dimension", proto.output_batch_dimension)?,
        output_feature: index("output_feature_dimension", proto.output_feature_dimension)?,
        output_spatial: indices("output_spatial_dimensions", &proto.output_spatial_dimensions)?,
    })
}

/// Writes dimension numbers.
pub(in crate::ops) fn write_dims(dims: &ConvolutionDims) -> Result<ConvolutionDimensionNumbers> {
    Ok(ConvolutionDimensionNumbers {
        kernel_input_feature_dimension: fit("a kernel's dimension", dims.kernel_input_feature)?,
        kernel_output_feature_dimension: fit("a kernel's dimension", dims.kernel_output_feature)?,
        kernel_spatial_dimensions: longs("a kernel's dimension", &dims.kernel_spatial)?,
        input_batch_dimension: fit("an input's dimension", dims.input_batch)?,
        input_feature_dimension: fit("an input's dimension", dims.input_feature)?,
        output_batch_dimension: fit("a result's dimension", dims.output_batch)?,
        output_feature_dimension: fit("a result's dimension", dims.output_feature)?,
        input_spatial_dimensions: longs("an input's dimension", &dims.input_spatial)?,
        output_spatial_dimensions: longs("a result's dimension", &dims.output_spatial)?,
    })
}

/// Reads a number of groups; 0 means the default, 1.
pub(in crate::ops) fn read_groups(field: &str, count: i64) -> Result<usize> {
    index(field, if count == 0 { 1 } else { count })
}

fn read_sparsity(proto: &TensorSparsityConfig) -> Result<Sparsity> {
    Ok(Sparsity {
        kept: index("num_non_zero", proto.num_non_zero)?,
        block: index("block_size", proto.block_size)?,
        dimension: proto.dimension,
        stride: proto.stride,
    })
}

fn write_sparsity(sparsity: &Sparsity) -> Result<TensorSparsityConfig> {
    Ok(TensorSparsityConfig {
        num_non_zero: fit("the elements kept of a block", sparsity.kept)?,
        block_size: fit("the elements of a block", sparsity.block)?,
        dimension: sparsity.dimension,
        stride: sparsity.stride,
    })
}

impl ProtoAttributes for Convolution {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let (precision, algorithm) = read_precision_config(r.message.precision_config.as_deref())?;
        let dims = required("convolution_dimension_numbers", r.message.convolution_dimension_numbers.take())?;
        let sparsity = r.message.sparsity_config.take().unwrap_or_default();
        let side = |side: &Option<TensorSparsityConfig>| {
            side.as_ref().map(read_sparsity).transpose().context(|| "sparsity_config")
        };
        Ok(Convolution {
            window: read_window(r.message.window.as_ref())?,
            dims: read_dims(&dims).context(|| "convolution_dimension_numbers")?,
            feature_group_count: read_groups("feature_group_count", r.message.feature_group_count)?,
            batch_group_count: read_groups("batch_group_count", r.message.batch_group_count)?,
            precision,
            algorithm,
            kind: ProtoReader::number("conv_kind", r.message.conv_kind)?,
            sparsity: SparsityConfig { lhs: side(&sparsity.lhs)?, rhs: side(&sparsity.rhs)? },
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        let side = |side: &Option<Sparsity>| side.as_ref().map(write_sparsity).transpose();
        let sparsity = messages::SparsityConfig { lhs: side(&self.sparsity.lhs)?, rhs: side(&self.sparsity.rhs)? };
        w.message.window = Some(write_window(&self.window)?);
        w.message.convolution_dimension_numbers = Some(Box::new(write_dims(&self.dims)?));
        w.message.feature_group_count = fit("feature_group_count", self.feature_group_count)?;
        w.message.batch_group_count = fit("batch_group_count", self.batch_group_count)?;
        w.message.precision_config = Some(Box::new(write_precision_config(&self.precision, self.algorithm, 2)));
        w.message.conv_kind = self.kind.number();
        w.message.sparsity_config = Some(Box::new(sparsity));
        Ok(())
    }
}
