//! Topology of a job of several processes: the devices of all of them.
//!
//! ```text
//! process 0   publish own devices ─┬─ read the devices of all, number them, publish the list ─┐
//! process 1   publish own devices ─┤                                                          ├─ read the list
//! process 2   publish own devices ─┘                                                          ┘
//! ```
//!
//! Processes exchange their devices through a [`KeyValueStore`]. Global device ids are consecutive, process by process,
//! so the devices of a process have consecutive ids.

mod exchange;
mod in_memory;
mod store;

use xla_hlo::{Error, Result};

pub use exchange::exchange;
pub use in_memory::InMemoryStore;
pub use store::{KeyValueStore, publish};

/// Devices of all processes of a job, by global id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    process: usize,
    processes: usize,
    devices: Vec<GlobalDevice>,
    /// Global id of the first device of this process.
    first: usize,
    /// Number of devices of this process.
    local: usize,
}

/// Device of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalDevice {
    /// Process that the device belongs to.
    pub process: usize,
    /// Number of the device in its process.
    pub local_hardware_id: usize,
    /// Device model.
    pub model: String,
}

impl Topology {
    /// Creates the topology of a single process with devices of these models.
    pub fn of_one_process(models: Vec<String>) -> Topology {
        let local = models.len();
        Topology { process: 0, processes: 1, devices: numbered(0, models).collect(), first: 0, local }
    }

    /// Creates the topology as seen by `process`. Devices must be in the order of the processes.
    /// [`Error::InvalidArgument`] for a process that is not one of `processes`, or has no device.
    pub fn new(process: usize, processes: usize, devices: Vec<GlobalDevice>) -> Result<Topology> {
        if process >= processes || devices.iter().any(|device| device.process >= processes) {
            return Err(Error::invalid_argument(format!("a process of a topology is not one of {processes}")));
        }
        if !devices.iter().any(|device| device.process == process) {
            return Err(Error::invalid_argument(format!("process {process} of a topology has no device")));
        }
        if !devices.is_sorted_by_key(|device| device.process) {
            return Err(Error::invalid_argument("the list of all devices is not in the order of the processes"));
        }
        let first = devices.iter().take_while(|device| device.process < process).count();
        let local = devices.iter().filter(|device| device.process == process).count();
        Ok(Topology { process, processes, devices, first, local })
    }

    /// Returns the number of this process.
    pub fn process(&self) -> usize {
        self.process
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// Returns the devices of all processes, by global id.
    pub fn devices(&self) -> &[GlobalDevice] {
        &self.devices
    }

    /// Returns the global id of local device `index`.
    pub fn id(&self, index: usize) -> usize {
        self.first + index
    }

    /// Returns the index of a device among the local devices; `None` if it belongs to another process.
    /// [`Error::NotFound`] if no process has the device.
    pub fn local_index(&self, id: usize) -> Result<Option<usize>> {
        if id < self.devices.len() {
            return Ok(id.checked_sub(self.first).filter(|&index| index < self.local));
        }
        let count = self.devices.len();
        Err(Error::not_found(match self.processes {
            1 => format!("the client has {count} devices, but no device {id}"),
            processes => format!("the {processes} processes have {count} devices, but no device {id}"),
        }))
    }

    /// Returns the default global ids for a program of `count` devices: devices of this process if it has enough,
    /// otherwise the first devices of the job.
    pub fn default_assignment(&self, count: usize) -> Vec<usize> {
        let first = if count <= self.local { self.first } else { 0 };
        (first..).take(count).collect()
    }
}

/// Encodes a list of devices as text: a line with process, hardware id and model for each.
pub fn encode(devices: &[GlobalDevice]) -> String {
    let line = |device: &GlobalDevice| {
        let model = device.model.replace(['\n', '\r'], " ");
        format!("{} {} {model}\n", device.process, device.local_hardware_id)
    };
    devices.iter().map(line).collect()
}

/// Decodes a list of devices that [`encode`] wrote; `None` if it is malformed.
pub fn decode(list: &str) -> Option<Vec<GlobalDevice>> {
    let device = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let (process, local_hardware_id) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(GlobalDevice { process, local_hardware_id, model: words.next()?.to_string() })
    };
    list.lines().map(device).collect()
}

fn numbered(process: usize, models: Vec<String>) -> impl Iterator<Item = GlobalDevice> {
    let device = move |(local_hardware_id, model)| GlobalDevice { process, local_hardware_id, model };
    models.into_iter().enumerate().map(device)
}
