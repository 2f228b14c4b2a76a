//! Literals to and from a GPU: as they lie in the host's memory, through a stream.

use xla_hlo::{ArrayShape, Literal, Result};
use xla_service::host::{host_shape, literal_from_bytes, write_literal};
use xla_service::{DeviceMemory, Stream, TransferManager};

/// Arrays in the order of dimensions that was asked for, elements in whole bytes.
#[derive(Debug)]
pub(crate) struct GpuTransfer;

impl TransferManager for GpuTransfer {
    fn device_shape(&self, shape: &ArrayShape) -> Result<ArrayShape> {
        host_shape(shape)
    }

    fn byte_size(&self, shape: &ArrayShape) -> Result<usize> {
        shape.checked_element_count()?;
        Ok(shape.byte_size())
    }

    fn write(
        &self,
        stream: &dyn Stream,
        literal: &Literal,
        shape: &ArrayShape,
        memory: &mut DeviceMemory,
        offset: usize,
    ) -> Result<()> {
        let mut bytes = vec![0; self.byte_size(shape)?];
        write_literal(literal, shape, &mut bytes)?;
        stream.copy_to_device(&bytes, memory, offset)
    }

    fn read(&self, stream: &dyn Stream, memory: &DeviceMemory, offset: usize, shape: &ArrayShape) -> Result<Literal> {
        let mut bytes = vec![0; self.byte_size(shape)?];
        stream.copy_to_host(memory, offset, &mut bytes)?;
        literal_from_bytes(shape, &bytes)
    }
}
