//! Stream executor: memory, streams and events of one device.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use xla_hlo::{Error, Result};

use crate::host::ExternalMemory;

/// Executor of one device: allocates memory and executes work.
///
/// # Contract
///
/// - **Threads.** Every method may be called from any thread at any time.
/// - **Memory** is owned: a dropped [`DeviceMemory`] returns to its origin, so there is no `deallocate`. Writers borrow
///   it mutably and readers share it: the borrow checker prevents data races between threads. Dropping memory that
///   queued work still uses must be harmless: a device with asynchronous streams releases it in stream order.
/// - **Errors.** [`Error::ResourceExhausted`] if memory does not suffice, with the requested and the available size;
///   [`Error::FailedPrecondition`] if the device is gone.
pub trait StreamExecutor: Send + Sync + fmt::Debug {
    /// Returns the description of the device. It never changes.
    fn description(&self) -> &DeviceDescription;

    /// Allocates `bytes` bytes, aligned to [`DeviceDescription::memory_alignment`]. The memory reports exactly this
    /// size; the underlying block may be larger. Contents are arbitrary. Zero bytes are a valid request.
    fn allocate(&self, bytes: usize) -> Result<DeviceMemory>;

    /// Returns the statistics of used, pooled and available memory.
    fn memory_stats(&self) -> MemoryStats;

    /// Creates a queue of work that executes in order. On synchronous devices, each call on the stream completes its
    /// work before it returns.
    fn create_stream(&self) -> Result<Box<dyn Stream>>;

    /// Turns the caller's memory into device memory, which is only read from then on. Returns the memory unchanged if
    /// the device cannot access it, or if it is not aligned to [`DeviceDescription::memory_alignment`].
    fn adopt(&self, memory: ExternalMemory) -> Result<DeviceMemory, ExternalMemory> {
        Err(memory)
    }

    /// Returns the libraries that work of this device may call: name, and version and file or the reason why it is
    /// missing. Opens the libraries, which may take a while.
    fn libraries(&self) -> Vec<(String, Result<String>)> {
        Vec::new()
    }

    /// Returns the ability to measure device times, if this device has it.
    fn timing(&self) -> Option<&dyn Timing> {
        None
    }

    /// Returns fault injection, for tests of error handling, if this device has it.
    fn fault_injection(&self) -> Option<&dyn FaultInjection> {
        None
    }
}

/// Optional ability: measures work by the device's own clock, excluding the host's time before and after.
pub trait Timing: Send + Sync {
    /// Returns the size in bytes of the last-level cache of the device's memory. To time work on uncached data, rotate
    /// through more data than this.
    fn cache_bytes(&self) -> usize;

    /// Sends work to the stream by calling `send`, waits for it, and returns the time from its start to its end. If the
    /// host is slower than the device, this is the host's time.
    fn time(&self, stream: &dyn Stream, send: &mut dyn FnMut() -> Result<()>) -> Result<Duration>;

    /// Creates a stream that records the work sent to it, for [`Timing::time_recorded`] on `stream`; `None` if the
    /// device cannot record. The recording keeps memory that it uses alive; copies from and to the host, and events,
    /// are errors.
    fn record(&self, stream: &dyn Stream) -> Result<Option<Box<dyn Stream>>> {
        let _ = stream;
        Ok(None)
    }

    /// Sends recorded work to a stream as one unit, once to warm up and then `rounds` times, and returns the time of
    /// each of these rounds. [`Error::Unimplemented`] if the device cannot execute it as one unit.
    fn time_recorded(&self, recorded: Box<dyn Stream>, stream: &dyn Stream, rounds: usize) -> Result<Vec<Duration>> {
        let _ = (recorded, stream, rounds);
        Err(Error::unimplemented("the device cannot record work"))
    }
}

/// Optional ability: fault injection. Simulated devices and debug drivers implement it; the conformance kit uses it.
pub trait FaultInjection: Send + Sync {
    /// Makes the device fail once: at the next operation of this kind after `skip` successful ones. Replaces an earlier
    /// request for the same kind. [`Error::Unimplemented`] for a kind of fault that the device cannot inject.
    fn inject(&self, fault: Fault, skip: u64) -> Result<()>;

    /// Cancels all requests whose fault has not occurred yet.
    fn clear(&self);
}

/// Kind of an injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Allocation: fails with [`Error::ResourceExhausted`].
    Allocation,
    /// Kernel or library call.
    Kernel,
    /// Copy to, from or on the device.
    Copy,
}

impl Fault {
    /// All kinds.
    pub const ALL: [Fault; 3] = [Fault::Allocation, Fault::Kernel, Fault::Copy];
}

