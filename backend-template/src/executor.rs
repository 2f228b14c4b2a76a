//! Executor: memory, streams and events of one device, implemented with driver calls.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::{Error, Result};
use xla_service::executor::{Allocation, DeviceEvent, Fault, FaultInjection};
use xla_service::{DeviceDescription, DeviceMemory, Event, MemoryStats, Stream, StreamExecutor};

use crate::capabilities::NAME;
use crate::device::{self, Block, Command, Device, FaultKind, Queue, Region};

/// One device of this platform.
#[derive(Debug)]
pub(crate) struct TemplateExecutor {
    description: DeviceDescription,
    device: Device,
}

impl TemplateExecutor {
    // VENDOR(devices): open the device and describe it.
    /// Opens device `ordinal`, with `memory_bytes` bytes of memory.
    pub fn new(ordinal: usize, memory_bytes: usize) -> TemplateExecutor {
        let description = DeviceDescription {
            platform: NAME.to_string(),
            ordinal,
            model: "simulated accelerator".to_string(),
            cores: 1,
            memory_bytes: Some(memory_bytes),
            memory_alignment: device::ALIGNMENT,
            attributes: vec![("tile".to_string(), format!("{}x{}", device::TILE_ROWS, device::TILE_COLUMNS))],
        };
        TemplateExecutor { description, device: Device::new(memory_bytes) }
    }
}

impl StreamExecutor for TemplateExecutor {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    // VENDOR(memory): allocate memory from the driver, or from a pool above it.
    fn allocate(&self, bytes: usize) -> Result<DeviceMemory> {
        Ok(DeviceMemory::new(TemplateMemory(self.device.allocate(bytes)?)))
    }

    // VENDOR(memory): report the statistics of the driver or the pool.
    fn memory_stats(&self) -> MemoryStats {
        let usage = self.device.usage();
        MemoryStats {
            bytes_in_use: usage.in_use,
            peak_bytes_in_use: usage.peak,
            bytes_pooled: 0,
            bytes_limit: Some(usage.limit),
            allocations: usage.allocations,
            pool_hits: 0,
        }
    }

    // VENDOR(streams): create a queue of the driver.
    fn create_stream(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(TemplateStream { sink: Sink::Queue(self.device.queue()?) }))
    }

    // VENDOR(faults): delete; fault injection exists only in simulations.
    fn fault_injection(&self) -> Option<&dyn FaultInjection> {
        Some(self)
    }
}

// VENDOR(faults): delete; fault injection exists only in simulations.
impl FaultInjection for TemplateExecutor {
    fn inject(&self, fault: Fault, skip: u64) -> Result<()> {
        let kind = match fault {
            Fault::Allocation => FaultKind::Allocation,
            Fault::Kernel => FaultKind::Kernel,
            Fault::Copy => FaultKind::Copy,
        };
        self.device.inject_fault(kind, skip);
        Ok(())
    }

    fn clear(&self) {
        self.device.clear_faults();
    }
}

// VENDOR(memory): wrap the driver's handle; dropping it frees the memory once no queued work uses it.
/// Allocation in device memory.
#[derive(Debug)]
pub(crate) struct TemplateMemory(Arc<Block>);

// VENDOR(memory): return a part of the memory in the form that driver calls take: an address and a size.
impl TemplateMemory {
    /// Returns `size` bytes from `offset` on, as an operand for commands.
    pub fn region(&self, offset: usize, size: usize) -> Result<Region> {
        Region::new(&self.0, offset, size)
    }
}

// VENDOR(memory): return the requested size, and the driver's address or handle of the memory.
impl Allocation for TemplateMemory {
    fn byte_size(&self) -> usize {
        self.0.size()
    }

    fn address(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.0).addr())
    }
}

/// Returns `size` bytes of `memory` from `offset` on, as an operand for commands. Fails if the memory belongs to
/// another platform.
pub(crate) fn region(memory: &DeviceMemory, offset: usize, size: usize) -> Result<Region> {
    memory.downcast::<TemplateMemory>()?.region(offset, size)
}

