//! Buffers: arrays on a device, which may still be pending.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::{ArrayShape, Error, Literal, Result, ResultExt};

use super::completion::Completion;
use super::device::{Client, Device};
use super::sizes::BufferSizes;
use super::value::Value;
use crate::executor::DeviceMemory;

/// Array on a device. Clones are handles to the same array.
///
/// The value may still be pending; methods that need it wait for it. After the buffer was donated to a program or
/// deleted, every use through any handle is `Error::FailedPrecondition`. If the program that computes the value fails,
/// every use returns that program's error.
///
/// All readers share the memory: programs that were launched with the buffer, [holds](Buffer::hold) and
/// [views](Buffer::view). It is freed when its last user is dropped. No user observes a change: if memory is donated
/// while it is shared, the program receives a copy.
///
/// A result of dynamic size has memory for its bound. The elements within its actual sizes are stored at the beginning,
/// densely, in the order of its layout.
#[derive(Clone)]
pub struct Buffer(Arc<BufferState>);

struct BufferState {
    device: Device,
    shape: Arc<ArrayShape>,
    /// Sizes of the dynamic dimensions.
    sizes: Option<BufferSizes>,
    held: Mutex<Held>,
}

/// Share of the value that the buffer itself holds.
enum Held {
    Value(Arc<Value>),
    Donated,
    Deleted,
}

/// Share of a buffer's memory. It keeps address and contents valid while it lives, even if the buffer is deleted or
/// donated. (PJRT: external reference.)
#[derive(Clone, Debug)]
pub struct BufferHold(Arc<DeviceMemory>);

impl Buffer {
    pub(super) fn new(device: Device, shape: Arc<ArrayShape>, value: Arc<Value>) -> Buffer {
        Buffer::of_sizes(device, shape, None, value)
    }

    /// Creates a buffer, of dynamic size if `sizes` is given.
    pub(super) fn of_sizes(
        device: Device,
        shape: Arc<ArrayShape>,
        sizes: Option<BufferSizes>,
        value: Arc<Value>,
    ) -> Buffer {
        Buffer(Arc::new(BufferState { device, shape, sizes, held: Mutex::new(Held::Value(value)) }))
    }

    /// Creates a buffer on `device` with this buffer's shape and sizes, and another value.
    pub(super) fn with_value(&self, device: Device, value: Arc<Value>) -> Buffer {
        Buffer::of_sizes(device, self.0.shape.clone(), self.0.sizes.clone(), value)
    }

    /// Returns the shape with its layout on the device. Dimensions of dynamic size (`<=`) have their bound.
    pub fn shape(&self) -> &ArrayShape {
        &self.0.shape
    }

    /// Returns the shape at the actual sizes of dynamic dimensions, with the layout on the device. Waits for the sizes.
    /// [`Buffer::to_literal`] returns a literal of these dimensions.
    pub fn real_shape(&self) -> Result<ArrayShape> {
        let shape = self.shape();
        let Some(sizes) = &self.0.sizes else { return Ok(shape.clone()) };
        Ok(ArrayShape::new(shape.element_type(), sizes.dims(shape)?).with_layout(shape.layout().cloned()))
    }

    /// Whether a dimension has a dynamic size.
    pub fn is_dynamic(&self) -> bool {
        self.0.sizes.is_some()
    }

    /// Returns the client that owns the buffer.
    pub fn client(&self) -> &Client {
        self.0.device.client()
    }

    /// Returns the device that holds the array.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Returns the size on the device in bytes, padding included.
    pub fn byte_size(&self) -> Result<usize> {
        self.client().0.transfer.byte_size(self.shape())
    }

    /// Whether the value is computed, so that no use would block; an error if its computation failed.
    pub fn is_ready(&self) -> Result<bool> {
        self.value()?.work().is_done()
    }

    /// Waits for the value.
    pub fn wait(&self) -> Result<()> {
        self.value()?.computed().map(drop)
    }

    /// Returns the completion of the work that computes the value. Its outcome is an error if the buffer was donated or
    /// deleted.
    pub fn completion(&self) -> Completion {
        match self.value() {
            Ok(value) => value.work().completion(&self.client().0.workers),
            Err(error) => Completion::failed(error),
        }
    }

    /// Calls `callback` when the value is computed or its computation has failed; see [`Completion::on_ready`].
    pub fn on_ready(&self, callback: impl FnOnce(Result<()>) + Send + 'static) {
        self.completion().on_ready(callback);
    }

