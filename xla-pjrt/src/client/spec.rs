//! Create options of clients and topologies: platform, name, number of devices.

use std::sync::Arc;

use xla_service::{Platform, PlatformRegistry};

use crate::named::{Named, Value};
use crate::plugin;
use crate::status::{Code, Status};

/// The most devices that a client may have where the platform has one: parts of a host.
const MAX_DEVICES: usize = 1024;

/// A platform with the name it has for clients, and its devices.
#[derive(Clone, Debug)]
pub(crate) struct PlatformSpec {
    pub registry: PlatformRegistry,
    pub platform: Arc<dyn Platform>,
    /// The platform's name as clients hear it. JAX chooses its rules by it.
    pub name: String,
    pub devices: usize,
    /// Whether programs may run after the call that launches them has returned.
    pub asynchronous: bool,
}

/// The create options, as they came.
#[derive(Default)]
struct Options {
    platform: Option<String>,
    name: Option<String>,
    devices: Option<usize>,
    asynchronous: Option<bool>,
}

impl PlatformSpec {
    /// Reads create options:
    ///
    /// - `platform`: the platform by its name in the registry; without it, the first that this machine can run;
    /// - `platform_name`: the name that clients hear, else that of the platform;
    /// - `device_count` or `cpu_device_count`: number of devices, else as many as the platform has;
    /// - `asynchronous`: whether calls may return before their programs have run, else true;
    /// - `node_id`, `num_nodes`, `partition_index`: of runs on several machines; only one is possible.
    pub fn from_options(named: Named) -> Result<PlatformSpec, Status> {
        let options = Options::read(named)?;
        let registry = plugin::platforms()?;
        let platform = match &options.platform {
            Some(name) => registry.get(name)?,
            None => first_usable(&registry)?,
        };
        let name = options.name.unwrap_or_else(|| platform.name().to_string());
        let devices = options.devices.unwrap_or_else(|| platform.device_count().max(1));
        let asynchronous = options.asynchronous.unwrap_or(true);
        PlatformSpec { registry, platform, name, devices, asynchronous }.checked()
    }

    /// An error if the platform cannot have as many devices.
    fn checked(self) -> Result<PlatformSpec, Status> {
        let count = self.platform.device_count();
        let most = if count <= 1 { MAX_DEVICES } else { count };
        if self.devices == 0 || self.devices > most {
            return Err(Status::invalid_argument(format!(
                "platform {} can have 1 to {most} devices, {} were asked for",
                self.platform.name(),
                self.devices
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
                ("num_nodes", value) if count(&name, &value)? > 1 => {
                    return Err(Status::unimplemented("clients of several machines"));
                }
                ("node_id" | "num_nodes" | "partition_index", _) => {}
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
                        "there is no create option {name:?}; known are platform, platform_name, device_count, \
                         asynchronous"
                    )));
                }
            }
        }
        Ok(options)
    }
}

/// A number, which may come as text.
fn count(name: &str, value: &Value) -> Result<usize, Status> {
    let number = match value {
        Value::Integer(number) => usize::try_from(*number).ok(),
        Value::Text(text) => text.parse().ok(),
        Value::Integers(_) | Value::Real(_) | Value::Flag(_) => None,
    };
    number.ok_or_else(|| Status::invalid_argument(format!("create option {name} must be a number, not {value:?}")))
}
