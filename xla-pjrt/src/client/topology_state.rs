//! State of a topology: descriptions of devices, which need not exist on this machine.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use xla_hlo::MEMORY_KINDS;
use xla_service::topology::{GlobalDevice, Topology};
use xla_service::{FileCache, build_identity};

use super::spec::PlatformSpec;
use crate::abi::kinds;
use crate::ffi::{Handle, Hosted, Kind};
use crate::named::Attributes;
use crate::status::Status;

/// Limit on the devices of a topology.
const MAX_DEVICES: usize = 1 << 16;

impl Kind for kinds::Topology {
    type Value = Arc<TopologyState>;
    const NAME: &'static str = "PJRT_TopologyDescription";
}

impl Kind for kinds::DeviceDescription {
    type Value = DescriptionState;
    const NAME: &'static str = "PJRT_DeviceDescription";
}

impl Kind for kinds::MemoryDescription {
    type Value = usize;
    const NAME: &'static str = "PJRT_MemoryDescription";
}

/// Descriptions of a platform's devices.
pub(crate) struct TopologyState {
    pub spec: PlatformSpec,
    /// Devices of all processes.
    pub devices: Topology,
    /// Version of the plugin and of everything else that compiled programs depend on. Callers use it as a cache key.
    pub version: String,
    pub descriptions: Vec<Hosted<kinds::DeviceDescription>>,
    pub description_handles: Vec<Handle<kinds::DeviceDescription>>,
    pub attributes: Attributes,
    /// Numbers of the memory kinds.
    pub kind_ids: Vec<i32>,
}

/// Description of a device.
pub(crate) struct DescriptionState {
    pub id: i32,
    /// Process that the device belongs to.
    pub process: i32,
    /// Device model. For a client named `cpu`, it is `cpu`, which callers check for.
    pub kind: String,
    pub debug_string: String,
    pub to_string: String,
    pub attributes: Attributes,
    _memories: Vec<Hosted<kinds::MemoryDescription>>,
    pub memories: Vec<Handle<kinds::MemoryDescription>>,
}

impl TopologyState {
    /// Creates the topology of devices, which may belong to several processes.
    pub fn new(spec: PlatformSpec, devices: Topology) -> Result<TopologyState, Status> {
        check_count(devices.devices().len())?;
        let executor = spec.platform.executor(0).ok();
        let model = executor.map_or_else(|| spec.name.clone(), |executor| executor.description().model.clone());
        let kind = if spec.name == "cpu" { "cpu".to_string() } else { model };
        let describe = |(id, device): (usize, &GlobalDevice)| {
            Hosted::new(DescriptionState::new(id, device.process, &spec.name, &kind))
        };
        let descriptions: Vec<_> = devices.devices().iter().enumerate().map(describe).collect();
        Ok(TopologyState {
            version: version(&spec),
            description_handles: descriptions.iter().map(Hosted::handle).collect(),
            descriptions,
            attributes: Attributes::new(Vec::new()),
            kind_ids: (0..MEMORY_KINDS.len() as i32).collect(),
            spec,
            devices,
        })
    }

    /// Creates the topology of processes that each have the requested number of devices.
    pub fn uniform(spec: PlatformSpec) -> Result<TopologyState, Status> {
        let (process, processes) = spec.process;
        let count = spec.devices.saturating_mul(processes);
        check_count(count)?;
        let device = |id: usize| GlobalDevice {
            process: id / spec.devices,
            local_hardware_id: id % spec.devices,
            model: String::new(),
        };
        let devices = Topology::new(process, processes, (0..count).map(device).collect())?;
        TopologyState::new(spec, devices)
    }

    /// Returns a hash that is equal for topologies that can exchange compiled programs. It is equal in all processes of
    /// a job, which may have different numbers of devices.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.spec.platform.name(), &self.spec.name, &self.version).hash(&mut hasher);
        self.descriptions.iter().for_each(|description| (&description.kind, description.process).hash(&mut hasher));
        hasher.finish()
    }
}

/// Returns an error if a topology cannot have this number of devices.
fn check_count(devices: usize) -> Result<(), Status> {
    match devices <= MAX_DEVICES {
        true => Ok(()),
        false => Err(Status::invalid_argument(format!(
            "a topology has at most {MAX_DEVICES} devices, but {devices} were requested"
        ))),
    }
}

/// Returns the version of the plugin, with a hash of the build and of its code generation target: processor, CPU
/// features, LLVM version.
fn version(spec: &PlatformSpec) -> String {
    let target = spec.platform.compiler().loader().and_then(|loader| loader.cache_target()).unwrap_or_default();
    let key = FileCache::key(&[build_identity().as_bytes(), target.as_bytes()]);
    format!("xlars {} ({}, build {})", env!("CARGO_PKG_VERSION"), spec.platform.name(), &key[..16])
}

impl DescriptionState {
    fn new(id: usize, process: usize, name: &str, kind: &str) -> DescriptionState {
        let memories: Vec<_> = (0..MEMORY_KINDS.len()).map(Hosted::new).collect();
        // XLA's own CPU client may be in the same process, and its devices print as `cpu:0` and `CpuDevice(id=0)`.
        let shown = if name == "cpu" { "xlars_cpu" } else { name };
        DescriptionState {
            id: id as i32,
            process: process as i32,
            kind: kind.to_string(),
            debug_string: format!("{shown}:{id}"),
            to_string: format!("{}Device(id={id})", camel_case(shown)),
            attributes: Attributes::new(Vec::new()),
            memories: memories.iter().map(Hosted::handle).collect(),
            _memories: memories,
        }
    }
}

/// Converts a name such as `gpu-emulated` to camel case, `GpuEmulated`.
pub(crate) fn camel_case(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
        })
        .collect()
}