    /// Waits for the value and copies it to the host, at its actual sizes.
    pub fn to_literal(&self) -> Result<Literal> {
        let value = self.value()?;
        let memory = value.computed()?;
        let (client, stream) = (&self.client().0, self.device().stream());
        let read = |shape: &ArrayShape| {
            let literal = client.transfer.read(stream, memory, 0, shape);
            literal.context(|| format!("platform {}, an array of {} for the host", client.platform, self.shape()))
        };
        let Some(sizes) = &self.0.sizes else { return read(self.shape()) };
        let whole = read(&self.shape().clone().with_dynamism(Vec::new()))?;
        whole.reflowed(&sizes.dims(self.shape())?, &self.shape().minor_to_major())
    }

    /// Releases the buffer's share of the memory. Programs that were launched with it, holds and views are unaffected.
    pub fn delete(&self) {
        let mut held = self.held();
        if let Held::Value(_) = *held {
            let share = std::mem::replace(&mut *held, Held::Deleted);
            drop(held);
            // Dropped after unlocking, because dropping the memory may call back into this buffer.
            drop(share);
        }
    }

    /// Whether the buffer was deleted or donated.
    pub fn is_deleted(&self) -> bool {
        !matches!(*self.held(), Held::Value(_))
    }

    /// Whether the buffer was donated.
    pub fn is_donated(&self) -> bool {
        matches!(*self.held(), Held::Donated)
    }

    /// Waits for the value and returns a share of its memory.
    pub fn hold(&self) -> Result<BufferHold> {
        Ok(BufferHold(self.value()?.computed()?.clone()))
    }

    /// Returns a buffer that shares this memory under another shape of the same size in bytes. It stays valid after
    /// [`Buffer::delete`] on this buffer.
    ///
    /// [`Error::InvalidArgument`] if the sizes differ, [`Error::Unimplemented`] if the device stores arrays in another
    /// form than the host.
    pub fn view(&self, shape: &ArrayShape) -> Result<Buffer> {
        let transfer = &self.client().0.transfer;
        let shape = transfer.device_shape(shape)?;
        if !transfer.lies_as_on_host() {
            return Err(self.client().cannot("view an array as one of another shape"));
        }
        let (bytes, expected) = (transfer.byte_size(&shape)?, self.byte_size()?);
        if bytes != expected {
            return Err(Error::invalid_argument(format!(
                "a view of {} must have its {expected} bytes, {shape} has {bytes}",
                self.shape()
            )));
        }
        Ok(Buffer::new(self.device().clone(), Arc::new(shape), self.value()?))
    }

    /// Returns a share of the value, which may be pending or failed.
    pub(super) fn value(&self) -> Result<Arc<Value>> {
        match &*self.held() {
            Held::Value(value) => Ok(value.clone()),
            Held::Donated => Err(gone("donated to a program")),
            Held::Deleted => Err(gone("deleted")),
        }
    }

    /// Whether the buffer has this shape. Usually both are the same `Arc`, from the signature of one program.
    pub(super) fn has_shape(&self, shape: &Arc<ArrayShape>) -> bool {
        Arc::ptr_eq(&self.0.shape, shape) || *self.0.shape == **shape
    }

    /// Moves the buffer's share of the value out, to donate it to a program.
    pub(super) fn donate(&self) -> Result<Arc<Value>> {
        let mut held = self.held();
        match std::mem::replace(&mut *held, Held::Donated) {
            Held::Value(value) => Ok(value),
            gone => {
                *held = gone;
                drop(held);
                self.value()
            }
        }
    }

    /// Returns a donated share to the buffer, because the launch failed.
    pub(super) fn take_back(&self, value: Arc<Value>) {
        *self.held() = Held::Value(value);
    }

    /// Replaces the value by a changed one, unless the buffer was deleted or donated in the meantime.
    pub(super) fn replace(&self, value: Arc<Value>) {
        let mut held = self.held();
        if let Held::Value(_) = *held {
            let before = std::mem::replace(&mut *held, Held::Value(value));
            drop(held);
            drop(before);
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn gone(how: &str) -> Error {
    Error::failed_precondition(format!("the buffer was {how} and cannot be used again"))
}

impl Deref for BufferHold {
    type Target = DeviceMemory;

    fn deref(&self) -> &DeviceMemory {
        &self.0
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gone = match &*self.held() {
            Held::Value(_) => "",
            Held::Donated => ", donated",
            Held::Deleted => ", deleted",
        };
        write!(f, "Buffer({} on {}{gone})", self.shape(), self.client().platform())
    }
}
