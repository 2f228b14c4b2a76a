//! Arrays on a device, perhaps still being computed.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::{ArrayShape, Error, Literal, Result, ResultExt};

use super::completion::Completion;
use super::device::{Client, Device};
use super::sizes::BufferSizes;
use super::value::Value;
use crate::executor::DeviceMemory;

/// An array on a device. A clone is another handle to the same array.
///
/// It may still be computed; methods that need the value wait for it. Once it was donated to a program or deleted,
/// every use by any handle is `Error::FailedPrecondition`. If the program that should compute it fails, every use
/// returns that program's error.
///
/// Its memory is shared with whoever reads it: programs that were launched with it, [holds](Buffer::hold),
/// [views](Buffer::view). It is given back when the last of them is gone, and none of them sees a change of it: what
/// is donated while others have a share is copied.
///
/// A result of dynamic size has memory for its bound, which begins with the elements within its sizes, without gaps in
/// the order of its layout.
#[derive(Clone)]
pub struct Buffer(Arc<BufferState>);

struct BufferState {
    device: Device,
    shape: Arc<ArrayShape>,
    /// Sizes of dynamic dimensions.
    sizes: Option<BufferSizes>,
    held: Mutex<Held>,
}

/// A buffer's own share of its value.
enum Held {
    Value(Arc<Value>),
    Donated,
    Deleted,
}

/// A share of a buffer's memory, which keeps its address and contents as long as it lives, whatever becomes of the
/// buffer. (PJRT: an external reference.)
#[derive(Clone, Debug)]
pub struct BufferHold(Arc<DeviceMemory>);

impl Buffer {
    pub(super) fn new(device: Device, shape: Arc<ArrayShape>, value: Arc<Value>) -> Buffer {
        Buffer::of_sizes(device, shape, None, value)
    }

    /// An array of dynamic size, if it has sizes.
    pub(super) fn of_sizes(
        device: Device,
        shape: Arc<ArrayShape>,
        sizes: Option<BufferSizes>,
        value: Arc<Value>,
    ) -> Buffer {
        Buffer(Arc::new(BufferState { device, shape, sizes, held: Mutex::new(Held::Value(value)) }))
    }

    /// Another buffer of this one's shape and sizes, on that device.
    pub(super) fn with_value(&self, device: Device, value: Arc<Value>) -> Buffer {
        Buffer::of_sizes(device, self.0.shape.clone(), self.0.sizes.clone(), value)
    }

    /// The shape, with the layout it has on the device. Of a dimension of dynamic size (`<=`) it has the bound.
    pub fn shape(&self) -> &ArrayShape {
        &self.0.shape
    }

    /// The shape at the sizes of dynamic dimensions, which it waits for: that of [`Buffer::to_literal`], with the
    /// layout on the device.
    pub fn real_shape(&self) -> Result<ArrayShape> {
        let shape = self.shape();
        let Some(sizes) = &self.0.sizes else { return Ok(shape.clone()) };
        Ok(ArrayShape::new(shape.element_type(), sizes.dims(shape)?).with_layout(shape.layout().cloned()))
    }

    /// Whether a dimension has a dynamic size.
    pub fn is_dynamic(&self) -> bool {
        self.0.sizes.is_some()
    }

    /// The client that made it.
    pub fn client(&self) -> &Client {
        self.0.device.client()
    }

    /// The device that it lies on.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Bytes that it takes on the device, padding included.
    pub fn byte_size(&self) -> Result<usize> {
        self.client().0.transfer.byte_size(self.shape())
    }

    /// Whether the value is there, so that nothing would wait for it; an error if it never will be.
    pub fn is_ready(&self) -> Result<bool> {
        self.value()?.work().is_done()
    }

    /// Waits for the value.
    pub fn wait(&self) -> Result<()> {
        self.value()?.computed().map(drop)
    }

    /// The end of the work that computes it. Of a buffer that was donated or deleted it is an error.
    pub fn completion(&self) -> Completion {
        match self.value() {
            Ok(value) => value.work().completion(&self.client().0.workers),
            Err(error) => Completion::failed(error),
        }
    }

    /// Has `callback` called when the value is there, or an error is certain: see [`Completion::on_ready`].
    pub fn on_ready(&self, callback: impl FnOnce(Result<()>) + Send + 'static) {
        self.completion().on_ready(callback);
    }

    /// Waits for the value and copies it to the host, at its sizes.
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

    /// Gives the buffer's share of the memory up. Programs that were launched with it, holds and views go on.
    pub fn delete(&self) {
        let mut held = self.held();
        if let Held::Value(_) = *held {
            let share = std::mem::replace(&mut *held, Held::Deleted);
            drop(held);
            // Only now: what is dropped with it may call back.
            drop(share);
        }
    }

    /// Whether it was deleted or donated.
    pub fn is_deleted(&self) -> bool {
        !matches!(*self.held(), Held::Value(_))
    }

    /// Whether it was donated.
    pub fn is_donated(&self) -> bool {
        matches!(*self.held(), Held::Donated)
    }

    /// A share of the memory, when the value is there; waits for it.
    pub fn hold(&self) -> Result<BufferHold> {
        Ok(BufferHold(self.value()?.computed()?.clone()))
    }

    /// Another buffer of the same memory with another shape of as many bytes. It outlives this one's
    /// [`Buffer::delete`].
    ///
    /// [`Error::InvalidArgument`] where the sizes differ, [`Error::Unimplemented`] where arrays do not lie on the
    /// device as they do on the host.
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

    /// A share of the value, which may be pending or an error.
    pub(super) fn value(&self) -> Result<Arc<Value>> {
        match &*self.held() {
            Held::Value(value) => Ok(value.clone()),
            Held::Donated => Err(gone("donated to a program")),
            Held::Deleted => Err(gone("deleted")),
        }
    }

    /// Shape of the buffers that a program makes and takes: the very same value, most of the time.
    pub(super) fn has_shape(&self, shape: &Arc<ArrayShape>) -> bool {
        Arc::ptr_eq(&self.0.shape, shape) || *self.0.shape == **shape
    }

    /// Takes the buffer's share of the value away for a program that it is donated to.
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

    /// Gives the share back that a program was not launched with after all.
    pub(super) fn take_back(&self, value: Arc<Value>) {
        *self.held() = Held::Value(value);
    }

    /// Exchanges the value for a changed one, unless it is gone meanwhile.
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
