//! Creation of buffers: from host values and memory, without a value yet, or failed.

use std::sync::Arc;

use xla_hlo::{ArrayShape, Error, Layout, Literal, Result, ResultExt};

use super::buffer::Buffer;
use super::device::{Client, Device, fits};
use super::value::{Sender, Value, Work};
use crate::executor::DeviceMemory;
use crate::forked;
use crate::host::{ExternalMemory, StridedShape};

/// Producer side of a buffer that was created before its value; see [`Device::alias_buffer`]. If it is dropped unused,
/// the buffer fails.
#[derive(Debug)]
pub struct BufferPromise {
    buffer: Buffer,
    value: Arc<Value>,
    sender: Sender,
}

/// Memory of a buffer that is being filled; see [`Device::staged_buffer`]. If it is dropped unfinished, the buffer
/// fails.
#[derive(Debug)]
pub struct StagedBuffer {
    promise: BufferPromise,
    memory: DeviceMemory,
}

/// Creation of buffers on the first device.
impl Client {
    /// Copies a literal to the first device, in the device's default layout. The literal must be an array.
    pub fn buffer(&self, literal: &Literal) -> Result<Buffer> {
        self.buffer_of_shape(literal, literal.shape().expect_array()?)
    }

    /// Copies a literal to the first device, in the layout of `shape` or the nearest one that the device supports. The
    /// literal must have the dimensions of `shape`.
    pub fn buffer_of_shape(&self, literal: &Literal, shape: &ArrayShape) -> Result<Buffer> {
        fits(literal, shape)?;
        self.first_device().buffer_for(literal, shape, &|| format!("an array of {shape}"))
    }
}

/// Creation of buffers.
impl Device {
    /// Copies a literal to the device, in the layout of `shape` or the nearest one that the device supports. The
    /// literal must have the dimensions of `shape`.
    pub fn buffer_of_shape(&self, literal: &Literal, shape: &ArrayShape) -> Result<Buffer> {
        fits(literal, shape)?;
        self.buffer_for(literal, shape, &|| format!("an array of {shape}"))
    }

    /// Copies an array from the caller's memory to the device, in `layout` or the device's default one. The caller may
    /// reuse the memory when the call returns.
    pub fn buffer_from_host(&self, source: &[u8], array: &StridedShape<'_>, layout: Option<&Layout>) -> Result<Buffer> {
        array.check_inside(source.len())?;
        let shape = self.client().0.transfer.device_shape(&wanted(array, layout))?;
        self.copy_from_host(source, array, shape)
    }

    /// Copies an array from the caller's memory to the device, as an array of a device shape.
    fn copy_from_host(&self, source: &[u8], array: &StridedShape<'_>, shape: ArrayShape) -> Result<Buffer> {
        if !self.client().0.transfer.lies_as_on_host() {
            let dense = ArrayShape::new(array.element_type, array.dims.to_vec()).with_row_major_layout();
            let mut literal = Literal::zeros(&dense)?;
            array.copy_to(source, &dense, literal.bytes_mut())?;
            return self.buffer_for(&literal, &shape, &|| format!("an array of {shape}"));
        }
        let mut memory = self.allocate(&shape)?;
        match memory.host_bytes_mut() {
            Some(bytes) => array.copy_to(source, &shape, bytes)?,
            None => {
                let mut bytes = vec![0; shape.byte_size()];
                array.copy_to(source, &shape, &mut bytes)?;
                self.stream().copy_to_device(&bytes, &mut memory, 0).context(|| self.place(&shape))?;
            }
        }
        self.buffer_in(memory, shape)
    }

    /// Creates a buffer from external memory, in `layout` or the device's default one. The buffer uses the memory
    /// itself if the device can read it and the array is dense in that layout. Otherwise the array is copied, and the
    /// memory is dropped before the call returns.
    pub fn buffer_from_external(
        &self,
        memory: ExternalMemory,
        array: &StridedShape<'_>,
        layout: Option<&Layout>,
    ) -> Result<Buffer> {
        array.check_inside(memory.bytes().len())?;
        let transfer = &self.client().0.transfer;
        let shape = transfer.device_shape(&wanted(array, layout))?;
        let bytes = array.dense_bytes(&shape);
        if !transfer.lies_as_on_host() || bytes != Some(0..memory.bytes().len()) {
            return self.copy_from_host(memory.bytes(), array, shape);
        }
        match self.state().executor.adopt(memory) {
            Ok(memory) => Ok(Buffer::new(self.clone(), Arc::new(shape), Value::new(Arc::new(memory), Work::default()))),
            Err(memory) => self.copy_from_host(memory.bytes(), array, shape),
        }
    }

    /// Creates an array with arbitrary contents.
    pub fn uninitialized_buffer(&self, shape: &ArrayShape) -> Result<Buffer> {
        let shape = self.client().0.transfer.device_shape(shape)?;
        self.buffer_in(self.allocate(&shape)?, shape)
    }

    /// Creates a failed buffer: every use returns this error, and so do the results of programs that read it.
    pub fn errored_buffer(&self, shape: &ArrayShape, error: Error) -> Result<Buffer> {
        let shape = self.client().0.transfer.device_shape(shape)?;
        Ok(Buffer::new(self.clone(), Arc::new(shape), Value::pending(Work::failed(error))))
    }

