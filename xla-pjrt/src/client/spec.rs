//! Create options of clients and topologies: platform, name, number of devices.

use std::sync::Arc;

use xla_service::{Platform, PlatformRegistry};

use crate::named::{Named, Value};
use crate::plugin;
use crate::status::{Code, Status};

/// Limit on the devices of a client if the platform has only one. They share the host.
const MAX_DEVICES: usize = 1024;

/// Maximum number of processes. It bounds the list of devices that they exchange.
const MAX_PROCESSES: usize = 1 << 16;

/// Platform of a client: its name for callers, and its number of devices.
#[derive(Clone, Debug)]
pub(crate) struct PlatformSpec {
    pub registry: PlatformRegistry,
    pub platform: Arc<dyn Platform>,
    /// Platform name that clients report. JAX selects its lowering rules by it.
    pub name: String,
    pub devices: usize,
    /// Whether an execution may still be running when its call returns.
    pub asynchronous: bool,
    /// Number of this process, and number of processes.
    pub process: (usize, usize),
    /// Transport of collectives between processes.
    pub collectives: Collectives,
}

/// Transport of collectives between processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Collectives {
    /// TCP, with addresses in the key-value store.
    #[default]
    Tcp,
    /// MPI, for processes that `mpiexec` has started.
    Mpi,
}

/// Create options as passed by the caller.
#[derive(Default)]
struct Options {
    platform: Option<String>,
    name: Option<String>,
    devices: Option<usize>,
    asynchronous: Option<bool>,
    node_id: Option<usize>,
    num_nodes: Option<usize>,
    collectives: Collectives,
}

impl PlatformSpec {
    /// Reads the create options:
    ///
    /// - `platform`: name of the platform in the registry. Default: the first one that this machine supports.
    /// - `platform_name`: name that clients report, without control characters. Default: the name of the platform.
    /// - `device_count` or `cpu_device_count`: number of devices. Default: the platform's number of devices.
    /// - `asynchronous`: whether calls may return before their programs have run. Default: true.
    /// - `node_id`, `num_nodes`: number of this process and number of processes. Default: 0 of 1.
    /// - `collectives`: transport between processes, `tcp` or `mpi`. Default: `tcp`.
    /// - `partition_index`: ignored.
    pub fn from_options(named: Named) -> Result<PlatformSpec, Status> {
        let options = Options::read(named)?;
        let registry = plugin::platforms()?;
        let platform = match &options.platform {
            Some(name) => registry.get(name)?,
            None => first_usable(&registry)?,
        };
        let name = options.name.unwrap_or_else(|| platform.name().to_string());
        if name.contains(char::is_control) {
            return Err(Status::invalid_argument(format!(
                "create option platform_name must not contain control characters, but it is {name:?}"
            )));
        }
        let devices = options.devices.unwrap_or_else(|| platform.device_count().max(1));
        let asynchronous = options.asynchronous.unwrap_or(true);
        let process = (options.node_id.unwrap_or(0), options.num_nodes.unwrap_or(1).max(1));
        let collectives = options.collectives;
        PlatformSpec { registry, platform, name, devices, asynchronous, process, collectives }.checked()
    }

    /// Returns an error if the platform cannot have this number of devices.
    fn checked(self) -> Result<PlatformSpec, Status> {
        let count = self.platform.device_count();
        let most = if count <= 1 { MAX_DEVICES } else { count };
        if self.devices == 0 || self.devices > most {
            return Err(Status::invalid_argument(format!(
                "platform {} can have 1 to {most} devices, but {} were requested",
                self.platform.name(),
                self.devices
            )));
        }
        let (process, processes) = self.process;
        if processes > MAX_PROCESSES {
            return Err(Status::invalid_argument(format!(
                "create option num_nodes is {processes}, but it must be at most {MAX_PROCESSES}"
            )));
        }
        if process >= processes {
            return Err(Status::invalid_argument(format!(
                "create option node_id is {process}, but it must be less than num_nodes, {processes}"
            )));
        }
        Ok(self)
    }
}

fn first_usable(registry: &PlatformRegistry) -> Result<Arc<dyn Platform>, Status> {
    let usable = registry.platforms().iter().find(|platform| platform.check().is_ok());
    usable.cloned().ok_or_else(|| Status::new(Code::NotFound, "no platform of this plugin can run on this machine"))
}

impl Options {
    fn read(named: Named) -> Result<Options, Status> {
        let mut options = Options::default();
        for (name, value) in named {
            match (name.as_str(), value) {
                ("platform", Value::Text(text)) => options.platform = Some(text),
                ("platform_name", Value::Text(text)) => options.name = Some(text),
                ("device_count" | "cpu_device_count", value) => options.devices = Some(count(&name, &value)?),
                ("asynchronous", Value::Flag(flag)) => options.asynchronous = Some(flag),
                ("node_id", value) => options.node_id = Some(count(&name, &value)?),
                ("num_nodes", value) => options.num_nodes = Some(count(&name, &value)?),
                ("collectives", value) => options.collectives = collectives(&value)?,
                ("partition_index", _) => {}
                ("platform" | "platform_name", value) => {
                    return Err(Status::invalid_argument(format!("create option {name} must be text, not {value:?}")));
                }
                ("asynchronous", value) => {
                    return Err(Status::invalid_argument(format!(
                        "create option {name} must be true or false, not {value:?}"
                    )));
                }
                _ => {
                    return Err(Status::invalid_argument(format!(
                        "create option {name:?} is unknown; the options are platform, platform_name, device_count, \
                         asynchronous, node_id, num_nodes, collectives"
                    )));
                }
            }
        }
        Ok(options)
    }
}

/// Reads the name of a transport.
fn collectives(value: &Value) -> Result<Collectives, Status> {
    match value {
        Value::Text(text) if text == "tcp" => Ok(Collectives::Tcp),
        Value::Text(text) if text == "mpi" => Ok(Collectives::Mpi),
        _ => Err(Status::invalid_argument(format!("create option collectives must be tcp or mpi, not {value:?}"))),
    }
}

/// Reads a number, which may be passed as text.
fn count(name: &str, value: &Value) -> Result<usize, Status> {
    let number = match value {
        Value::Integer(number) => usize::try_from(*number).ok(),
        Value::Text(text) => text.parse().ok(),
        Value::Integers(_) | Value::Real(_) | Value::Flag(_) => None,
    };
    number.ok_or_else(|| Status::invalid_argument(format!("create option {name} must be a number, not {value:?}")))
}
