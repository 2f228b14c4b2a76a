//! A stream of one GPU as the service sees it: copies, events, waiting.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use xla_hlo::{Error, Result};
use xla_service::executor::DeviceEvent;
use xla_service::{DeviceMemory, Event, Stream};

use super::executor::{Parts, address_on, scratch};
use super::queue::{self, Mark, Queue};

/// Work in order.
///
/// Errors: a kernel that faults ends the whole context, of which CUDA tells at the next call, whichever that is. So every call after
/// it fails on every stream of the device in this process, and the first error says what was under way, not which of it was wrong.
pub(crate) struct CudaStream {
    queue: Arc<Queue>,
    parts: Arc<Parts>,
}

impl CudaStream {
    pub(super) fn new(parts: &Arc<Parts>) -> Result<CudaStream> {
        Ok(CudaStream { queue: parts.queue()?, parts: parts.clone() })
    }

    /// The queue of the driver that work goes to.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Another stream of the same device.
    pub(super) fn aside(&self) -> Result<CudaStream> {
        CudaStream::new(&self.parts)
    }

    pub(super) fn parts(&self) -> &Arc<Parts> {
        &self.parts
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        self.parts.give_back(&self.queue);
    }
}

impl Stream for CudaStream {
    fn copy_to_device(&self, source: &[u8], target: &mut DeviceMemory, offset: usize) -> Result<()> {
        let to = address_on(target, self, offset, source.len())?;
        self.parts.staging.upload(&self.queue, source, to)
    }

    fn copy_to_host(&self, source: &DeviceMemory, offset: usize, target: &mut [u8]) -> Result<()> {
        let from = address_on(source, self, offset, target.len())?;
        self.parts.staging.download(&self.queue, from, target)
    }

    fn copy(&self, source: &DeviceMemory, range: Range<usize>, target: &mut DeviceMemory, offset: usize) -> Result<()> {
        let bytes = range.len();
        let from = address_on(source, self, range.start, bytes)?;
        let to = address_on(target, self, offset, bytes)?;
        if bytes == 0 { Ok(()) } else { self.queue.copy(from, to, bytes) }
    }

    fn copy_within(&self, memory: &mut DeviceMemory, range: Range<usize>, offset: usize) -> Result<()> {
        let bytes = range.len();
        let from = address_on(memory, self, range.start, bytes)?;
        let to = address_on(memory, self, offset, bytes)?;
        if bytes == 0 || from == to {
            return Ok(());
        }
        if range.start.abs_diff(offset) >= bytes {
            return self.queue.copy(from, to, bytes);
        }
        // The driver's copies must not overlap. The scratch memory is dropped at once: it is given back in the order of the stream.
        let between = scratch(self, bytes)?;
        let between = between.address_on(self, 0, bytes)?;
        self.queue.copy(from, between, bytes)?;
        self.queue.copy(between, to, bytes)
    }

    fn record_event(&self) -> Result<Event> {
        Ok(Event::new(CudaEvent(self.queue.mark()?)))
    }

    fn wait_for(&self, event: &Event) -> Result<()> {
        match event.downcast::<CudaEvent>() {
            Some(CudaEvent(mark)) if Arc::ptr_eq(mark.queue().context(), self.queue.context()) => {
                self.queue.wait_for(mark)
            }
            Some(_) => Err(Error::invalid_argument(format!("an event of another GPU was given to {self:?}"))),
            None => event.wait(),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.queue.synchronize()
    }

    fn annotate(&self, place: &dyn Fn() -> String) {
        queue::annotate(&place());
    }
}

impl fmt::Debug for CudaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaStream({:?})", self.queue)
    }
}

/// A point in a stream's work.
struct CudaEvent(Mark);

impl DeviceEvent for CudaEvent {
    fn is_reached(&self) -> Result<bool> {
        self.0.is_reached()
    }

    fn wait(&self) -> Result<()> {
        self.0.wait()
    }
}