/// Queue of work on one device, executed in order.
///
/// # Contract
///
/// - **Order.** Work on one stream executes in the order of the calls. Streams are unordered among each other, except
///   by [`Stream::wait_for`].
/// - **Host memory** passed to a copy may be reused when the call returns: copies from the host may be staged, copies
///   to the host wait. Copies on the device may be asynchronous.
/// - **Ranges** are in bytes. Callers have not checked them against the sizes of the memories: implementations check
///   them and return [`Error::Internal`].
/// - **Foreign memory** (of another executor type) is [`Error::InvalidArgument`]; see [`DeviceMemory::downcast`].
/// - **Errors of asynchronous work** never become wrong values. They are reported by the next event that is recorded on
///   the stream, by [`Stream::synchronize`], and by each copy to the host of memory that should have been written by
///   the failed work or by work that depends on it. Independent work continues. Events propagate errors: a stream that
///   waits for a failed event reports its error as its own. Therefore joining streams and waiting for one of them
///   reports all errors.
pub trait Stream: Any + Send + Sync + fmt::Debug {
    /// Copies host bytes to `target`, at byte `offset`.
    fn copy_to_device(&self, source: &[u8], target: &mut DeviceMemory, offset: usize) -> Result<()>;

    /// Fills `target` with bytes of `source` from `offset` on. Waits for earlier work.
    fn copy_to_host(&self, source: &DeviceMemory, offset: usize, target: &mut [u8]) -> Result<()>;

    /// Copies a range of one memory to another, at byte `offset`.
    fn copy(&self, source: &DeviceMemory, range: Range<usize>, target: &mut DeviceMemory, offset: usize) -> Result<()>;

    /// Copies a range within one memory, to byte `offset`. Source and destination may overlap.
    fn copy_within(&self, memory: &mut DeviceMemory, range: Range<usize>, offset: usize) -> Result<()>;

    /// Records an event that is reached when all work sent so far is done.
    fn record_event(&self) -> Result<Event>;

    /// Makes later work wait for `event`, which may be of another stream of the same device.
    fn wait_for(&self, event: &Event) -> Result<()>;

    /// Waits until all work sent so far is done. Returns an error of earlier work.
    fn synchronize(&self) -> Result<()>;

    /// Whether the stream only records work, which is sent to another stream of the device later.
    fn is_recording(&self) -> bool {
        false
    }

    /// Opens a named range in the device's profiler, on the timeline of the calling thread; returns `false` if no
    /// profiler is active. Ranges of a thread are nested. See [`ProfilerRange`].
    fn open_range(&self, name: &dyn Fn() -> String) -> bool {
        let _ = name;
        false
    }

    /// Closes the innermost range of the calling thread.
    fn close_range(&self) {}

    /// Labels the work that the calling thread sends from now on, such as `platform cpu, thunk t3 (%fusion.2)`.
    /// Messages of asynchronous errors start with the label, because their origin is otherwise unknown by then. Callers
    /// label immediate errors themselves, so synchronous devices ignore it.
    fn annotate(&self, place: &dyn Fn() -> String) {
        let _ = place;
    }
}

impl dyn Stream {
    /// Returns the executor's own stream type. An error if the stream is from an executor of another type.
    pub fn downcast<T: Stream>(&self) -> Result<&T> {
        let any: &dyn Any = self;
        any.downcast_ref().ok_or_else(|| {
            Error::invalid_argument(format!(
                "the stream is of another device: {self:?} is not a {}",
                std::any::type_name::<T>()
            ))
        })
    }
}

/// Scope of a range in the device's profiler. Without a profiler it costs one query.
#[derive(Debug)]
pub struct ProfilerRange<'a>(Option<&'a dyn Stream>);

impl<'a> ProfilerRange<'a> {
    /// Opens a range for work that the calling thread sends to the stream.
    pub fn open(stream: &'a dyn Stream, name: &dyn Fn() -> String) -> ProfilerRange<'a> {
        ProfilerRange(stream.open_range(name).then_some(stream))
    }
}

impl Drop for ProfilerRange<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|stream| stream.close_range());
    }
}

/// Point in a stream's sequence of work. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Event(Option<Arc<dyn DeviceEvent>>);

/// Payload of an [`Event`] of a device with asynchronous streams.
pub trait DeviceEvent: Any + Send + Sync {
    /// Whether the event is reached; an error if work before it failed.
    fn is_reached(&self) -> Result<bool>;

    /// Waits until the event is reached; an error if work before it failed.
    fn wait(&self) -> Result<()>;
}

impl Event {
    /// Creates an event that is already reached, as synchronous streams record it. Allocates nothing.
    pub fn reached() -> Event {
        Event(None)
    }

    /// Creates an event of an asynchronous stream.
    pub fn new(event: impl DeviceEvent) -> Event {
        Event(Some(Arc::new(event)))
    }

