//! Literals to and from host memory.

use xla_hlo::{ArrayShape, Literal, Result};

use super::executor::{part, part_mut};
use super::layout::{host_shape, literal_from_bytes, write_literal};
use super::pool::HostMemory;
use crate::executor::{DeviceMemory, Stream};
use crate::transfer::TransferManager;

/// The transfer manager of every platform whose memory is [`HostMemory`].
#[derive(Clone, Copy, Debug, Default)]
pub struct HostTransfer;

impl TransferManager for HostTransfer {
    fn device_shape(&self, shape: &ArrayShape) -> Result<ArrayShape> {
        host_shape(shape)
    }

    fn byte_size(&self, shape: &ArrayShape) -> Result<usize> {
        shape.checked_element_count()?;
        Ok(shape.byte_size())
    }

    fn write(
        &self,
        _: &dyn Stream,
        literal: &Literal,
        shape: &ArrayShape,
        memory: &mut DeviceMemory,
        offset: usize,
    ) -> Result<()> {
        let target = part_mut(memory.downcast_mut::<HostMemory>()?, offset, self.byte_size(shape)?)?;
        write_literal(literal, shape, target)
    }

    fn read(&self, _: &dyn Stream, memory: &DeviceMemory, offset: usize, shape: &ArrayShape) -> Result<Literal> {
        literal_from_bytes(shape, part(memory.downcast::<HostMemory>()?, offset, self.byte_size(shape)?)?)
    }
}
