//! Transfers of literals to and from device memory. The host adds and removes tiles and padding.

use xla_hlo::{ArrayShape, Literal, Result};
use xla_service::host::{host_shape, literal_from_bytes, write_literal};
use xla_service::{DeviceMemory, Stream, TransferManager};

use crate::capabilities::TILES;
use crate::device::{Access, TensorDescriptor};

/// Transfer manager: copies values between the host and the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TemplateTransfer;

// VENDOR(layout): convert arrays between row-major order and the device's layout.
// If the device uses plain row-major memory, copy the literal's bytes unchanged.
impl TransferManager for TemplateTransfer {
    fn device_shape(&self, shape: &ArrayShape) -> Result<ArrayShape> {
        let order = host_shape(shape)?.minor_to_major();
        Ok(shape.clone().with_layout(Some(TILES.layout_in_order(order))))
    }

    fn byte_size(&self, shape: &ArrayShape) -> Result<usize> {
        Ok(descriptor(shape)?.byte_size())
    }

    fn write(
        &self,
        stream: &dyn Stream,
        literal: &Literal,
        shape: &ArrayShape,
        memory: &mut DeviceMemory,
        offset: usize,
    ) -> Result<()> {
        let tensor = descriptor(shape)?;
        let width = shape.element_type().byte_width();
        let mut source = vec![0; shape.byte_size()];
        write_literal(literal, shape, &mut source)?;
        let mut image = vec![0; tensor.byte_size()];
        tensor.for_each_run(|element, at, count| {
            let bytes = count * width;
            image[at..at + bytes].copy_from_slice(&source[element * width..element * width + bytes]);
        });
        stream.copy_to_device(&image, memory, offset)
    }

    fn read(&self, stream: &dyn Stream, memory: &DeviceMemory, offset: usize, shape: &ArrayShape) -> Result<Literal> {
        let (tensor, width) = (descriptor(shape)?, shape.element_type().byte_width());
        let mut physical = Literal::zeros(shape)?;
        let mut image = vec![0; tensor.byte_size()];
        stream.copy_to_host(memory, offset, &mut image)?;
        let target = physical.bytes_mut();
        tensor.for_each_run(|element, at, count| {
            let bytes = count * width;
            target[element * width..element * width + bytes].copy_from_slice(&image[at..at + bytes]);
        });
        literal_from_bytes(shape, physical.bytes())
    }
}

/// Returns the tensor as the device sees it: its dimensions from the slowest varying to the fastest varying one in
/// memory.
fn descriptor(shape: &ArrayShape) -> Result<TensorDescriptor> {
    let dims: Vec<usize> = host_shape(shape)?.minor_to_major().into_iter().rev().map(|d| shape.dims()[d]).collect();
    TensorDescriptor::new(shape.element_type(), &dims, Access::Update)
}