    /// Whether the event is reached; an error if work before it failed.
    pub fn is_reached(&self) -> Result<bool> {
        self.0.as_ref().map_or(Ok(true), |event| event.is_reached())
    }

    /// Waits until the event is reached; an error if work before it failed.
    pub fn wait(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |event| event.wait())
    }

    /// Whether [`Event::reached`] created the event.
    pub(crate) fn is_immediate(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the device's own event; `None` if the event was created as reached or has another type.
    pub fn downcast<T: DeviceEvent>(&self) -> Option<&T> {
        let event: &dyn Any = self.0.as_deref()?;
        event.downcast_ref()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Event" } else { "Event(reached)" })
    }
}

/// Memory of a device, freed when dropped.
///
/// The service treats it as opaque; only the executor that allocated it knows its type.
pub struct DeviceMemory(Box<dyn Allocation>);

/// Payload of a [`DeviceMemory`]: a pointer, a handle, a block of a pool. Dropping it frees the memory.
pub trait Allocation: Any + Send + Sync + fmt::Debug {
    /// Returns the requested size in bytes.
    fn byte_size(&self) -> usize;

    /// Returns the bytes if the host can read them in place, once the work that writes them is done.
    fn host_bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Returns the bytes if the host can write them in place while no work uses them.
    fn host_bytes_mut(&mut self) -> Option<&mut [u8]> {
        None
    }

    /// Returns the address of the first byte in the device's address space, if the memory has one.
    fn address(&self) -> Option<usize> {
        self.host_bytes().map(|bytes| bytes.as_ptr().addr())
    }

    /// Whether the memory must never be written, because a caller owns it. Such memory is never donated.
    fn is_read_only(&self) -> bool {
        false
    }
}

impl DeviceMemory {
    /// Wraps the executor's own memory type.
    pub fn new(allocation: impl Allocation) -> DeviceMemory {
        DeviceMemory(Box::new(allocation))
    }

    /// Returns the usable size in bytes.
    pub fn byte_size(&self) -> usize {
        self.0.byte_size()
    }

    /// Returns the bytes if the host can read them in place, once the work that writes them is done.
    pub fn host_bytes(&self) -> Option<&[u8]> {
        self.0.host_bytes()
    }

    /// Returns the bytes if the host can write them in place while no work uses them.
    pub fn host_bytes_mut(&mut self) -> Option<&mut [u8]> {
        self.0.host_bytes_mut()
    }

    /// Returns the address of the first byte in the device's address space, if the memory has one.
    pub fn address(&self) -> Option<usize> {
        self.0.address()
    }

    /// Whether the memory must never be written.
    pub fn is_read_only(&self) -> bool {
        self.0.is_read_only()
    }

    /// Returns the executor's own memory type. An error if the memory is from an executor of another type.
    pub fn downcast<T: Allocation>(&self) -> Result<&T> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref().ok_or_else(|| self.foreign::<T>())
    }

    /// Returns the executor's own memory type, for writing.
    pub fn downcast_mut<T: Allocation>(&mut self) -> Result<&mut T> {
        // Checked first: a failed mutable downcast would keep the borrow that the error message needs.
        let any: &dyn Any = &*self.0;
        if !any.is::<T>() {
            return Err(self.foreign::<T>());
        }
        let any: &mut dyn Any = &mut *self.0;
        any.downcast_mut().ok_or_else(|| Error::internal("device memory changed its type"))
    }

    fn foreign<T>(&self) -> Error {
        Error::invalid_argument(format!(
            "the memory is of another device: {:?} is not a {}",
            self.0,
            std::any::type_name::<T>()
        ))
    }
}

impl fmt::Debug for DeviceMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Description of a device: plain data for users, cost models and tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDescription {
    /// Name of the platform in the registry.
    pub platform: String,
    /// Index of the device on the platform, starting at 0.
    pub ordinal: usize,
    /// Model name, as the vendor prints it.
    pub model: String,
    /// Number of cores, multiprocessors or other parallel units.
    pub cores: usize,
    /// Size of the memory in bytes; `None` if the system does not report it.
    pub memory_bytes: Option<usize>,
    /// Alignment of every allocation, in bytes.
    pub memory_alignment: usize,
    /// Other properties as name and value: instruction sets, driver versions, clocks.
    pub attributes: Vec<(String, String)>,
}

/// Memory statistics of a device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Bytes in live allocations, rounding included.
    pub bytes_in_use: usize,
    /// Peak of `bytes_in_use`.
    pub peak_bytes_in_use: usize,
    /// Bytes kept in the pool for later allocations.
    pub bytes_pooled: usize,
    /// Maximum of `bytes_in_use`; `None` for no limit.
    pub bytes_limit: Option<usize>,
    /// Number of allocations so far.
    pub allocations: u64,
    /// Number of allocations that the pool served.
    pub pool_hits: u64,
}