/// Stream that sends commands to the device, or records them as part of a device loop.
pub(crate) struct TemplateStream {
    sink: Sink,
}

// VENDOR(streams): hold the driver's queue; keep `Recording` only if the device runs loops.
enum Sink {
    Queue(Queue),
    Recording(Mutex<Vec<Command>>),
}

thread_local! {
    /// Label of the calling thread's current work, for error messages.
    static PLACE: RefCell<Arc<str>> = RefCell::new(format!("platform {NAME}").into());
}

// VENDOR(streams): send work to the driver. Messages of asynchronous errors start with `PLACE`.
impl TemplateStream {
    /// Creates a stream that records its commands instead of executing them.
    pub fn recording() -> TemplateStream {
        TemplateStream { sink: Sink::Recording(Mutex::default()) }
    }

    /// Builds a command, labelled for its errors, and sends it.
    pub fn send(&self, command: impl FnOnce(&Arc<str>) -> Result<Command>) -> Result<()> {
        let command = PLACE.with_borrow(command)?;
        match &self.sink {
            Sink::Queue(queue) => queue.submit(command),
            Sink::Recording(commands) => {
                commands.lock().unwrap_or_else(PoisonError::into_inner).push(command);
                Ok(())
            }
        }
    }

    /// Returns the recorded commands; none for a stream that executes.
    pub fn recorded(&self) -> Vec<Command> {
        match &self.sink {
            Sink::Queue(_) => Vec::new(),
            Sink::Recording(commands) => commands.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    fn queue(&self) -> Result<&Queue> {
        match &self.sink {
            Sink::Queue(queue) => Ok(queue),
            Sink::Recording(_) => Err(Error::internal("a stream that is recording cannot access the host")),
        }
    }
}

// VENDOR(streams): use the driver's copies and events. Queued work must keep the memory that it uses alive.
impl Stream for TemplateStream {
    fn copy_to_device(&self, source: &[u8], target: &mut DeviceMemory, offset: usize) -> Result<()> {
        self.queue()?;
        let to = region(target, offset, source.len())?;
        self.send(|label| Command::upload(label, source, to))
    }

    fn copy_to_host(&self, source: &DeviceMemory, offset: usize, target: &mut [u8]) -> Result<()> {
        let from = region(source, offset, target.len())?;
        let bytes = self.queue()?.download(from)?;
        target.copy_from_slice(&bytes);
        Ok(())
    }

    fn copy(&self, source: &DeviceMemory, range: Range<usize>, target: &mut DeviceMemory, offset: usize) -> Result<()> {
        let from = region(source, range.start, range.len())?;
        let to = region(target, offset, range.len())?;
        self.send(|label| Command::copy(label, from, to))
    }

    fn copy_within(&self, memory: &mut DeviceMemory, range: Range<usize>, offset: usize) -> Result<()> {
        let from = region(memory, range.start, range.len())?;
        let to = region(memory, offset, range.len())?;
        self.send(|label| Command::copy(label, from, to))
    }

    fn record_event(&self) -> Result<Event> {
        Ok(Event::new(TemplateEvent(self.queue()?.record()?)))
    }

    fn wait_for(&self, event: &Event) -> Result<()> {
        match event.downcast::<TemplateEvent>() {
            Some(TemplateEvent(event)) => self.queue()?.wait_for(event),
            None => event.wait(),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.queue()?.record()?.wait()
    }

    fn annotate(&self, place: &dyn Fn() -> String) {
        PLACE.set(place().into());
    }
}

impl fmt::Debug for TemplateStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TemplateStream")
    }
}

// VENDOR(streams): wrap an event of the driver.
/// Event: a point in a stream's sequence of commands.
struct TemplateEvent(device::Event);

// VENDOR(streams): ask the driver whether the event is reached, and wait for it.
impl DeviceEvent for TemplateEvent {
    fn is_reached(&self) -> Result<bool> {
        self.0.is_reached()
    }

    fn wait(&self) -> Result<()> {
        self.0.wait()
    }
}
