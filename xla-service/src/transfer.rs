//! Transfers of literals to and from device memory, and layouts of arrays on the device.

use std::fmt;

use xla_hlo::{ArrayShape, Literal, Result};

use crate::executor::{DeviceMemory, Stream};

/// Transfer manager: copies values between host and device, and determines their layout on the device.
///
/// # Contract
///
/// - **Threads.** Every method may be called from any thread at any time.
/// - **Shapes** passed to [`TransferManager::write`] and [`TransferManager::read`] are device shapes: shapes that
///   [`TransferManager::device_shape`] returned. The caller (the client) has checked that the literal has the shape's
///   element type and dimensions, and that the memory has [`TransferManager::byte_size`] bytes from the offset on;
///   implementations report remaining mismatches as [`xla_hlo::Error::Internal`].
/// - **Only arrays** are transferred: the service splits tuples, and tokens have no bytes.
pub trait TransferManager: Send + Sync + fmt::Debug {
    /// Returns the shape with its layout on this device: the requested layout if the device supports it, otherwise the
    /// nearest one. If no layout is requested, it is row-major or the device's preferred layout. The function is
    /// idempotent.
    fn device_shape(&self, shape: &ArrayShape) -> Result<ArrayShape>;

    /// Returns the bytes that an array of a device shape takes, padding and packing included.
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

    /// Reads a literal from memory, from byte `offset` on, where it is stored in the layout of the device shape.
    fn read(&self, stream: &dyn Stream, memory: &DeviceMemory, offset: usize, shape: &ArrayShape) -> Result<Literal>;

    /// Whether the device stores arrays in the host's format: elements in whole bytes, in the layout's order, without
    /// tiles or padding. Bytes are then copied to and from memory without an intermediate literal.
    fn lies_as_on_host(&self) -> bool {
        false
    }

    /// Returns the ability to feed running programs, if the device has it.
    fn feeds(&self) -> Option<&dyn FeedTransfer> {
        None
    }
}

/// Optional ability: exchanges values with a running program (`infeed`, `outfeed`).
pub trait FeedTransfer: Send + Sync {
    /// Appends a value to the device's infeed queue; may block while the queue is full.
    fn push_infeed(&self, literal: &Literal) -> Result<()>;

    /// Removes a value of this shape from the device's outfeed queue; blocks until there is one.
    fn pop_outfeed(&self, shape: &xla_hlo::Shape) -> Result<Literal>;
}
