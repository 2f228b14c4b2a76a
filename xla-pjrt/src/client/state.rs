//! State of a client, with its devices and their memories.

use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock, Weak};
use std::time::Duration;

use xla_hlo::{ArrayShape, ElementType, MEMORY_KINDS};
use xla_mpi::MpiConnector;
use xla_service::collective::processes::Tcp;
use xla_service::topology::GlobalDevice;
use xla_service::{ClientOptions, Connector, ProcessOptions};

use super::spec::{Collectives, PlatformSpec};
use super::topology_state::{TopologyState, camel_case};
use crate::abi::kinds;
use crate::ffi::{CallerStore, Handle, HasUserData, Hosted, Kind, UserData, user_data_table};
use crate::status::Status;

/// Maximum time to wait for the other processes when a client is created. JAX waits as long for its own start.
const START_TIMEOUT: Duration = Duration::from_secs(300);

impl Kind for kinds::Client {
    type Value = Arc<ClientState>;
    const NAME: &'static str = "PJRT_Client";
}

impl Kind for kinds::Device {
    type Value = DeviceState;
    const NAME: &'static str = "PJRT_Device";
}

impl Kind for kinds::Memory {
    type Value = MemoryState;
    const NAME: &'static str = "PJRT_Memory";
    const TABLE: *const () = user_data_table::<kinds::Memory>();
}

/// Client. Buffers and executables keep it alive, so devices outlive everything that was created with them.
pub(crate) struct ClientState {
    pub service: xla_service::Client,
    pub topology: Hosted<kinds::Topology>,
    pub devices: Vec<Hosted<kinds::Device>>,
    pub device_handles: Vec<Handle<kinds::Device>>,
    /// Memories of the devices of this process, grouped by device.
    _memories: Vec<Hosted<kinds::Memory>>,
    pub memory_handles: Vec<Handle<kinds::Memory>>,
    /// Whether the host can read the devices' memory in place.
    pub is_on_host: bool,
    /// Subscription that forwards custom call handlers that callers register to the service.
    _handlers: xla_ffi::Subscription,
}

/// Device of a client.
pub(crate) struct DeviceState {
    /// Global id.
    pub id: usize,
    pub client: Weak<ClientState>,
    pub description: Handle<kinds::DeviceDescription>,
    /// Device in the service; `None` for a device of another process.
    pub service: Option<xla_service::Device>,
    /// Number of the device in its process.
    pub local_hardware_id: usize,
    /// Memories of the device, set when the client is complete; none for a device of another process.
    memories: OnceLock<Vec<Handle<kinds::Memory>>>,
}

/// Memory of a device.
pub(crate) struct MemoryState {
    pub id: i32,
    /// Global id of the device.
    pub device: usize,
    /// Number of the memory kind, an index into [`MEMORY_KINDS`].
    pub kind: usize,
    pub client: Weak<ClientState>,
    pub debug_string: String,
    pub to_string: String,
    /// Device that can access the memory.
    pub devices: [Handle<kinds::Device>; 1],
    user_data: UserData,
}

impl HasUserData for MemoryState {
    fn user_data(&self) -> &UserData {
        &self.user_data
    }
}

impl ClientState {
    /// Creates a client. `store` is used by clients of several processes.
    pub fn new(spec: PlatformSpec, store: CallerStore) -> Result<Arc<ClientState>, Status> {
        let processes = processes(&spec, store)?;
        let options = ClientOptions { devices: Some(spec.devices), processes, ..ClientOptions::default() };
        let service = xla_service::Client::with_options(&spec.registry, spec.platform.name(), options)?;
        let is_on_host = is_on_host(&service.first_device())?;
        let handlers = xla_ffi::subscribe(spec.registry.custom_calls(), &spec.name);
        let topology = Arc::new(TopologyState::new(spec, service.topology().clone())?);
        let name = topology.spec.name.clone();
        Ok(Arc::new_cyclic(|client: &Weak<ClientState>| {
            let device = |(id, device): (usize, &GlobalDevice)| {
                Hosted::new(DeviceState {
                    id,
                    client: client.clone(),
                    description: topology.description_handles[id],
                    service: service.device(id).ok(),
                    local_hardware_id: device.local_hardware_id,
                    memories: OnceLock::new(),
                })
            };
            let devices: Vec<_> = service.topology().devices().iter().enumerate().map(device).collect();
            let device_handles: Vec<_> = devices.iter().map(Hosted::handle).collect();
            let process = service.topology().process();
            let memory = |id| Hosted::new(MemoryState::new(id, client.clone(), (&name, process), &device_handles));
            let local = local_ids(&service);
            let ids = local.start * MEMORY_KINDS.len()..local.end * MEMORY_KINDS.len();
            let memories: Vec<_> = ids.map(memory).collect();
            let memory_handles: Vec<_> = memories.iter().map(Hosted::handle).collect();
            for (device, own) in devices[local].iter().zip(memory_handles.chunks(MEMORY_KINDS.len())) {
                device.memories.get_or_init(|| own.to_vec());
            }
            let topology = Hosted::new(topology);
            ClientState {
                service,
                topology,
                devices,
                device_handles,
                _memories: memories,
                memory_handles,
                is_on_host,
                _handlers: handlers,
            }
        }))
    }

