//! The driver without its C interface: handles, streams, graphs, and when work is done.
//!
//! Handles are numbers that are never used again, so whatever is destroyed stays so. Work that is sent waits in its
//! stream until somebody waits for it, or until the seed has it done earlier; of several streams that may go on any
//! may.

mod graphs;
mod modules;
mod options;
mod pinned;
mod status;
mod streams;
mod work;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

pub(crate) use graphs::{BodyPlace, address_of};
pub(crate) use modules::{MOST_SHARED, Shape};
pub use options::{Options, VARIABLE};
pub use status::Status;
pub(crate) use work::{LibraryWork, Work};

use crate::machine::Memory;
use graphs::{Executable, Graph};
use modules::{Function, LoadedModule};
use streams::{Event, Stream};
use work::{Conditions, Device};

/// What a call gives: nothing, or a code.
pub(crate) type Answer<T = ()> = Result<T, Status>;

/// A number that stands for something of the driver.
pub(crate) type Handle = u64;

/// The stream of work for which no stream is named.
pub(crate) const DEFAULT_STREAM: Handle = 0;

/// Numbers by a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random {
    state: u64,
    /// Whether every choice is the first one.
    is_still: bool,
}

impl Random {
    fn new(seed: u64) -> Random {
        Random { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, is_still: seed == 0 }
    }

    /// A number below another one, which is not zero.
    pub fn below(&mut self, end: usize) -> usize {
        if self.is_still || end < 2 {
            return 0;
        }
        // Marsaglia's xorshift.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 16) as usize % end
    }
}

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
    /// What every call gives once work has failed.
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
    pub fn alive(&self) -> Answer {
        self.lost.map_or(Ok(()), Err)
    }

    /// The device is lost: tells why, and gives the code that every call gives from now on.
    fn lose(&mut self, status: Status, why: &str) -> Status {
        tell(why);
        *self.lost.get_or_insert(status)
    }

    /// Device memory.
    pub fn allocate(&mut self, bytes: usize) -> Answer<u64> {
        if bytes == 0 {
            return misuse("cuMemAlloc is asked for no bytes", Status::INVALID_VALUE);
        }
        self.device.memory.allocate(bytes).ok_or(Status::OUT_OF_MEMORY)
    }

    /// Waits for all work, as the driver's own does, and gives memory back.
    pub fn free(&mut self, address: u64) -> Answer {
        self.synchronize_all()?;
        match self.device.memory.free(address) {
            true => Ok(()),
            false => misuse(&format!("cuMemFree of {address:#x}, which is no allocation"), Status::INVALID_VALUE),
        }
    }

    /// Gives pinned memory back, which no queued work may use.
    pub fn free_pinned(&mut self, address: usize) -> Answer {
        let uses = |work: &Work| work.host_address().is_some_and(|other| self.device.pinned.is_within(address, other));
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
    fn check_range(&self, call: &str, address: u64, bytes: usize) -> Answer {
        match self.device.memory.has(address, bytes) {
            true => Ok(()),
            false => {
                misuse(&format!("{call}: {bytes} bytes at {address:#x} are no device memory"), Status::INVALID_VALUE)
            }
        }
    }
}

/// Says something to whoever runs the tests.
pub(crate) fn tell(sentence: &str) {
    // Nobody can be told that nobody can be told.
    let _ = writeln!(std::io::stderr(), "simulated-gpu: {sentence}");
}

/// A call that the driver must not get, which it tells, and answers with a code.
pub(crate) fn misuse<T>(sentence: &str, status: Status) -> Answer<T> {
    tell(&format!("misuse of the driver: {sentence}"));
    Err(status)
}
