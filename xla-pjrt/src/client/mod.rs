//! `PJRT_Client_*`: creation, properties, device lookup.

mod spec;
mod state;
mod topology_state;

pub(crate) use spec::PlatformSpec;
pub(crate) use state::ClientState;
pub(crate) use topology_state::TopologyState;

use crate::abi::client::{
    ClientAddressableDevicesArgs, ClientAddressableMemoriesArgs, ClientCreateArgs, ClientDefaultDeviceAssignmentArgs,
    ClientDestroyArgs, ClientDevicesArgs, ClientLookupAddressableDeviceArgs, ClientLookupDeviceArgs,
    ClientPlatformNameArgs, ClientPlatformVersionArgs, ClientProcessIndexArgs, ClientTopologyArgs,
    ClientUpdateGlobalProcessInfoArgs,
};
use crate::abi::kinds::Device;
use crate::ffi::{CallerStore, Handle, List, Text};
use crate::named;
use crate::status::{Code, Status};

pub(crate) fn create(args: &ClientCreateArgs) -> Result<(), Status> {
    let spec = PlatformSpec::from_options(named::read(&args.create_options)?)?;
    let store = CallerStore {
        get: (args.kv_get_callback, args.kv_get_user_arg),
        try_get: (args.kv_try_get_callback, args.kv_try_get_user_arg),
        put: (args.kv_put_callback, args.kv_put_user_arg),
    };
    args.client.set(Handle::new(ClientState::new(spec, store)?));
    Ok(())
}

/// `PJRT_Client_Destroy`: destroys the client. Buffers and executables that still exist keep the parts that they need.
pub(crate) fn destroy(args: &ClientDestroyArgs) -> Result<(), Status> {
    args.client.destroy()
}

pub(crate) fn platform_name(args: &ClientPlatformNameArgs) -> Result<(), Status> {
    args.platform_name.set(Text::text(&args.client.get()?.topology.spec.name));
    Ok(())
}

pub(crate) fn process_index(args: &ClientProcessIndexArgs) -> Result<(), Status> {
    let process = args.client.get()?.service.topology().process();
    args.process_index.set(process as i32);
    Ok(())
}

pub(crate) fn platform_version(args: &ClientPlatformVersionArgs) -> Result<(), Status> {
    args.platform_version.set(Text::text(&args.client.get()?.topology.version));
    Ok(())
}

pub(crate) fn topology_description(args: &ClientTopologyArgs) -> Result<(), Status> {
    args.topology.set(args.client.get()?.topology.handle());
    Ok(())
}

pub(crate) fn devices(args: &ClientDevicesArgs) -> Result<(), Status> {
    args.devices.set(List::of(&args.client.get()?.device_handles));
    Ok(())
}

pub(crate) fn addressable_devices(args: &ClientAddressableDevicesArgs) -> Result<(), Status> {
    args.addressable_devices.set(List::of(args.client.get()?.local_handles()));
    Ok(())
}

pub(crate) fn addressable_memories(args: &ClientAddressableMemoriesArgs) -> Result<(), Status> {
    args.addressable_memories.set(List::of(&args.client.get()?.memory_handles));
    Ok(())
}

pub(crate) fn lookup_device(args: &ClientLookupDeviceArgs) -> Result<(), Status> {
    args.device.set(find(&args.client.get()?.device_handles, args.id)?);
    Ok(())
}

pub(crate) fn lookup_addressable_device(args: &ClientLookupAddressableDeviceArgs) -> Result<(), Status> {
    args.addressable_device.set(find(args.client.get()?.local_handles(), args.local_hardware_id)?);
    Ok(())
}

/// Returns the device with this index in a list.
fn find(devices: &[Handle<Device>], id: i32) -> Result<Handle<Device>, Status> {
    let found = usize::try_from(id).ok().and_then(|index| devices.get(index));
    found
        .copied()
        .ok_or_else(|| Status::new(Code::InvalidArgument, format!("No matching device found for device_id {id}")))
}

/// `PJRT_Client_DefaultDeviceAssignment`: assigns devices in order, replica by replica: those of this process if it has
/// enough.
pub(crate) fn default_device_assignment(args: &ClientDefaultDeviceAssignmentArgs) -> Result<(), Status> {
    let client = args.client.get()?;
    let count = client.devices.len();
    let sizes = [args.num_replicas, args.num_partitions].map(usize::try_from);
    let [Ok(replicas), Ok(partitions)] = sizes else {
        return Err(Status::invalid_argument("numbers of replicas and partitions must not be negative"));
    };
    let wanted = replicas.saturating_mul(partitions);
    if wanted > count || wanted > args.default_assignment_size {
        return Err(Status::invalid_argument(format!(
            "{replicas} replicas of {partitions} partitions need {wanted} devices; the client has {count}, and the \
             assignment has room for {}",
            args.default_assignment_size
        )));
    }
    let assigned = client.service.topology().default_assignment(wanted);
    args.default_assignment.fill(assigned.into_iter().map(|device| device as i32))
}

/// `PJRT_Client_UpdateGlobalProcessInfo`: does nothing. Collectives detect processes that have ended by themselves.
pub(crate) fn update_global_process_info(args: &ClientUpdateGlobalProcessInfoArgs) -> Result<(), Status> {
    args.client.get().map(drop)
}
