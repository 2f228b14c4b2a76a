//! Topologies: descriptions of devices without a client.

use std::sync::Arc;

use xla_service::topology::{self, Topology};

use crate::abi::device::{
    TopologyAttributesArgs, TopologyCreateArgs, TopologyDeserializeArgs, TopologyDestroyArgs, TopologyFingerprintArgs,
    TopologyGetDeviceDescriptionsArgs, TopologyGetMemorySpaceKindIdsArgs, TopologyPlatformNameArgs,
    TopologyPlatformVersionArgs, TopologySerializeArgs,
};
use crate::abi::kinds;
use crate::client::{PlatformSpec, TopologyState};
use crate::ffi::{Deleter, Handle, List, Text};
use crate::named::{self, Value};
use crate::serialized::hand_out;
use crate::status::Status;

/// First line of a serialized topology. It is followed by lines with the platform, the name, the number of the process
/// and the number of processes, and by the devices of all processes.
const MAGIC: &str = "xlars topology 2";

/// `PJRT_TopologyDescription_Create`: creates a topology from the create options of a client. A non-empty topology name
/// selects the platform, unless an option does.
pub(crate) fn create(args: &TopologyCreateArgs) -> Result<(), Status> {
    let mut options = named::read(&args.create_options)?;
    let name = args.topology_name.as_str()?;
    if !name.is_empty() && options.iter().all(|(option, _)| option != "platform") {
        options.push(("platform".to_string(), Value::Text(name.to_string())));
    }
    let topology = TopologyState::uniform(PlatformSpec::from_options(options)?)?;
    args.topology.set(Handle::new(Arc::new(topology)));
    Ok(())
}

pub(crate) fn destroy(args: &TopologyDestroyArgs) -> Result<(), Status> {
    args.topology.destroy()
}

pub(crate) fn platform_name(args: &TopologyPlatformNameArgs) -> Result<(), Status> {
    args.platform_name.set(Text::text(&args.topology.get()?.spec.name));
    Ok(())
}

pub(crate) fn platform_version(args: &TopologyPlatformVersionArgs) -> Result<(), Status> {
    args.platform_version.set(Text::text(&args.topology.get()?.version));
    Ok(())
}

pub(crate) fn device_descriptions(args: &TopologyGetDeviceDescriptionsArgs) -> Result<(), Status> {
    args.descriptions.set(List::of(&args.topology.get()?.description_handles));
    Ok(())
}

pub(crate) fn attributes(args: &TopologyAttributesArgs) -> Result<(), Status> {
    args.attributes.set(args.topology.get()?.attributes.list());
    Ok(())
}

pub(crate) fn fingerprint(args: &TopologyFingerprintArgs) -> Result<(), Status> {
    args.fingerprint.set(args.topology.get()?.fingerprint());
    Ok(())
}

pub(crate) fn memory_space_kind_ids(args: &TopologyGetMemorySpaceKindIdsArgs) -> Result<(), Status> {
    args.memory_space_kind_ids.set(List::of(&args.topology.get()?.kind_ids));
    Ok(())
}

pub(crate) fn serialize(args: &TopologySerializeArgs) -> Result<(), Status> {
    let state = args.topology.get()?;
    let (platform, name, devices) = (state.spec.platform.name(), &state.spec.name, &state.devices);
    let place = format!("{}\n{}", devices.process(), devices.processes());
    let text = format!("{MAGIC}\n{platform}\n{name}\n{place}\n{}", topology::encode(devices.devices()));
    let (bytes, object) = hand_out(text.into_bytes());
    args.serialized_bytes.set(bytes);
    args.serialized_topology.set(object);
    args.serialized_topology_deleter.set(Deleter::of::<kinds::Serialized>());
    Ok(())
}

pub(crate) fn deserialize(args: &TopologyDeserializeArgs) -> Result<(), Status> {
    let foreign = || Status::invalid_argument("these bytes are not a serialized topology of this plugin");
    let text = args.serialized_topology.as_str().unwrap_or("");
    let parts: Vec<&str> = text.splitn(6, '\n').collect();
    let [MAGIC, platform, name, process, processes, devices] = parts[..] else { return Err(foreign()) };
    let devices = topology::decode(devices).ok_or_else(foreign)?;
    let number = |text: &str| text.parse::<usize>().map_err(|_| foreign());
    let devices = Topology::new(number(process)?, number(processes)?, devices)?;
    let local = devices.devices().iter().filter(|device| device.process == devices.process()).count().to_string();
    let options = [
        ("platform", platform),
        ("platform_name", name),
        ("device_count", &local),
        ("node_id", process),
        ("num_nodes", processes),
    ];
    let options = options.map(|(option, value)| (option.to_string(), Value::Text(value.to_string())));
    let spec = PlatformSpec::from_options(options.into())?;
    args.topology.set(Handle::new(Arc::new(TopologyState::new(spec, devices)?)));
    Ok(())
}
