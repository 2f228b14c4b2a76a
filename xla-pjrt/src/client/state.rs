//! State of a client, with its devices and their memories.

use std::sync::{Arc, OnceLock, Weak};

use xla_hlo::{ArrayShape, ElementType, MEMORY_KINDS};
use xla_service::ClientOptions;

use super::spec::PlatformSpec;
use super::topology_state::{TopologyState, camel_case};
use crate::abi::kinds;
use crate::ffi::{Handle, HasUserData, Hosted, Kind, UserData, user_data_table};
use crate::status::Status;

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
    /// Memories of all devices, grouped by device.
    _memories: Vec<Hosted<kinds::Memory>>,
    pub memory_handles: Vec<Handle<kinds::Memory>>,
    /// Whether the host can read the devices' memory in place.
    pub is_on_host: bool,
    /// Subscription that forwards custom call handlers that callers register to the service.
    _handlers: xla_ffi::Subscription,
}

/// Device of a client.
pub(crate) struct DeviceState {
    pub index: usize,
    pub client: Weak<ClientState>,
    pub description: Handle<kinds::DeviceDescription>,
    pub service: xla_service::Device,
    /// Memories of the device, set when the client is complete.
    memories: OnceLock<Vec<Handle<kinds::Memory>>>,
}

/// Memory of a device.
pub(crate) struct MemoryState {
    pub id: i32,
    /// Number of the device.
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
    pub fn new(spec: PlatformSpec) -> Result<Arc<ClientState>, Status> {
        let options = ClientOptions { devices: Some(spec.devices), ..ClientOptions::default() };
        let service = xla_service::Client::with_options(&spec.registry, spec.platform.name(), options)?;
        let is_on_host = is_on_host(&service.first_device())?;
        let handlers = xla_ffi::subscribe(spec.registry.custom_calls(), &spec.name);
        let topology = Arc::new(TopologyState::new(spec));
        let name = topology.spec.name.clone();
        Ok(Arc::new_cyclic(|client: &Weak<ClientState>| {
            let device = |(index, service)| {
                let description = topology.description_handles[index];
                Hosted::new(DeviceState {
                    index,
                    client: client.clone(),
                    description,
                    service,
                    memories: OnceLock::new(),
                })
            };
            let devices: Vec<_> = service.devices().enumerate().map(device).collect();
            let device_handles: Vec<_> = devices.iter().map(Hosted::handle).collect();
            let memory = |id| Hosted::new(MemoryState::new(id, client.clone(), &name, &device_handles));
            let memories: Vec<_> = (0..devices.len() * MEMORY_KINDS.len()).map(memory).collect();
            let memory_handles: Vec<_> = memories.iter().map(Hosted::handle).collect();
            for (device, own) in devices.iter().zip(memory_handles.chunks(MEMORY_KINDS.len())) {
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

    /// Returns the device with this number.
    pub fn device(&self, index: usize) -> Result<&DeviceState, Status> {
        let count = self.devices.len();
        let device = self.devices.get(index).map(|device| &**device);
        device.ok_or_else(|| Status::invalid_argument(format!("device {index} does not exist; the client has {count}")))
    }

    /// Returns the memory of this kind on a device.
    pub fn memory(&self, device: usize, kind: usize) -> Handle<kinds::Memory> {
        self.memory_handles[device * MEMORY_KINDS.len() + kind]
    }
}

/// Whether the host can read a device's memory in place. Determined by a test allocation.
fn is_on_host(device: &xla_service::Device) -> Result<bool, Status> {
    let piece = device.uninitialized_buffer(&ArrayShape::new(ElementType::U8, [1]))?;
    Ok(piece.hold()?.host_bytes().is_some())
}

impl DeviceState {
    pub fn memories(&self) -> &[Handle<kinds::Memory>] {
        self.memories.get().map_or(&[], |memories| memories)
    }
}

impl MemoryState {
    fn new(id: usize, client: Weak<ClientState>, name: &str, devices: &[Handle<kinds::Device>]) -> MemoryState {
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
            debug_string: format!("{class}(id={id}, process_index=0, client={name})"),
            to_string: format!("{label}_{id}"),
            devices: [devices[device]],
            user_data: UserData::default(),
        }
    }
}
