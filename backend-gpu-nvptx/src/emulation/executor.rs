//! Executor of the emulated GPU: pooled memory, synchronous streams, and a race detector that watches them.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result};
use xla_passes::buffers::Slice;
use xla_service::executor::{Allocation, DeviceEvent, Fault, FaultInjection};
use xla_service::host::{Clock, HostExecutor, HostMemory, MemoryAccess, PoolLimits, RaceDetector, RaceStream};
use xla_service::{DeviceDescription, DeviceMemory, Event, MemoryStats, Stream, StreamExecutor};

use super::faults::Faults;

/// Device of the emulated platform.
#[derive(Debug)]
pub(crate) struct EmulatedGpu {
    inner: HostExecutor,
    shared: Arc<SharedState>,
}

/// State shared by the device, its streams and its memories.
#[derive(Debug, Default)]
struct SharedState {
    races: Mutex<RaceDetector>,
    memories: AtomicU64,
    faults: Faults,
}

impl SharedState {
    fn races(&self) -> MutexGuard<'_, RaceDetector> {
        self.races.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EmulatedGpu {
    /// Creates the first device of the platform with this name. Its memory is dirty and guarded, so that tests find
    /// kernels that read uninitialised memory or past the end of an allocation.
    pub fn new(platform: &str) -> EmulatedGpu {
        let inner = HostExecutor::new(platform, 0, PoolLimits::default()).with_attribute("emulates", "a GPU");
        EmulatedGpu { inner: inner.with_dirty_memory(PoolLimits::default()), shared: Arc::default() }
    }

    /// Returns another device of the platform, which shares memory pool, race detector and injected faults.
    pub fn device(&self, ordinal: usize) -> EmulatedGpu {
        EmulatedGpu { inner: self.inner.device(ordinal), shared: self.shared.clone() }
    }
}

impl StreamExecutor for EmulatedGpu {
    fn description(&self) -> &DeviceDescription {
        self.inner.description()
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceMemory> {
        self.shared.faults.strike(Fault::Allocation)?;
        let memory = self.inner.pool().allocate(bytes)?;
        let number = self.shared.memories.fetch_add(1, Ordering::Relaxed);
        Ok(DeviceMemory::new(EmulatedMemory { memory, number, shared: self.shared.clone() }))
    }

    fn memory_stats(&self) -> MemoryStats {
        self.inner.memory_stats()
    }

    fn create_stream(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(EmulatedStream { number: self.shared.races().stream(), shared: self.shared.clone() }))
    }

    fn fault_injection(&self) -> Option<&dyn FaultInjection> {
        Some(&self.shared.faults)
    }
}

/// Memory of the emulated device.
#[derive(Debug)]
struct EmulatedMemory {
    memory: HostMemory,
    /// Identifies the memory to the race detector.
    number: u64,
    shared: Arc<SharedState>,
}

impl Allocation for EmulatedMemory {
    fn byte_size(&self) -> usize {
        self.memory.byte_size()
    }
}

impl Drop for EmulatedMemory {
    fn drop(&mut self) {
        // On a GPU, the next user of the memory follows all streams that used it (`cuda/memory/pool.rs`), so no order
        // is required here.
        let _ = self.shared.races().freed(RaceStream::HOST, self.number);
    }
}

/// Stream of the emulated device.
pub(crate) struct EmulatedStream {
    number: RaceStream,
    shared: Arc<SharedState>,
}

impl EmulatedStream {
    /// Returns the address of a byte of a memory.
    pub fn address(memory: &DeviceMemory, offset: usize) -> Result<u64> {
        let memory = &memory.downcast::<EmulatedMemory>()?.memory;
        Ok(memory.as_ptr().wrapping_add(offset).expose_provenance() as u64)
    }

    /// Reports to the race detector that a kernel reads a slice of a memory.
    pub fn reads(&self, memory: &DeviceMemory, slice: Slice, label: &str) -> Result<()> {
        self.access(memory.downcast()?, slice.offset..slice.offset + slice.size, MemoryAccess::Read, label)
    }

    /// Reports to the race detector that a kernel writes a slice of a memory.
    pub fn writes(&self, memory: &DeviceMemory, slice: Slice, label: &str) -> Result<()> {
        self.access(memory.downcast()?, slice.offset..slice.offset + slice.size, MemoryAccess::Write, label)
    }

    /// Reports the launch of a kernel; an error if its failure was requested.
    pub fn launches(&self) -> Result<()> {
        self.shared.faults.strike(Fault::Kernel)
    }

