//! Stream of one GPU for the service: copies, events, synchronisation, capture.

pub(crate) mod clock;
pub(crate) mod in_flight;
pub(crate) mod queue;

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result};
use xla_service::executor::DeviceEvent;
use xla_service::{DeviceMemory, Event, Stream};

use super::graph::recording::Recording;
use super::library::{ChosenCall, Libraries};
use super::memory::CudaMemory;
use super::module::KernelLaunch;
use super::resources::DeviceResources;
use queue::{Queue, QueueMark};

/// CUDA stream, which executes its work in order.
///
/// Errors: a kernel fault destroys the whole context, and CUDA reports it at the next call, whichever that is. From
/// then on every call on every stream of the device fails in this process. The first error names the work in flight,
/// not the launch that failed.
///
/// A stream may capture instead of sending ([`CudaStream::capture`]): the work becomes a [`Recording`], for a graph or
/// for a loop that the device runs without the host. A recording does not involve the host: copies from and to it,
/// events and waiting are errors.
pub(crate) struct CudaStream {
    queue: Arc<Queue>,
    resources: Arc<DeviceResources>,
    capture: Option<Mutex<Capture>>,
}

/// Captured work in order: commands, and sequences of commands with an order of their own.
#[derive(Default)]
struct Capture {
    recording: Recording,
    /// Nodes that the next work must follow.
    last: Vec<usize>,
}

impl CudaStream {
    pub(crate) fn new(resources: &Arc<DeviceResources>) -> Result<CudaStream> {
        Ok(CudaStream { queue: resources.queue()?, resources: resources.clone(), capture: None })
    }

    /// Returns a stream that captures work, which is later sent to this one.
    pub fn capture(&self) -> CudaStream {
        CudaStream { queue: self.queue.clone(), resources: self.resources.clone(), capture: Some(Mutex::default()) }
    }

    /// Ends the capture and returns its recording; empty for a stream that sends.
    pub fn end_capture(&self) -> Recording {
        self.capture_state().map_or_else(Recording::default, |mut capture| std::mem::take(&mut *capture).recording)
    }

    /// Returns the driver's stream that work is sent to.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Creates another stream of the same device.
    pub(crate) fn aside(&self) -> Result<CudaStream> {
        CudaStream::new(&self.resources)
    }

    pub(crate) fn resources(&self) -> &Arc<DeviceResources> {
        &self.resources
    }

    /// Launches a kernel of a module of the same device.
    pub fn launch(&self, call: KernelLaunch) -> Result<()> {
        match self.capture_state() {
            Some(mut capture) => {
                capture.add(|recording, after| recording.kernel(call, after));
                Ok(())
            }
            None => call.send(&self.queue),
        }
    }

    /// Calls a library, with a workspace from the pool.
    pub fn library(&self, libraries: &Libraries, call: &ChosenCall, addresses: &[u64]) -> Result<()> {
        let bytes = libraries.workspace(call, addresses)?;
        let memory = self.scratch(bytes)?;
        let workspace = self.address_in(&memory, 0, bytes)?;
        match self.capture_state() {
            Some(mut capture) => {
                capture.add(|recording, after| recording.library(call, addresses, workspace, after));
                Ok(())
            }
            None => libraries.send(call, addresses, workspace, &self.queue),
        }
    }

    /// Adds control flow of the device to the captured work. Does nothing on a stream that sends.
    pub(crate) fn record(&self, add: impl FnOnce(&mut Recording, &[usize]) -> usize) {
        if let Some(mut capture) = self.capture_state() {
            capture.add(add);
        }
    }

    /// Adds a sequence after the work captured so far. Returns the sequence if this stream sends.
    pub(crate) fn capture_sequence(&self, sequence: Recording) -> Option<Recording> {
        let Some(mut capture) = self.capture_state() else { return Some(sequence) };
        let Capture { recording, last } = &mut *capture;
        *last = recording.append(sequence, last);
        None
    }

    /// Allocates memory for a command sequence's own use; dropping frees it in stream order.
    pub fn scratch(&self, bytes: usize) -> Result<CudaMemory> {
        self.resources.allocate(bytes)
    }

    /// Returns the address of `size` bytes from `offset` on in memory of this device, for work that is sent to this
    /// stream next. From then on this stream uses the memory: after the memory is dropped, its next user waits for that
    /// work.
    pub fn address_in(&self, memory: &CudaMemory, offset: usize, size: usize) -> Result<u64> {
        let address = memory.enter(&self.queue, offset, size)?;
        if let Some(mut capture) = self.capture_state() {
            capture.recording.keep(memory.clone());
        }
        Ok(address)
    }

    /// Like [`CudaStream::address_in`], for memory of the service; an error for memory of another device.
    pub fn address_of(&self, memory: &DeviceMemory, offset: usize, size: usize) -> Result<u64> {
        let memory = memory.downcast::<CudaMemory>()?;
        if !memory.is_of(&self.resources.pool) {
            return Err(Error::invalid_argument(format!("memory of another GPU was passed to {self:?}")));
        }
        self.address_in(memory, offset, size)
    }