    /// Creates a buffer whose value, or error, is set later; see [`BufferPromise::fulfil`].
    pub fn alias_buffer(&self, shape: &ArrayShape) -> Result<(Buffer, BufferPromise)> {
        let shape = self.client().0.transfer.device_shape(shape)?;
        let (work, sender) = Work::pending();
        let value = Value::pending(work);
        let buffer = Buffer::new(self.clone(), Arc::new(shape), value.clone());
        Ok((buffer.clone(), BufferPromise { buffer, value, sender }))
    }

    /// Creates a buffer that is written in pieces and becomes ready when it is finished.
    pub fn staged_buffer(&self, shape: &ArrayShape) -> Result<(Buffer, StagedBuffer)> {
        let shape = self.client().0.transfer.device_shape(shape)?;
        let memory = self.allocate(&shape)?;
        let (buffer, promise) = self.alias_buffer(&shape)?;
        Ok((buffer, StagedBuffer { promise, memory }))
    }

    /// Copies a literal to the device, in the layout of `shape` or the nearest one. `what` names the array in error
    /// messages.
    pub(super) fn buffer_for(
        &self,
        literal: &Literal,
        shape: &ArrayShape,
        what: &dyn Fn() -> String,
    ) -> Result<Buffer> {
        let (client, state) = (&self.client().0, self.state());
        let shape = client.transfer.device_shape(shape)?;
        let place = || format!("platform {}, {}", client.platform, what());
        state.stream.annotate(&place);
        let mut memory = state.executor.allocate(client.transfer.byte_size(&shape)?).context(place)?;
        client.transfer.write(&*state.stream, literal, &shape, &mut memory, 0).context(place)?;
        let event = state.stream.record_event().context(place)?;
        Ok(Buffer::new(self.clone(), Arc::new(shape), Value::new(Arc::new(memory), Work::sent(event))))
    }

    /// Allocates memory for an array of a device shape.
    pub(super) fn allocate(&self, shape: &ArrayShape) -> Result<DeviceMemory> {
        // In a forked child, the pool's lock may be held by a thread that no longer exists.
        forked::check()?;
        let bytes = self.client().0.transfer.byte_size(shape)?;
        self.state().executor.allocate(bytes).context(|| self.place(shape))
    }

    /// Creates the buffer of an array that already sent work writes to `memory`.
    fn buffer_in(&self, memory: DeviceMemory, shape: ArrayShape) -> Result<Buffer> {
        let event = self.stream().record_event().context(|| self.place(&shape))?;
        Ok(Buffer::new(self.clone(), Arc::new(shape), Value::new(Arc::new(memory), Work::sent(event))))
    }

    fn place(&self, shape: &ArrayShape) -> String {
        format!("platform {}, an array of {shape}", self.client().platform())
    }
}

impl BufferPromise {
    /// Fulfils the promise with the value of another buffer of the same shape and device, which may still be pending,
    /// or with an error. A mismatch is returned as an error and also fails the promised buffer.
    pub fn fulfil(self, with: Result<&Buffer>) -> Result<()> {
        let BufferPromise { buffer, value, sender } = self;
        let source = with.and_then(|other| {
            if other.device() != buffer.device() || other.shape() != buffer.shape() {
                let (shape, device) = (buffer.shape(), buffer.device());
                return Err(Error::invalid_argument(format!(
                    "an alias of {shape} on {device:?} cannot be fulfilled with {} on {:?}",
                    other.shape(),
                    other.device()
                )));
            }
            other.value()
        });
        drop(buffer);
        match source {
            Ok(source) => {
                let (work, given) = (source.work().clone(), source);
                work.when_sent(move |outcome| {
                    let event = outcome.and_then(|()| {
                        value.fill(given.memory()?.clone());
                        given.work().event()
                    });
                    drop((given, value));
                    sender.set(event);
                });
                Ok(())
            }
            Err(error) => {
                sender.set(Err(error.again()));
                Err(error)
            }
        }
    }
}

impl StagedBuffer {
    /// Writes bytes at `offset`, in the form in which the device stores the array.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        check_range(self.memory.byte_size(), offset, bytes.len())?;
        self.promise.buffer.device().stream().copy_to_device(bytes, &mut self.memory, offset)
    }

    /// Makes the buffer ready, or failed if `outcome` is an error.
    pub fn finish(self, outcome: Result<()>) {
        let BufferPromise { buffer, value, sender } = self.promise;
        let event = outcome.and_then(|()| buffer.device().stream().record_event());
        if event.is_ok() {
            value.fill(Arc::new(self.memory));
        }
        drop((buffer, value));
        sender.set(event);
    }
}

/// Returns [`Error::InvalidArgument`] if a range of bytes is outside the array.
pub(super) fn check_range(size: usize, offset: usize, bytes: usize) -> Result<()> {
    if offset.checked_add(bytes).is_some_and(|end| end <= size) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("{bytes} bytes at offset {offset} are not inside of an array of {size} bytes")))
}

fn wanted(array: &StridedShape<'_>, layout: Option<&Layout>) -> ArrayShape {
    ArrayShape::new(array.element_type, array.dims.to_vec()).with_layout(layout.cloned())
}
