//! Windows in protobuf.

use super::{ReduceWindow, SelectAndScatter, Window, WindowDim};
use crate::proto::messages;
use crate::proto::numbers::{fit, index};
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter};
use crate::{Opcode, Result, ResultExt};

/// Reads a window; an absent one has no dimensions.
pub(in crate::ops) fn read_window(proto: Option<&messages::Window>) -> Result<Window> {
    let dims = proto.map_or(&[][..], |window| &window.dimensions);
    Ok(Window { dims: dims.iter().map(read_dim).collect::<Result<_>>().context(|| "window")? })
}

fn read_dim(dim: &messages::WindowDimension) -> Result<WindowDim> {
    Ok(WindowDim {
        size: index("size", dim.size)?,
        stride: index("stride", dim.stride)?,
        pad_low: dim.padding_low,
        pad_high: dim.padding_high,
        window_dilation: index("window_dilation", dim.window_dilation)?,
        base_dilation: index("base_dilation", dim.base_dilation)?,
        reversal: dim.window_reversal,
    })
}

/// Writes a window.
pub(in crate::ops) fn write_window(window: &Window) -> Result<messages::Window> {
    let dimension = |dim: &WindowDim| {
        Ok(messages::WindowDimension {
            size: fit("the size of a window", dim.size)?,
            stride: fit("the stride of a window", dim.stride)?,
            padding_low: dim.pad_low,
            padding_high: dim.pad_high,
            window_dilation: fit("the dilation of a window", dim.window_dilation)?,
            base_dilation: fit("the dilation of an array", dim.base_dilation)?,
            window_reversal: dim.reversal,
        })
    };
    Ok(messages::Window { dimensions: window.dims.iter().map(dimension).collect::<Result<_>>()? })
}

impl ProtoAttributes for ReduceWindow {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let [computation] = r.called()?;
        Ok(ReduceWindow { window: read_window(r.message.window.as_ref())?, computation })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.window = Some(write_window(&self.window)?);
        w.calls(&[self.computation])
    }
}

impl ProtoAttributes for SelectAndScatter {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let [select, scatter] = r.called()?;
        Ok(SelectAndScatter { window: read_window(r.message.window.as_ref())?, select, scatter })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.window = Some(write_window(&self.window)?);
        w.calls(&[self.select, self.scatter])
    }
}
