//! Transfers of literals to and from host memory, or devices with the host's array format.

use xla_hlo::{ArrayShape, Literal, Result};

use super::executor::{part, part_mut};
use super::layout::{host_shape, literal_from_bytes, literal_of_bytes, write_literal, zeros};
use super::pool::HostMemory;
use crate::executor::{DeviceMemory, Stream};
use crate::transfer::TransferManager;

/// Transfer manager of every platform whose memory is [`HostMemory`].
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

    fn lies_as_on_host(&self) -> bool {
        true
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

/// Transfer manager of a device that stores arrays in the host's format, with elements in whole bytes, and whose memory
/// is accessible only through streams.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamTransfer;

impl TransferManager for StreamTransfer {
    fn device_shape(&self, shape: &ArrayShape) -> Result<ArrayShape> {
        HostTransfer.device_shape(shape)
    }

    fn byte_size(&self, shape: &ArrayShape) -> Result<usize> {
        HostTransfer.byte_size(shape)
    }

    fn lies_as_on_host(&self) -> bool {
        true
    }

    fn write(
        &self,
        stream: &dyn Stream,
        literal: &Literal,
        shape: &ArrayShape,
        memory: &mut DeviceMemory,
        offset: usize,
    ) -> Result<()> {
        let mut bytes = zeros(self.byte_size(shape)?)?;
        write_literal(literal, shape, &mut bytes)?;
        stream.copy_to_device(&bytes, memory, offset)
    }

    fn read(&self, stream: &dyn Stream, memory: &DeviceMemory, offset: usize, shape: &ArrayShape) -> Result<Literal> {
        let mut bytes = zeros(self.byte_size(shape)?)?;
        stream.copy_to_host(memory, offset, &mut bytes)?;
        literal_of_bytes(shape, bytes)
    }
}
