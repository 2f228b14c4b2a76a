//! Copies of buffers: to the caller's memory, raw bytes in both directions, and to other devices.

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
    /// Waits for the value and copies its bytes as stored on the device: in the layout of [`Buffer::shape`], padding
    /// included.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.byte_size()?];
        self.copy_raw_to_host(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Waits for the value and fills `target` with its bytes from `offset` on, as stored on the device.
    pub fn copy_raw_to_host(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        check_range(self.byte_size()?, offset, target.len())?;
        let value = self.value()?;
        self.device().stream().copy_to_host(value.computed()?, offset, target)
    }

    /// Waits for the value and overwrites its bytes from `offset` on, as stored on the device.
    ///
    /// Existing shares of the memory (programs, holds, views) keep the old contents: the buffer gets new memory.
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

    /// Waits for the value and copies it to the caller's memory, in any order of dimensions and at its actual sizes.
    /// Gaps between elements in `target` stay unchanged.
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

    /// Calls `reader` with the buffer when the value is computed, or with its error: immediately on this thread, or
    /// later on another thread. The completion ends after the call, with the result of `reader`.
    pub fn read_when_ready(&self, reader: impl FnOnce(Result<&Buffer>) -> Result<()> + Send + 'static) -> Completion {
        // A separate buffer, so that the value cannot be donated or deleted in the meantime.
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

    /// Copies the buffer to another device of the same client once the value is computed.
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

/// Copies the value of a computed buffer to new memory on `target`.
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