    fn access(&self, memory: &EmulatedMemory, bytes: Range<usize>, access: MemoryAccess, label: &str) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.shared.races().access(self.number, memory.number, bytes, access, label)
    }
}

impl Stream for EmulatedStream {
    fn copy_to_device(&self, source: &[u8], target: &mut DeviceMemory, offset: usize) -> Result<()> {
        let target = target.downcast_mut::<EmulatedMemory>()?;
        let bytes = inside(&target.memory, offset, source.len())?;
        copy_fault(&self.shared, source.len())?;
        self.access(target, bytes.clone(), MemoryAccess::Write, "a copy to the device")?;
        target.memory.bytes_mut()[bytes].copy_from_slice(source);
        Ok(())
    }

    fn copy_to_host(&self, source: &DeviceMemory, offset: usize, target: &mut [u8]) -> Result<()> {
        let source = source.downcast::<EmulatedMemory>()?;
        let bytes = inside(&source.memory, offset, target.len())?;
        copy_fault(&self.shared, target.len())?;
        self.access(source, bytes.clone(), MemoryAccess::Read, "a copy to the host")?;
        target.copy_from_slice(&source.memory.bytes()[bytes]);
        self.shared.races().host_sync(self.number);
        Ok(())
    }

    fn copy(&self, source: &DeviceMemory, range: Range<usize>, target: &mut DeviceMemory, offset: usize) -> Result<()> {
        let source = source.downcast::<EmulatedMemory>()?;
        let target = target.downcast_mut::<EmulatedMemory>()?;
        let from = inside(&source.memory, range.start, range.len())?;
        let to = inside(&target.memory, offset, range.len())?;
        copy_fault(&self.shared, range.len())?;
        self.access(source, from.clone(), MemoryAccess::Read, "a copy on the device")?;
        self.access(target, to.clone(), MemoryAccess::Write, "a copy on the device")?;
        target.memory.bytes_mut()[to].copy_from_slice(&source.memory.bytes()[from]);
        Ok(())
    }

    fn copy_within(&self, memory: &mut DeviceMemory, range: Range<usize>, offset: usize) -> Result<()> {
        let memory = memory.downcast_mut::<EmulatedMemory>()?;
        let from = inside(&memory.memory, range.start, range.len())?;
        let to = inside(&memory.memory, offset, range.len())?;
        copy_fault(&self.shared, range.len())?;
        self.access(memory, from.clone(), MemoryAccess::Read, "a copy on the device")?;
        self.access(memory, to, MemoryAccess::Write, "a copy on the device")?;
        memory.memory.bytes_mut().copy_within(from, offset);
        Ok(())
    }

    fn record_event(&self) -> Result<Event> {
        let clock = self.shared.races().record(self.number);
        Ok(Event::new(EmulatedEvent { clock, shared: self.shared.clone() }))
    }

    fn wait_for(&self, event: &Event) -> Result<()> {
        match event.downcast::<EmulatedEvent>() {
            Some(event) => self.shared.races().wait(self.number, &event.clock),
            None => event.wait()?,
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        self.shared.races().host_sync(self.number);
        Ok(())
    }
}

impl Drop for EmulatedStream {
    fn drop(&mut self) {
        self.shared.races().closed(self.number);
    }
}

impl fmt::Debug for EmulatedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EmulatedStream({})", self.number)
    }
}

/// Point in a stream's work, which is already reached.
struct EmulatedEvent {
    clock: Clock,
    shared: Arc<SharedState>,
}

impl DeviceEvent for EmulatedEvent {
    fn is_reached(&self) -> Result<bool> {
        self.wait().map(|()| true)
    }

    fn wait(&self) -> Result<()> {
        self.shared.races().host_wait(&self.clock);
        Ok(())
    }
}

/// Returns the error of a copy if its failure was requested. A copy of no bytes cannot fail.
fn copy_fault(shared: &SharedState, bytes: usize) -> Result<()> {
    if bytes == 0 { Ok(()) } else { shared.faults.strike(Fault::Copy) }
}

fn inside(memory: &HostMemory, offset: usize, len: usize) -> Result<Range<usize>> {
    let size = memory.byte_size();
    let end = offset.checked_add(len).filter(|&end| end <= size);
    let outside = || Error::internal(format!("{len} bytes at offset {offset} are not inside a memory of {size} bytes"));
    end.map(|end| offset..end).ok_or_else(outside)
}
