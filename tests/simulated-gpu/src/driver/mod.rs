//! Driver without its C interface: handles, streams, graphs, and scheduling of work.
//!
//! Handles are never reused, so use of a destroyed object is always detected. Submitted work is queued in its stream
//! until the program waits for it, or until the seed selects it earlier. If several streams have work that can run, any
//! of them may be selected.

mod graphs;
mod handle;
mod modules;
mod objects;
mod options;
mod pinned;
mod plans;
mod random;
mod status;
mod streams;
mod tensor_maps;
#[cfg(test)]
mod tests;
mod work;

use std::collections::{BTreeMap, HashMap};

pub(crate) use graphs::{BodyPlace, address_of};
pub(crate) use handle::{DriverResult, Handle, misuse, tell};
pub(crate) use modules::{LaunchShape, MOST_SHARED};
pub use options::{Options, VARIABLE};
pub use status::Status;
pub(crate) use tensor_maps::TiledTensor;
pub(crate) use work::{Gate, LibraryWork, Repeats, StreamWork};

use crate::machine::Memory;
use objects::{Event, Executable, Function, Graph, LoadedModule, Stream};
use random::Random;
use work::{Conditions, Device};

/// Default stream.
pub(crate) const DEFAULT_STREAM: Handle = 0;

/// Number of handles of a device.
const HANDLES_OF_A_DEVICE: u64 = 1 << 32;

/// Driver of one device.
pub(crate) struct Driver {
    pub options: Options,
    pub device: Device,
    streams: BTreeMap<Handle, Stream>,
    events: HashMap<Handle, Event>,
    modules: HashMap<Handle, LoadedModule>,
    functions: HashMap<Handle, Function>,
    graphs: HashMap<Handle, Graph>,
    /// Nodes: their graph, and their index in it.
    nodes: HashMap<Handle, (Handle, usize)>,
    executables: HashMap<Handle, Executable>,
    /// Conditions: the graph that owns them, and the initial value of each launch.
    conditions: HashMap<u64, (Handle, Option<u32>)>,
    made: u64,
    /// Number of queries of events.
    queries: u64,
    /// Status that every call returns after work has failed.
    lost: Option<Status>,
}

impl Driver {
    /// Creates the driver of the first device.
    #[cfg(test)]
    pub fn new(options: Options) -> Driver {
        Driver::of_device(0, options)
    }

    /// Creates the driver of a device.
    pub fn of_device(number: usize, options: Options) -> Driver {
        let device = Device {
            memory: Memory::of_device(number, options.memory, options.checks_written),
            pinned: pinned::Pinned::default(),
            conditions: Conditions::default(),
            random: Random::new(options.seed),
            dump: options.dump.clone(),
            plans: plans::Plans::new(&options.plans, options.once.clone()),
            elsewhere: 0,
        };
        Driver {
            options,
            device,
            streams: BTreeMap::from([(DEFAULT_STREAM, Stream::default())]),
            events: HashMap::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            graphs: HashMap::new(),
            nodes: HashMap::new(),
            executables: HashMap::new(),
            conditions: HashMap::new(),
            // Devices have different handles.
            made: number as u64 * HANDLES_OF_A_DEVICE,
            queries: 0,
            lost: None,
        }
    }

    /// Returns a new handle; it looks like an aligned address, but is never an address of memory.
    fn fresh(&mut self) -> Handle {
        self.made += 1;
        0x5100_0000_0000 + self.made * 64
    }

    /// Returns the error status if the device is lost.
    pub fn alive(&self) -> DriverResult {
        self.lost.map_or(Ok(()), Err)
    }

    /// Marks the device as lost: reports the reason, and returns the status that every later call returns.
    fn lose(&mut self, status: Status, why: &str) -> Status {
        tell(why);
        *self.lost.get_or_insert(status)
    }

    /// `cuMemAlloc`: allocates device memory.
    pub fn allocate(&mut self, bytes: usize) -> DriverResult<u64> {
        if bytes == 0 {
            return misuse("cuMemAlloc is asked for no bytes", Status::INVALID_VALUE);
        }
        self.device.memory.allocate(bytes).ok_or(Status::OUT_OF_MEMORY)
    }

    /// `cuMemFree`: waits for all work, as NVIDIA's driver does, and frees memory.
    pub fn free(&mut self, address: u64) -> DriverResult {
        self.synchronize_all()?;
        match self.device.memory.free(address) {
            true => Ok(()),
            false => misuse(&format!("cuMemFree of {address:#x}, which is not an allocation"), Status::INVALID_VALUE),
        }
    }

    /// `cuMemFreeHost`: frees pinned memory, which no queued work may use.
    pub fn free_pinned(&mut self, address: usize) -> DriverResult {
        let uses =
            |work: &StreamWork| work.host_address().is_some_and(|other| self.device.pinned.is_within(address, other));
        if self.streams.values().any(|stream| stream.queue.iter().any(uses)) {
            let message = format!("cuMemFreeHost of {address:#x}, which queued copies still use");
            return misuse(&message, Status::INVALID_VALUE);
        }
        match self.device.pinned.free(address) {
            true => Ok(()),
            false => misuse(&format!("cuMemFreeHost of {address:#x}, which is not pinned"), Status::INVALID_VALUE),
        }
    }

    /// Checks that a range is device memory; otherwise reports misuse.
    fn check_range(&self, call: &str, address: u64, bytes: usize) -> DriverResult {
        match self.device.memory.has(address, bytes) {
            true => Ok(()),
            false => {
                misuse(&format!("{call}: {bytes} bytes at {address:#x} are no device memory"), Status::INVALID_VALUE)
            }
        }
    }
}
