//! Copies of buffers: to memory of callers, byte by byte both ways, to other devices.

use std::sync::Arc;

use xla_hlo::{Result, ResultExt};

use super::buffer::Buffer;
use super::completion::Completion;
use super::create::check_range;
use super::device::{Device, protect};
use super::value::{Value, Work};
use crate::executor::{DeviceMemory, Event};
use crate::host::HostOrder;
use crate::workers::host_call;

impl Buffer {
    /// Waits for the value and copies its bytes as they lie on the device: in the layout of [`Buffer::shape`], padding
    /// included.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.byte_size()?];
        self.copy_raw_to_host(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Waits for the value and copies bytes from byte `offset` on, as they lie on the device, until `target` is full.
    pub fn copy_raw_to_host(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        check_range(self.byte_size()?, offset, target.len())?;
        let value = self.value()?;
        self.device().stream().copy_to_host(value.computed()?, offset, target)
    }

    /// Waits for the value and writes bytes over it, from byte `offset` on, as it lies on the device.
    ///
    /// Whoever has a share of the memory already (a program, a hold, a view) keeps what there was: the buffer then gets
    /// memory of its own.
    pub fn copy_raw_from_host(&self, offset: usize, source: &[u8]) -> Result<()> {
        check_range(self.byte_size()?, offset, source.len())?;
        let value = self.value()?;
        let (device, before) = (self.device(), value.computed()?);
        let mut memory = device.allocate(self.shape())?;
        device.stream().copy(before, 0..before.byte_size(), &mut memory, 0)?;
        device.stream().copy_to_device(source, &mut memory, offset)?;
        self.replace(Value::new(Arc::new(memory), Work::sent(device.stream().record_event()?)));
        Ok(())
    }

    /// Waits for the value and copies it, at its sizes, to memory of the caller, in any order of dimensions. Gaps are
    /// left alone.
    pub fn copy_to_host(&self, order: HostOrder<'_>, target: &mut [u8]) -> Result<()> {
        if self.is_dynamic() {
            let literal = self.to_literal()?;
            literal.densify()?;
            let shape = literal.array_shape().clone().with_row_major_layout();
            return order.copy_from(&shape, literal.bytes(), target);
        }
        let value = self.value()?;
        let memory = value.computed()?;
        let (transfer, stream, shape) = (&self.client().0.transfer, self.device().stream(), self.shape());
        let place = || format!("platform {}, an array of {shape} for the host", self.client().platform());
        if !transfer.lies_as_on_host() {
            let literal = transfer.read(stream, memory, 0, shape).context(place)?;
            return order.copy_from(&shape.clone().with_row_major_layout(), literal.bytes(), target);
        }
        match memory.host_bytes() {
            Some(bytes) => order.copy_from(shape, bytes, target),
            None => {
                let mut bytes = vec![0; shape.byte_size()];
                stream.copy_to_host(memory, 0, &mut bytes).context(place)?;
                order.copy_from(shape, &bytes, target)
            }
        }
    }

    /// Calls `reader` with a hold when the value is there, or with the error: at once and here, or by another thread
    /// later. The completion ends after it, with what it returns.
    pub fn read_when_ready(&self, reader: impl FnOnce(Result<&Buffer>) -> Result<()> + Send + 'static) -> Completion {
        // A buffer of its own, which is not donated or deleted meanwhile.
        let own = match self.value() {
            Ok(value) => self.with_value(self.device().clone(), value),
            Err(error) => return Completion::of(protect(|| host_call(|| reader(Err(error))))),
        };
        let ready = own.completion();
        if ready.is_done() {
            return Completion::of(protect(|| host_call(|| reader(Ok(&own)))));
        }
        let (completion, completer) = Completion::pending();
        ready.on_ready(move |outcome| {
            let read = protect(|| reader(outcome.map(|()| &own)));
            drop(own);
            completer.set(read);
        });
        completion
    }

    /// A copy on another device of the same client, when the value is there.
    pub fn copy_to_device(&self, target: &Device) -> Result<Buffer> {
        if !Arc::ptr_eq(&target.client().0, &self.client().0) {
            return Err(self.client().cannot("copy an array to a device of another client"));
        }
        let (work, sender) = Work::pending();
        let copy = Value::pending(work);
        let buffer = self.with_value(target.clone(), copy.clone());
        let target = target.clone();
        let read = self.read_when_ready(move |source| {
            let copied = source.and_then(|source| transfer(source, &target));
            let event = copied.map(|(memory, event)| {
                copy.fill(Arc::new(memory));
                event
            });
            drop(copy);
            sender.set(event);
            Ok(())
        });
        drop(read);
        Ok(buffer)
    }
}

/// Memory of `target` with the value of a buffer that is there.
fn transfer(source: &Buffer, target: &Device) -> Result<(DeviceMemory, Event)> {
    let value = source.value()?;
    let from = value.computed()?;
    let mut memory = target.allocate(source.shape())?;
    match from.host_bytes() {
        Some(bytes) => target.stream().copy_to_device(bytes, &mut memory, 0)?,
        None => {
            let mut bytes = vec![0; from.byte_size()];
            source.device().stream().copy_to_host(from, 0, &mut bytes)?;
            target.stream().copy_to_device(&bytes, &mut memory, 0)?;
        }
    }
    Ok((memory, target.stream().record_event()?))
}
