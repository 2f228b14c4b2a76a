//! Transfers of literals to and from device memory, and layouts of arrays on the device.

use std::fmt;

use xla_hlo::{ArrayShape, Literal, Result};

use crate::executor::{DeviceMemory, Stream};

/// Moves values between host and device, and knows how arrays lie there.
///
/// # Contract
///
/// - **Threads.** Every method may be called from any thread at any time.
/// - **Shapes** given to [`TransferManager::write`] and [`TransferManager::read`] are device shapes: ones that
///   [`TransferManager::device_shape`] returned. The caller (the client) has checked that the literal has the shape's
///   element type and dimensions, and that the memory has [`TransferManager::byte_size`] bytes from the offset on;
///   implementations answer remaining mismatches with [`xla_hlo::Error::Internal`].
/// - **Only arrays** come here: tuples are taken apart by the service, tokens have no bytes.
pub trait TransferManager: Send + Sync + fmt::Debug {
    /// The shape with the layout it has on this device: the layout asked for where the device can have it, else the
    /// nearest one; row major, or the device's preferred one, where none was asked for. Applying it twice changes
    /// nothing.
    fn device_shape(&self, shape: &ArrayShape) -> Result<ArrayShape>;

    /// Bytes that an array of a device shape takes, padding and packing included.
    fn byte_size(&self, shape: &ArrayShape) -> Result<usize>;

    /// Writes a literal to memory, from byte `offset` on, in the layout of the device shape.
    fn write(
        &self,
        stream: &dyn Stream,
        literal: &Literal,
        shape: &ArrayShape,
        memory: &mut DeviceMemory,
        offset: usize,
    ) -> Result<()>;

    /// Reads a literal from memory, from byte `offset` on; the bytes lie there in the layout of the device shape.
    fn read(&self, stream: &dyn Stream, memory: &DeviceMemory, offset: usize, shape: &ArrayShape) -> Result<Literal>;

    /// Whether arrays of a device shape lie in memory as on the host: elements in whole bytes, in the layout's order,
    /// without tiles and padding. Bytes then go to and from memory without a literal between.
    fn lies_as_on_host(&self) -> bool {
        false
    }

    /// The ability to feed running programs, if the device has it.
    fn feeds(&self) -> Option<&dyn FeedTransfer> {
        None
    }
}

/// Optional ability: values handed to and taken from a running program (`infeed`, `outfeed`).
pub trait FeedTransfer: Send + Sync {
    /// Puts a value at the end of the device's infeed queue; may block while the queue is full.
    fn push_infeed(&self, literal: &Literal) -> Result<()>;

    /// Takes a value of that shape from the device's outfeed queue; blocks until there is one.
    fn pop_outfeed(&self, shape: &xla_hlo::Shape) -> Result<Literal>;
}
