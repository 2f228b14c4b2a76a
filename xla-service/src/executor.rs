//! Stream executor: memory, streams and events of one device.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use xla_hlo::{Error, Result};

use crate::host::OutsideMemory;

/// One device that memory can be taken from and work can be sent to.
///
/// # Contract
///
/// - **Threads.** Every method may be called from any thread at any time.
/// - **Memory** is owned: a [`DeviceMemory`] goes back to where it came from when it is dropped, so there is no
///   `deallocate` to forget. Whoever writes has it mutably, whoever reads has it shared: the borrow checker keeps two
///   threads from racing. Dropping memory that queued work still uses must be harmless: a device with asynchronous
///   streams releases it in stream order.
/// - **Errors.** [`Error::ResourceExhausted`] when memory does not suffice, saying how much was asked for and how much
///   there is; [`Error::FailedPrecondition`] when the device is gone.
pub trait StreamExecutor: Send + Sync + fmt::Debug {
    /// Description of the device. It never changes.
    fn description(&self) -> &DeviceDescription;

    /// Memory of at least `bytes` bytes (and of size exactly `bytes` as it reports itself), aligned to
    /// [`DeviceDescription::memory_alignment`]. Its contents are arbitrary. Zero bytes are a valid request.
    fn allocate(&self, bytes: usize) -> Result<DeviceMemory>;

    /// Memory in use, pooled and left.
    fn memory_stats(&self) -> MemoryStats;

    /// A new queue of work in order. Devices that do everything at once give one that completes each call before it
    /// returns.
    fn create_stream(&self) -> Result<Box<dyn Stream>>;

    /// Makes memory of a caller's memory, which is only read from then on; gives it back where that cannot be: because
    /// the device cannot reach it, or because it is not aligned to [`DeviceDescription::memory_alignment`].
    fn adopt(&self, memory: OutsideMemory) -> Result<DeviceMemory, OutsideMemory> {
        Err(memory)
    }

    /// Libraries that work of this device may call: of each its name, and its version and file or why there is none.
    /// They are opened for that, which may take a while.
    fn libraries(&self) -> Vec<(String, Result<String>)> {
        Vec::new()
    }

    /// The ability to tell how long work takes, if this device has it.
    fn timing(&self) -> Option<&dyn Timing> {
        None
    }

    /// Fault injection, for tests of error handling, if this device has it.
    fn fault_injection(&self) -> Option<&dyn FaultInjection> {
        None
    }
}

/// Optional ability: time of work by the device's own clock, without what the host does before and after.
pub trait Timing: Send + Sync {
    /// Bytes of the last cache in front of the device's memory: who wants times of work on data that no cache holds
    /// alternates between more than that.
    fn cache_bytes(&self) -> usize;

    /// Time from the beginning of the work that `send` sends to the stream to its end, for which it waits. Where the
    /// host is slower than the device it is the host's time.
    fn time(&self, stream: &dyn Stream, send: &mut dyn FnMut() -> Result<()>) -> Result<Duration>;

    /// A stream that records the work sent to it, for [`Timing::time_recorded`] on `stream`; `None` for a device that
    /// records nothing. Memory given to it stays alive with it; copies from and to the host, and events, are errors.
    fn record(&self, stream: &dyn Stream) -> Result<Option<Box<dyn Stream>>> {
        let _ = stream;
        Ok(None)
    }

    /// Sends recorded work to a stream, as a whole, once to warm up and `rounds` times more, and returns how long each
    /// of these took. [`Error::Unimplemented`] where the device cannot take it as a whole.
    fn time_recorded(&self, recorded: Box<dyn Stream>, stream: &dyn Stream, rounds: usize) -> Result<Vec<Duration>> {
        let _ = (recorded, stream, rounds);
        Err(Error::unimplemented("the device records no work"))
    }
}

/// Optional ability: faults on request. Simulated devices and debug drivers have it; the conformance kit asks for it.
pub trait FaultInjection: Send + Sync {
    /// Lets the device fail once: at the operation of that kind after `skip` more have gone well. Replaces an earlier
    /// request for the same kind. [`Error::Unimplemented`] for a kind of fault that this device cannot make.
    fn inject(&self, fault: Fault, skip: u64) -> Result<()>;

    /// Takes all requests back that have not come true.
    fn clear(&self);
}

/// Kinds of injected faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// An allocation: [`Error::ResourceExhausted`].
    Allocation,
    /// A kernel or library call.
    Kernel,
    /// A copy: to the device, from it, or on it.
    Copy,
}

impl Fault {
    /// All kinds.
    pub const ALL: [Fault; 3] = [Fault::Allocation, Fault::Kernel, Fault::Copy];
}

