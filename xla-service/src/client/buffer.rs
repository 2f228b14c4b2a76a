//! Arrays on a device, perhaps still being computed.

use std::fmt;
use std::sync::Arc;

use xla_hlo::{ArrayShape, Literal, Result, ResultExt};

use super::device::{Client, fits};
use super::slot::Slot;

/// An array on a device. A clone is another handle to the same array.
///
/// It may still be computed; methods that need the value wait for it. Once it was donated to a program, every use by
/// any handle is `Error::FailedPrecondition`. If the program that should compute it fails, every use returns that
/// program's error.
#[derive(Clone)]
pub struct Buffer {
    client: Client,
    shape: Arc<ArrayShape>,
    slot: Arc<Slot>,
}

impl Buffer {
    pub(super) fn new(client: Client, shape: Arc<ArrayShape>, slot: Arc<Slot>) -> Buffer {
        Buffer { client, shape, slot }
    }

    /// The shape, with the layout it has on the device.
    pub fn shape(&self) -> &ArrayShape {
        &self.shape
    }

    /// The client that made it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Whether the value is there, so that nothing would wait for it; an error if it never will be.
    pub fn is_ready(&self) -> Result<bool> {
        self.slot.is_ready()
    }

    /// Waits for the value.
    pub fn wait(&self) -> Result<()> {
        self.slot.read()?.1.wait()
    }

    /// Waits for the value and copies it to the host.
    pub fn to_literal(&self) -> Result<Literal> {
        let (memory, event) = self.slot.read()?;
        event.wait()?;
        let device = &self.client.0;
        let literal = device.transfer.read(&*device.stream, &memory, 0, &self.shape);
        literal.context(|| format!("platform {}, an array of {} for the host", device.platform, self.shape))
    }

    /// Waits for the value and copies its bytes as they lie on the device: in the layout of [`Buffer::shape`], padding
    /// included.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let (memory, event) = self.slot.read()?;
        event.wait()?;
        let device = &self.client.0;
        let mut bytes = vec![0; device.transfer.byte_size(&self.shape)?];
        device.stream.copy_to_host(&memory, 0, &mut bytes)?;
        Ok(bytes)
    }

    /// Whether it was donated.
    pub fn is_donated(&self) -> bool {
        self.slot.is_donated()
    }

    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let donated = if self.slot.is_donated() { ", donated" } else { "" };
        write!(f, "Buffer({} on {}{donated})", self.shape, self.client.platform())
    }
}

/// Making buffers.
impl Client {
    /// An array on the device, in the device's usual layout. The literal must be an array.
    pub fn buffer(&self, literal: &Literal) -> Result<Buffer> {
        self.buffer_of_shape(literal, literal.shape().expect_array()?)
    }

    /// An array on the device, in the layout of `shape` or the nearest one the device has. The literal must have its
    /// dimensions.
    pub fn buffer_of_shape(&self, literal: &Literal, shape: &ArrayShape) -> Result<Buffer> {
        fits(literal, shape)?;
        self.buffer_for(literal, shape, &|| format!("an array of {shape}"))
    }

    /// A literal on the device, in the layout of `shape` or the nearest one; `what` is it that errors talk of.
    pub(super) fn buffer_for(
        &self,
        literal: &Literal,
        shape: &ArrayShape,
        what: &dyn Fn() -> String,
    ) -> Result<Buffer> {
        let device = &self.0;
        let shape = device.transfer.device_shape(shape)?;
        let place = || format!("platform {}, {}", device.platform, what());
        device.stream.annotate(&place);
        let memory = device.executor.allocate(device.transfer.byte_size(&shape)?).context(place)?;
        let (memory, event) = device.upload(literal, &shape, memory).context(place)?;
        Ok(Buffer::new(self.clone(), Arc::new(shape), Slot::ready(memory, event)))
    }
}
