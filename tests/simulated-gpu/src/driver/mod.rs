//! Driver without its C interface: handles, streams, graphs, and the order of work.
//!
//! Handles are numbers that are never used again, so whatever is destroyed stays so. Work that is sent waits in its
//! stream until somebody waits for it, or until the seed has it done earlier; of several streams that may go on any
//! may.

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
pub(crate) use work::{LibraryWork, Repeats, StreamWork};

use crate::machine::Memory;
use objects::{Event, Executable, Function, Graph, LoadedModule, Stream};
use random::Random;
use work::{Conditions, Device};

/// The stream of work for which no stream is named.
pub(crate) const DEFAULT_STREAM: Handle = 0;

/// The driver.
pub(crate) struct Driver {
    pub options: Options,
    pub device: Device,
    streams: BTreeMap<Handle, Stream>,
    events: HashMap<Handle, Event>,
    modules: HashMap<Handle, LoadedModule>,
    functions: HashMap<Handle, Function>,
    graphs: HashMap<Handle, Graph>,
    /// Nodes: their graph, and their number in it.
    nodes: HashMap<Handle, (Handle, usize)>,
    executables: HashMap<Handle, Executable>,
    /// Graphs that conditions belong to, and the value that a launch starts with.
    conditions: HashMap<u64, (Handle, Option<u32>)>,
    made: u64,
    /// The status of every call once work has failed.
    lost: Option<Status>,
}

impl Driver {
    pub fn new(options: Options) -> Driver {
        let device = Device {
            memory: Memory::new(options.memory, options.checks_written),
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
            made: 0,
            lost: None,
        }
    }

    /// A number that stands for nothing yet; it looks like an aligned address that is nobody's.
    fn fresh(&mut self) -> Handle {
        self.made += 1;
        0x5100_0000_0000 + self.made * 64
    }

    /// An error once the device is lost.
    pub fn alive(&self) -> DriverResult {
        self.lost.map_or(Ok(()), Err)
    }

    /// Marks the device as lost: tells why, and returns the status that every call returns from now on.
    fn lose(&mut self, status: Status, why: &str) -> Status {
        tell(why);
        *self.lost.get_or_insert(status)
    }

    /// Device memory.
    pub fn allocate(&mut self, bytes: usize) -> DriverResult<u64> {
        if bytes == 0 {
            return misuse("cuMemAlloc is asked for no bytes", Status::INVALID_VALUE);
        }
        self.device.memory.allocate(bytes).ok_or(Status::OUT_OF_MEMORY)
    }

    /// Waits for all work, as the driver's own does, and frees memory.
    pub fn free(&mut self, address: u64) -> DriverResult {
        self.synchronize_all()?;
        match self.device.memory.free(address) {
            true => Ok(()),
            false => misuse(&format!("cuMemFree of {address:#x}, which is not an allocation"), Status::INVALID_VALUE),
        }
    }

    /// Frees pinned memory, which no queued work may use.
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

    /// Whether a range is device memory; said if it is not.
    fn check_range(&self, call: &str, address: u64, bytes: usize) -> DriverResult {
        match self.device.memory.has(address, bytes) {
            true => Ok(()),
            false => {
                misuse(&format!("{call}: {bytes} bytes at {address:#x} are no device memory"), Status::INVALID_VALUE)
            }
        }
    }
}