/// A queue of work on one device, done in order.
///
/// # Contract
///
/// - **Order.** What is sent to one stream happens in the order of the calls. Streams are unordered among each other,
///   but for [`Stream::wait_for`].
/// - **Host memory** given to a copy is free again when the call returns: copies from the host may be staged, copies to
///   the host wait. Copies on the device may be asynchronous.
/// - **Ranges** are in bytes and have been checked against the sizes of the memories by nobody: implementations check
///   them and give [`Error::Internal`].
/// - **Foreign memory** (of another executor type) is [`Error::InvalidArgument`]; see [`DeviceMemory::downcast`].
/// - **Errors of asynchronous work** never become wrong values: they come out of the next event that is recorded on the
///   stream and of [`Stream::synchronize`], and of every copy to the host of memory that the failed work, or work that
///   read its results, was to write. Work that does not depend on it goes on. An event hands the error on: a stream
///   that waits for it tells it as its own, so whoever joins streams and waits for one of them learns of all.
pub trait Stream: Any + Send + Sync + fmt::Debug {
    /// Writes host bytes to `target`, from byte `offset` on.
    fn copy_to_device(&self, source: &[u8], target: &mut DeviceMemory, offset: usize) -> Result<()>;

    /// Reads bytes of `source`, from byte `offset` on, until `target` is full. Waits for the work before it.
    fn copy_to_host(&self, source: &DeviceMemory, offset: usize, target: &mut [u8]) -> Result<()>;

    /// Copies a range of one memory to byte `offset` of another one.
    fn copy(&self, source: &DeviceMemory, range: Range<usize>, target: &mut DeviceMemory, offset: usize) -> Result<()>;

    /// Copies a range of one memory to byte `offset` of itself. The two may overlap.
    fn copy_within(&self, memory: &mut DeviceMemory, range: Range<usize>, offset: usize) -> Result<()>;

    /// An event that is reached when everything sent so far is done.
    fn record_event(&self) -> Result<Event>;

    /// Makes work sent from now on wait for `event`, which may be of another stream of the same device.
    fn wait_for(&self, event: &Event) -> Result<()>;

    /// Returns when everything sent so far is done. An error of earlier work comes out here.
    fn synchronize(&self) -> Result<()>;

    /// Whether it only records work, to be sent to another stream of the device later.
    fn is_recording(&self) -> bool {
        false
    }

    /// Opens a range of that name in the profiler that watches the device, on the line of the calling thread; `false`
    /// where none does. Ranges of a thread are nested. See [`ProfilerRange`].
    fn open_range(&self, name: &dyn Fn() -> String) -> bool {
        let _ = name;
        false
    }

    /// Closes the range that the calling thread opened last.
    fn close_range(&self) {}

    /// Names the owner of work that the calling thread sends from now on: `platform cpu, thunk t3 (%fusion.2)`. A
    /// device puts it in front of errors that come out later, when nobody else knows any more whose they are. Whoever
    /// calls says it of errors that come at once, so a device that does everything at once has no use for it.
    fn annotate(&self, place: &dyn Fn() -> String) {
        let _ = place;
    }
}

impl dyn Stream {
    /// The executor's own kind of stream. The error is for a stream that came from an executor of another kind.
    pub fn downcast<T: Stream>(&self) -> Result<&T> {
        let any: &dyn Any = self;
        any.downcast_ref().ok_or_else(|| {
            Error::invalid_argument(format!(
                "a stream of another device was given: {self:?} is not a {}",
                std::any::type_name::<T>()
            ))
        })
    }
}

/// A range in the profiler that watches a device, until dropped. Without a profiler it costs a question.
#[derive(Debug)]
pub struct ProfilerRange<'a>(Option<&'a dyn Stream>);

impl<'a> ProfilerRange<'a> {
    /// Opens it for work that the calling thread sends to that stream.
    pub fn open(stream: &'a dyn Stream, name: &dyn Fn() -> String) -> ProfilerRange<'a> {
        ProfilerRange(stream.open_range(name).then_some(stream))
    }
}

impl Drop for ProfilerRange<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|stream| stream.close_range());
    }
}

/// A point in a stream's work. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Event(Option<Arc<dyn DeviceEvent>>);

/// Payload of an [`Event`] of a device with asynchronous streams.
pub trait DeviceEvent: Any + Send + Sync {
    /// Whether the point has been reached; an error if the work before it failed.
    fn is_reached(&self) -> Result<bool>;

    /// Returns when the point has been reached; an error if the work before it failed.
    fn wait(&self) -> Result<()>;
}

impl Event {
    /// An event that has been reached already; what synchronous streams record. Costs nothing.
    pub fn reached() -> Event {
        Event(None)
    }

