//! Memories of described devices.

use xla_hlo::MEMORY_KINDS;

use crate::abi::extensions::{DeviceDescriptionMemoryDescriptionsArgs, MemoryDescriptionKindArgs};
use crate::ffi::{List, Text};
use crate::status::Status;

pub(super) fn of_device(args: &DeviceDescriptionMemoryDescriptionsArgs) -> Result<(), Status> {
    args.memory_descriptions.set(List::of(&args.device_description.get()?.memories));
    args.default_memory_index.set(0_usize);
    Ok(())
}

pub(super) fn kind(args: &MemoryDescriptionKindArgs) -> Result<(), Status> {
    let kind = *args.memory_description.get()?;
    args.kind.set(Text::text(MEMORY_KINDS[kind].0));
    args.kind_id.set(kind as i32);
    Ok(())
}
