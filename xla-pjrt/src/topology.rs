//! Topologies: descriptions of devices without a client.

use std::sync::Arc;

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

/// First line of a serialized topology, which is followed by the platform, the name and the number of devices.
const MAGIC: &str = "xlars topology 1";

/// `PJRT_TopologyDescription_Create`: creates a topology from the create options of a client. A non-empty topology name
/// selects the platform, unless an option does.
pub(crate) fn create(args: &TopologyCreateArgs) -> Result<(), Status> {
    let mut options = named::read(&args.create_options)?;
    let name = args.topology_name.as_str()?;
    if !name.is_empty() && options.iter().all(|(option, _)| option != "platform") {
        options.push(("platform".to_string(), Value::Text(name.to_string())));
    }
    args.topology.set(Handle::new(Arc::new(TopologyState::of_one_process(PlatformSpec::from_options(options)?))));
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
    let spec = &args.topology.get()?.spec;
    let text = format!("{MAGIC}\n{}\n{}\n{}\n", spec.platform.name(), spec.name, spec.devices);
    let (bytes, object) = hand_out(text.into_bytes());
    args.serialized_bytes.set(bytes);
    args.serialized_topology.set(object);
    args.serialized_topology_deleter.set(Deleter::of::<kinds::Serialized>());
    Ok(())
}

pub(crate) fn deserialize(args: &TopologyDeserializeArgs) -> Result<(), Status> {
    let mut lines = args.serialized_topology.as_str().unwrap_or("").lines();
    let (magic, platform, name, devices) = (lines.next(), lines.next(), lines.next(), lines.next());
    let (Some(MAGIC), Some(platform), Some(name), Some(devices)) = (magic, platform, name, devices) else {
        return Err(Status::invalid_argument("these bytes are not a serialized topology of this plugin"));
    };
    let options = [("platform", platform), ("platform_name", name), ("device_count", devices)];
    let options = options.map(|(option, value)| (option.to_string(), Value::Text(value.to_string())));
    args.topology
        .set(Handle::new(Arc::new(TopologyState::of_one_process(PlatformSpec::from_options(options.into())?))));
    Ok(())
}