    /// An event of an asynchronous stream.
    pub fn new(event: impl DeviceEvent) -> Event {
        Event(Some(Arc::new(event)))
    }

    /// Whether the point has been reached; an error if the work before it failed.
    pub fn is_reached(&self) -> Result<bool> {
        self.0.as_ref().map_or(Ok(true), |event| event.is_reached())
    }

    /// Blocks until the point has been reached; an error if the work before it failed.
    pub fn wait(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |event| event.wait())
    }

    /// Whether it was made reached.
    pub(crate) fn is_immediate(&self) -> bool {
        self.0.is_none()
    }

    /// The device's own event; `None` if it is reached anyway or of another type.
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

/// Memory of a device, given back when dropped.
///
/// The service only moves it around; its type is known to the executor that made it.
pub struct DeviceMemory(Box<dyn Allocation>);

/// Payload of a [`DeviceMemory`]: a pointer, a handle, a block of a pool. Dropping releases it.
pub trait Allocation: Any + Send + Sync + fmt::Debug {
    /// Bytes that may be used, as they were asked for.
    fn byte_size(&self) -> usize;

    /// The bytes, where the host can read them in place once the work that writes them is done.
    fn host_bytes(&self) -> Option<&[u8]> {
        None
    }

    /// The bytes, where the host can write them in place while no work uses them.
    fn host_bytes_mut(&mut self) -> Option<&mut [u8]> {
        None
    }

    /// The address of the first byte, as the device's own interface takes it, where it has one.
    fn address(&self) -> Option<usize> {
        self.host_bytes().map(|bytes| bytes.as_ptr().addr())
    }

    /// Whether nobody may write to it: memory of a caller. It is never donated.
    fn is_read_only(&self) -> bool {
        false
    }
}

impl DeviceMemory {
    /// Wraps an executor's own kind of memory.
    pub fn new(allocation: impl Allocation) -> DeviceMemory {
        DeviceMemory(Box::new(allocation))
    }

    /// Bytes that may be used.
    pub fn byte_size(&self) -> usize {
        self.0.byte_size()
    }

    /// The bytes, where the host can read them in place once the work that writes them is done.
    pub fn host_bytes(&self) -> Option<&[u8]> {
        self.0.host_bytes()
    }

    /// The bytes, where the host can write them in place while no work uses them.
    pub fn host_bytes_mut(&mut self) -> Option<&mut [u8]> {
        self.0.host_bytes_mut()
    }

    /// The address of the first byte, as the device's own interface takes it, where it has one.
    pub fn address(&self) -> Option<usize> {
        self.0.address()
    }

    /// Whether nobody may write to it.
    pub fn is_read_only(&self) -> bool {
        self.0.is_read_only()
    }

    /// The executor's own kind of memory. The error is for memory that came from an executor of another kind.
    pub fn downcast<T: Allocation>(&self) -> Result<&T> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref().ok_or_else(|| self.foreign::<T>())
    }

    /// The executor's own kind of memory, for writing.
    pub fn downcast_mut<T: Allocation>(&mut self) -> Result<&mut T> {
        // Asked first, since a failed mutable borrow would still be held where the error is made.
        let any: &dyn Any = &*self.0;
        if !any.is::<T>() {
            return Err(self.foreign::<T>());
        }
        let any: &mut dyn Any = &mut *self.0;
        any.downcast_mut().ok_or_else(|| Error::internal("device memory changed its type"))
    }

    fn foreign<T>(&self) -> Error {
        Error::invalid_argument(format!(
            "memory of another device was given: {:?} is not a {}",
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

/// Description of a device: plain data, for people, cost models and tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDescription {
    /// Name of the platform, as the registry knows it.
    pub platform: String,
    /// Number of the device among the platform's, from 0.
    pub ordinal: usize,
    /// The model, such as the vendor prints it.
    pub model: String,
    /// Cores, multiprocessors or whatever works side by side.
    pub cores: usize,
    /// Bytes of memory; `None` where the system does not tell.
    pub memory_bytes: Option<usize>,
    /// Every allocation starts at a multiple of this many bytes.
    pub memory_alignment: usize,
    /// Anything else worth telling, as name and value: instruction sets, driver versions, clocks.
    pub attributes: Vec<(String, String)>,
}

/// Statistics of a device's memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// In live allocations, rounding included.
    pub bytes_in_use: usize,
    /// The most that was ever in use.
    pub peak_bytes_in_use: usize,
    /// Kept warm for later allocations.
    pub bytes_pooled: usize,
    /// Bytes that may be in use at most; `None` for no limit.
    pub bytes_limit: Option<usize>,
    /// Allocations so far.
    pub allocations: u64,
    /// Allocations that were served from warm memory.
    pub pool_hits: u64,
}
