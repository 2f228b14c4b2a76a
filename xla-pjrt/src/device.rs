//! Devices and their descriptions.

use crate::abi::device::{
    AsyncTrackingEventDestroyArgs, DeviceAddressableMemoriesArgs, DeviceCreateAsyncTrackingEventArgs,
    DeviceDefaultMemoryArgs, DeviceDescriptionAttributesArgs, DeviceDescriptionDebugStringArgs,
    DeviceDescriptionIdArgs, DeviceDescriptionKindArgs, DeviceDescriptionProcessIndexArgs,
    DeviceDescriptionToStringArgs, DeviceGetAttributesArgs, DeviceGetDescriptionArgs, DeviceIsAddressableArgs,
    DeviceLocalHardwareIdArgs, DeviceMemoryStatsArgs,
};
use crate::abi::kinds;
use crate::ffi::{Deleter, Flag, Handle, Kind, List, Out, Text};
use crate::named::{Attributes, Value};
use crate::status::Status;

impl Kind for kinds::Attributes {
    type Value = Attributes;
    const NAME: &'static str = "PJRT_Device_Attributes";
}

impl Kind for kinds::AsyncTrackingEvent {
    /// Description of the event.
    type Value = String;
    const NAME: &'static str = "PJRT_AsyncTrackingEvent";
}

pub(crate) fn description_id(args: &DeviceDescriptionIdArgs) -> Result<(), Status> {
    args.id.set(args.device_description.get()?.id);
    Ok(())
}

pub(crate) fn description_process_index(args: &DeviceDescriptionProcessIndexArgs) -> Result<(), Status> {
    args.process_index.set(args.device_description.get()?.process);
    Ok(())
}

pub(crate) fn description_attributes(args: &DeviceDescriptionAttributesArgs) -> Result<(), Status> {
    args.attributes.set(args.device_description.get()?.attributes.counted());
    Ok(())
}

pub(crate) fn description_kind(args: &DeviceDescriptionKindArgs) -> Result<(), Status> {
    args.device_kind.set(Text::text(&args.device_description.get()?.kind));
    Ok(())
}

pub(crate) fn description_debug_string(args: &DeviceDescriptionDebugStringArgs) -> Result<(), Status> {
    args.debug_string.set(Text::text(&args.device_description.get()?.debug_string));
    Ok(())
}

pub(crate) fn description_to_string(args: &DeviceDescriptionToStringArgs) -> Result<(), Status> {
    args.to_string.set(Text::text(&args.device_description.get()?.to_string));
    Ok(())
}

pub(crate) fn description(args: &DeviceGetDescriptionArgs) -> Result<(), Status> {
    args.device_description.set(args.device.get()?.description);
    Ok(())
}

/// `PJRT_Device_IsAddressable`: whether the device belongs to this process.
pub(crate) fn is_addressable(args: &DeviceIsAddressableArgs) -> Result<(), Status> {
    args.is_addressable.set(args.device.get()?.service.is_some());
    Ok(())
}

pub(crate) fn local_hardware_id(args: &DeviceLocalHardwareIdArgs) -> Result<(), Status> {
    args.local_hardware_id.set(args.device.get()?.local_hardware_id as i32);
    Ok(())
}

pub(crate) fn addressable_memories(args: &DeviceAddressableMemoriesArgs) -> Result<(), Status> {
    args.memories.set(List::of(args.device.get()?.memories()));
    Ok(())
}

pub(crate) fn default_memory(args: &DeviceDefaultMemoryArgs) -> Result<(), Status> {
    let memories = args.device.get()?.memories();
    args.memory
        .set(*memories.first().ok_or_else(|| Status::invalid_argument("the device belongs to another process"))?);
    Ok(())
}

/// `PJRT_Device_GetAttributes`: returns the attributes and their deleter. The caller owns them.
pub(crate) fn attributes(args: &DeviceGetAttributesArgs) -> Result<(), Status> {
    let device = args.device.get()?;
    let known = device.service.as_ref().map_or(&[][..], |device| &device.description().attributes);
    let text = |(name, value): &(String, String)| (name.clone(), Value::Text(value.clone()));
    let attributes: Handle<kinds::Attributes> = Handle::new(Attributes::new(known.iter().map(text).collect()));
    args.attributes.set(attributes.get()?.list());
    args.device_attributes.set(attributes);
    args.attributes_deleter.set(Deleter::of::<kinds::Attributes>());
    Ok(())
}

pub(crate) fn memory_stats(args: &DeviceMemoryStatsArgs) -> Result<(), Status> {
    let stats = args.device.get()?.local()?.memory_stats();
    let bytes = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    let set = |value: &Out<i64>, is_set: &Out<Flag>, number: Option<i64>| {
        value.set(number.unwrap_or(0));
        is_set.set(number.is_some());
    };
    args.bytes_in_use.set(bytes(stats.bytes_in_use));
    set(&args.peak_bytes_in_use, &args.peak_bytes_in_use_is_set, Some(bytes(stats.peak_bytes_in_use)));
    set(&args.num_allocs, &args.num_allocs_is_set, i64::try_from(stats.allocations).ok());
    set(&args.largest_alloc_size, &args.largest_alloc_size_is_set, None);
    set(&args.bytes_limit, &args.bytes_limit_is_set, stats.bytes_limit.map(bytes));
    set(&args.bytes_reserved, &args.bytes_reserved_is_set, None);
    set(&args.peak_bytes_reserved, &args.peak_bytes_reserved_is_set, None);
    set(&args.bytes_reservable_limit, &args.bytes_reservable_limit_is_set, None);
    set(&args.largest_free_block_bytes, &args.largest_free_block_bytes_is_set, None);
    set(&args.pool_bytes, &args.pool_bytes_is_set, Some(bytes(stats.bytes_in_use.saturating_add(stats.bytes_pooled))));
    set(&args.peak_pool_bytes, &args.peak_pool_bytes_is_set, None);
    set(&args.peak_allocated_bytes, &args.peak_allocated_bytes_is_set, None);
    Ok(())
}

/// `PJRT_Device_CreateAsyncTrackingEvent`: creates an event. The event is not traced.
pub(crate) fn create_async_tracking_event(args: &DeviceCreateAsyncTrackingEventArgs) -> Result<(), Status> {
    args.device.get()?;
    args.event.set(Handle::new(args.description.as_str()?.to_string()));
    Ok(())
}

pub(crate) fn destroy_async_tracking_event(args: &AsyncTrackingEventDestroyArgs) -> Result<(), Status> {
    args.event.destroy()
}
