//! Data movement operations in protobuf.

use super::{
    Bitcast, Broadcast, Concatenate, Copy, DynamicSlice, DynamicUpdateSlice, Iota, Pad, PadDim, Reshape, Reverse,
    Slice, SliceRange, Transpose,
};
use crate::proto::messages::{PaddingConfig, PaddingConfigDimension, SliceDimensions};
use crate::proto::numbers::{fit, index, indices, longs, required};
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter, proto_without_attributes};
use crate::{Error, Opcode, Result};

proto_without_attributes!(DynamicUpdateSlice, Copy, Bitcast);

impl ProtoAttributes for Broadcast {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(Broadcast { dimensions: r.dimensions()? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.dimensions(&self.dimensions)
    }
}

impl ProtoAttributes for Reshape {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        match r.dimensions()?[..] {
            [] => Ok(Reshape { inferred_dimension: None }),
            [d] => Ok(Reshape { inferred_dimension: Some(d) }),
            _ => Err(Error::invalid_argument("dimensions may name only the one inferred dimension")),
        }
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.dimensions(self.inferred_dimension.as_slice())
    }
}

impl ProtoAttributes for Transpose {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(Transpose { permutation: r.dimensions()? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.dimensions(&self.permutation)
    }
}

impl ProtoAttributes for Slice {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let range = |proto: &SliceDimensions| {
            Ok(SliceRange {
                start: index("start of slice_dimensions", proto.start)?,
                limit: index("limit of slice_dimensions", proto.limit)?,
                stride: index("stride of slice_dimensions", proto.stride)?,
            })
        };
        Ok(Slice { ranges: r.message.slice_dimensions.iter().map(range).collect::<Result<_>>()? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        let dimension = |range: &SliceRange| {
            Ok(SliceDimensions {
                start: fit("the start of a slice", range.start)?,
                limit: fit("the limit of a slice", range.limit)?,
                stride: fit("the stride of a slice", range.stride)?,
            })
        };
        w.message.slice_dimensions = self.ranges.iter().map(dimension).collect::<Result<_>>()?;
        Ok(())
    }
}

impl ProtoAttributes for Pad {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let dim = |proto: &PaddingConfigDimension| {
            let interior = index("interior_padding", proto.interior_padding)?;
            Ok(PadDim { low: proto.edge_padding_low, high: proto.edge_padding_high, interior })
        };
        let config = required("padding_config", r.message.padding_config.take())?;
        Ok(Pad { dims: config.dimensions.iter().map(dim).collect::<Result<_>>()? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        let dimension = |dim: &PadDim| {
            Ok(PaddingConfigDimension {
                edge_padding_low: dim.low,
                edge_padding_high: dim.high,
                interior_padding: fit("interior padding", dim.interior)?,
            })
        };
        let dimensions = self.dims.iter().map(dimension).collect::<Result<_>>()?;
        w.message.padding_config = Some(PaddingConfig { dimensions });
        Ok(())
    }
}

impl ProtoAttributes for Concatenate {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(Concatenate { dimension: r.dimension()? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.dimensions(&[self.dimension])
    }
}

impl ProtoAttributes for Reverse {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(Reverse { dimensions: r.dimensions()? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.dimensions(&self.dimensions)
    }
}

impl ProtoAttributes for Iota {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(Iota { dimension: r.dimension()? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.dimensions(&[self.dimension])
    }
}

impl ProtoAttributes for DynamicSlice {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(DynamicSlice { sizes: indices("dynamic_slice_sizes", &r.message.dynamic_slice_sizes)? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.dynamic_slice_sizes = longs("the size of a slice", &self.sizes)?;
        Ok(())
    }
}
