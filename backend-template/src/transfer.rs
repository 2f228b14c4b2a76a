//! Literals to and from device memory: tiles and padding are put in and taken out on the host.

use xla_hlo::{ArrayShape, Error, Literal, Result};
use xla_service::{DeviceMemory, Stream, TransferManager};

use crate::capabilities::TILES;
use crate::device::{Access, TensorDescriptor};

/// Moves values between the host and the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TemplateTransfer;

// VENDOR(layout): the bytes of an array as the device wants them; for plain row-major memory they are the literal's own.
impl TransferManager for TemplateTransfer {
    fn device_shape(&self, shape: &ArrayShape) -> Result<ArrayShape> {
        Ok(shape.clone().with_layout(Some(TILES.layout(shape.rank()))))
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
        literal.densify()?;
        let (source, width) = (literal.bytes(), shape.element_type().byte_width());
        if source.len() != shape.byte_size() {
            return Err(Error::internal(format!("{} bytes of a literal are no {shape}", source.len())));
        }
        let mut image = vec![0; tensor.byte_size()];
        tensor.for_each_run(|element, at, count| {
            let bytes = count * width;
            image[at..at + bytes].copy_from_slice(&source[element * width..element * width + bytes]);
        });
        stream.copy_to_device(&image, memory, offset)
    }

    fn read(&self, stream: &dyn Stream, memory: &DeviceMemory, offset: usize, shape: &ArrayShape) -> Result<Literal> {
        let (tensor, width) = (descriptor(shape)?, shape.element_type().byte_width());
        let mut literal = Literal::zeros(shape)?;
        let mut image = vec![0; tensor.byte_size()];
        stream.copy_to_host(memory, offset, &mut image)?;
        let target = literal.bytes_mut();
        tensor.for_each_run(|element, at, count| {
            let bytes = count * width;
            target[element * width..element * width + bytes].copy_from_slice(&image[at..at + bytes]);
        });
        Ok(literal)
    }
}

fn descriptor(shape: &ArrayShape) -> Result<TensorDescriptor> {
    TensorDescriptor::new(shape.element_type(), shape.dims(), Access::Update)
}
