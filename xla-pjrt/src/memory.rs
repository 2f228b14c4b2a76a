//! Memories of devices.

use xla_hlo::MEMORY_KINDS;

use crate::abi::device::{
    MemoryAddressableByDevicesArgs, MemoryDebugStringArgs, MemoryIdArgs, MemoryKindArgs, MemoryKindIdArgs,
    MemoryToStringArgs,
};
use crate::ffi::{List, Text};
use crate::status::Status;

pub(crate) fn id(args: &MemoryIdArgs) -> Result<(), Status> {
    args.id.set(args.memory.get()?.id);
    Ok(())
}

pub(crate) fn kind(args: &MemoryKindArgs) -> Result<(), Status> {
    args.kind.set(Text::text(MEMORY_KINDS[args.memory.get()?.kind].0));
    Ok(())
}

pub(crate) fn kind_id(args: &MemoryKindIdArgs) -> Result<(), Status> {
    args.kind_id.set(args.memory.get()?.kind as i32);
    Ok(())
}

pub(crate) fn debug_string(args: &MemoryDebugStringArgs) -> Result<(), Status> {
    args.debug_string.set(Text::text(&args.memory.get()?.debug_string));
    Ok(())
}

pub(crate) fn to_string(args: &MemoryToStringArgs) -> Result<(), Status> {
    args.to_string.set(Text::text(&args.memory.get()?.to_string));
    Ok(())
}

pub(crate) fn addressable_by_devices(args: &MemoryAddressableByDevicesArgs) -> Result<(), Status> {
    args.devices.set(List::of(&args.memory.get()?.devices));
    Ok(())
}