    /// Copies host bytes to an address in memory that this stream uses.
    pub(crate) fn upload(&self, source: &[u8], to: u64) -> Result<()> {
        self.with_host()?;
        self.resources.staging.upload(&self.queue, source, to)
    }

    /// Copies the bytes at an address to the host, after all work sent before.
    pub(crate) fn download(&self, from: u64, target: &mut [u8]) -> Result<()> {
        self.with_host()?;
        self.resources.staging.download(&self.queue, from, target)
    }

    /// Whether the stream captures instead of sending.
    pub fn is_capturing(&self) -> bool {
        self.capture.is_some()
    }

    /// Copies device memory; the ranges must not overlap.
    pub(crate) fn copy_apart(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        match self.capture_state() {
            Some(mut capture) => {
                capture.add(|recording, after| recording.copy(from, to, bytes, after));
                Ok(())
            }
            None => self.queue.copy(from, to, bytes),
        }
    }

    fn capture_state(&self) -> Option<MutexGuard<'_, Capture>> {
        // Nothing panics while the lock is held.
        self.capture.as_ref().map(|capture| capture.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with_host(&self) -> Result<()> {
        match self.capture {
            Some(_) => Err(Error::internal("a stream that is capturing cannot access the host")),
            None => Ok(()),
        }
    }
}

impl Capture {
    fn add(&mut self, add: impl FnOnce(&mut Recording, &[usize]) -> usize) {
        self.last = vec![add(&mut self.recording, &self.last)];
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        if self.capture.is_none() {
            self.resources.give_back(&self.queue);
        }
    }
}

impl Stream for CudaStream {
    fn copy_to_device(&self, source: &[u8], target: &mut DeviceMemory, offset: usize) -> Result<()> {
        self.with_host()?;
        self.upload(source, self.address_of(target, offset, source.len())?)
    }

    fn copy_to_host(&self, source: &DeviceMemory, offset: usize, target: &mut [u8]) -> Result<()> {
        self.with_host()?;
        self.download(self.address_of(source, offset, target.len())?, target)
    }

    fn copy(&self, source: &DeviceMemory, range: Range<usize>, target: &mut DeviceMemory, offset: usize) -> Result<()> {
        let bytes = range.len();
        let from = self.address_of(source, range.start, bytes)?;
        let to = self.address_of(target, offset, bytes)?;
        self.copy_apart(from, to, bytes)
    }

    fn copy_within(&self, memory: &mut DeviceMemory, range: Range<usize>, offset: usize) -> Result<()> {
        let bytes = range.len();
        let from = self.address_of(memory, range.start, bytes)?;
        let to = self.address_of(memory, offset, bytes)?;
        if from == to {
            return Ok(());
        }
        if range.start.abs_diff(offset) >= bytes {
            return self.copy_apart(from, to, bytes);
        }
        // The driver's copies must not overlap. The scratch memory is freed in stream order.
        let between = self.scratch(bytes)?;
        let between = self.address_in(&between, 0, bytes)?;
        self.copy_apart(from, between, bytes)?;
        self.copy_apart(between, to, bytes)
    }

    fn record_event(&self) -> Result<Event> {
        self.with_host()?;
        Ok(Event::new(CudaEvent(self.queue.mark()?)))
    }

    fn wait_for(&self, event: &Event) -> Result<()> {
        self.with_host()?;
        match event.downcast::<CudaEvent>() {
            Some(CudaEvent(mark)) if Arc::ptr_eq(mark.queue().context(), self.queue.context()) => {
                self.queue.wait_for(mark)
            }
            Some(_) => Err(Error::invalid_argument(format!("an event of another GPU was passed to {self:?}"))),
            None => event.wait(),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.with_host()?;
        self.queue.synchronize()
    }

    fn is_recording(&self) -> bool {
        self.is_capturing()
    }

    fn open_range(&self, name: &dyn Fn() -> String) -> bool {
        // Captured work is sent later, so a range around its capture would not show when it runs.
        let profiler = self.resources.profiler.filter(|_| !self.is_capturing());
        profiler.map(|profiler| profiler.push(&name())).is_some()
    }

    fn close_range(&self) {
        self.resources.profiler.iter().for_each(|profiler| profiler.pop());
    }

    fn annotate(&self, place: &dyn Fn() -> String) {
        queue::annotate(&place());
    }
}

impl fmt::Debug for CudaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.capture.is_some() { "CudaStream, capturing for" } else { "CudaStream" };
        write!(f, "{what}({:?})", self.queue)
    }
}

/// Point in a stream's work.
struct CudaEvent(QueueMark);

impl DeviceEvent for CudaEvent {
    fn is_reached(&self) -> Result<bool> {
        self.0.is_reached()
    }

    fn wait(&self) -> Result<()> {
        self.0.wait()
    }
}