    /// Returns the devices of this process.
    pub fn local_handles(&self) -> &[Handle<kinds::Device>] {
        &self.device_handles[local_ids(&self.service)]
    }

    /// Returns the memory of this kind on a device of this process, given by its global id.
    pub fn memory(&self, device: usize, kind: usize) -> Handle<kinds::Memory> {
        let index = device - local_ids(&self.service).start;
        self.memory_handles[index * MEMORY_KINDS.len() + kind]
    }
}

/// Returns the global ids of the devices of this process.
fn local_ids(service: &xla_service::Client) -> Range<usize> {
    let first = service.first_device().id();
    first..first + service.devices().len()
}

/// Returns the options of a client that is one of several processes; `None` for a single process.
fn processes(spec: &PlatformSpec, store: CallerStore) -> Result<Option<ProcessOptions>, Status> {
    /// Connections of all clients of this process: each client gets addresses of its own.
    static TCP: LazyLock<Arc<Tcp>> = LazyLock::new(Arc::default);
    let (process, processes) = spec.process;
    if processes == 1 {
        return Ok(None);
    }
    let store = Arc::new(store.checked()?);
    let connector: Arc<dyn Connector> = match spec.collectives {
        Collectives::Tcp => TCP.clone(),
        Collectives::Mpi => Arc::new(MpiConnector),
    };
    let collective_timeouts = ProcessOptions::COLLECTIVE_TIMEOUTS;
    Ok(Some(ProcessOptions { process, processes, store, connector, timeout: START_TIMEOUT, collective_timeouts }))
}

/// Whether the host can read a device's memory in place. Determined by a test allocation.
fn is_on_host(device: &xla_service::Device) -> Result<bool, Status> {
    let piece = device.uninitialized_buffer(&ArrayShape::new(ElementType::U8, [1]))?;
    Ok(piece.hold()?.host_bytes().is_some())
}

impl DeviceState {
    /// Returns the device in the service; an error if it belongs to another process.
    pub fn local(&self) -> Result<&xla_service::Device, Status> {
        let other = || {
            let process = self.description.get().map_or(-1, |description| description.process);
            Status::invalid_argument(format!(
                "device {} belongs to process {process}: arrays can be moved only among devices of one process",
                self.id
            ))
        };
        self.service.as_ref().ok_or_else(other)
    }

    pub fn memories(&self) -> &[Handle<kinds::Memory>] {
        self.memories.get().map_or(&[], |memories| memories)
    }
}

impl MemoryState {
    fn new(
        id: usize,
        client: Weak<ClientState>,
        (name, process): (&str, usize),
        devices: &[Handle<kinds::Device>],
    ) -> MemoryState {
        let (device, kind) = (id / MEMORY_KINDS.len(), id % MEMORY_KINDS.len());
        // Callers have tests for the printed forms, so these are the strings of XLA:CPU.
        let (label, class) = match kind {
            0 => (format!("{}_DEVICE", name.to_uppercase()), format!("{}DeviceMemory", camel_case(name))),
            1 => ("PINNED_HOST".to_string(), "PinnedHostMemory".to_string()),
            _ => ("UNPINNED_HOST".to_string(), "UnpinnedHostMemorySpace".to_string()),
        };
        MemoryState {
            id: id as i32,
            device,
            kind,
            client,
            debug_string: format!("{class}(id={id}, process_index={process}, client={name})"),
            to_string: format!("{label}_{id}"),
            devices: [devices[device]],
            user_data: UserData::default(),
        }
    }
}
