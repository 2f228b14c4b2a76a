//! One device: its memory, streams and events, by calls of the driver.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use xla_hlo::{Error, Result};
use xla_service::executor::{Allocation, DeviceEvent, Fault, FaultInjection};
use xla_service::{DeviceDescription, DeviceMemory, Event, MemoryStats, Stream, StreamExecutor};

use crate::capabilities::NAME;
use crate::device::{self, Block, Command, Device, FaultKind, Queue, Region};

/// A device of this platform.
#[derive(Debug)]
pub(crate) struct TemplateExecutor {
    description: DeviceDescription,
    device: Device,
}

impl TemplateExecutor {
    // VENDOR(devices): open the device, and say what it is.
    /// Device `ordinal`, with `memory_bytes` bytes of memory.
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

    // VENDOR(memory): take memory from the driver, or from a pool over it.
    fn allocate(&self, bytes: usize) -> Result<DeviceMemory> {
        Ok(DeviceMemory::new(TemplateMemory(self.device.allocate(bytes)?)))
    }

    // VENDOR(memory): what the driver or the pool knows.
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

    // VENDOR(streams): a queue of the driver.
    fn create_stream(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(TemplateStream { sink: Sink::Queue(self.device.queue()?) }))
    }

    // VENDOR(faults): delete; real hardware fails by itself.
    fn fault_injection(&self) -> Option<&dyn FaultInjection> {
        Some(self)
    }
}

// VENDOR(faults): delete; real hardware fails by itself.
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

// VENDOR(memory): the driver's handle; dropping it releases the memory when queued work no longer needs it.
/// Memory of the device.
#[derive(Debug)]
pub(crate) struct TemplateMemory(Arc<Block>);

// VENDOR(memory): a part of the memory, as the driver's calls take it: an address and a size.
impl TemplateMemory {
    /// A part of it, as commands take it.
    pub fn region(&self, offset: usize, size: usize) -> Result<Region> {
        Region::new(&self.0, offset, size)
    }
}

// VENDOR(memory): the size that was asked for, and the address or handle by which the driver knows the memory.
impl Allocation for TemplateMemory {
    fn byte_size(&self) -> usize {
        self.0.size()
    }

    fn address(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.0).addr())
    }
}

/// A part of device memory, as commands take it; an error if the memory is no device memory of this platform.
pub(crate) fn region(memory: &DeviceMemory, offset: usize, size: usize) -> Result<Region> {
    memory.downcast::<TemplateMemory>()?.region(offset, size)
}

/// A stream: commands go to the device, or are kept to become a loop of the device.
pub(crate) struct TemplateStream {
    sink: Sink,
}

// VENDOR(streams): the driver's queue; a recording only where the device runs loops.
enum Sink {
    Queue(Queue),
    Recording(Mutex<Vec<Command>>),
}

thread_local! {
    /// Label of the calling thread's work, for errors.
    static PLACE: RefCell<Arc<str>> = RefCell::new(format!("platform {NAME}").into());
}

// VENDOR(streams): how work goes to the driver. Messages of asynchronous errors begin with `PLACE`.
impl TemplateStream {
    /// A stream that records the commands sent to it.
    pub fn recording() -> TemplateStream {
        TemplateStream { sink: Sink::Recording(Mutex::default()) }
    }

    /// Sends a command, which is made with the label for its errors.
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

    /// The recorded commands.
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

// VENDOR(streams): copies and events of the driver. Queued work keeps the memory alive that it uses.
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

// VENDOR(streams): an event of the driver.
/// A point in a stream's work.
struct TemplateEvent(device::Event);

// VENDOR(streams): ask the driver whether the point was reached, and wait for it.
impl DeviceEvent for TemplateEvent {
    fn is_reached(&self) -> Result<bool> {
        self.0.is_reached()
    }

    fn wait(&self) -> Result<()> {
        self.0.wait()
    }
}
