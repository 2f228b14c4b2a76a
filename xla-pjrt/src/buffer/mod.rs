//! Buffers: properties, placement, references, destruction.

mod copy;
mod create;
mod external;
mod host;
mod promise;
mod raw;
mod state;

pub(crate) use copy::{bitcast, to_device, to_memory};
pub(crate) use create::{from_host_buffer, uninitialized, with_error};
pub(crate) use external::{add_reference, data_pointer, remove_reference, unsafe_pointer, view_of_device_buffer};
pub(crate) use host::to_host_buffer;
pub(crate) use promise::{alias, donate_with_control_dependency, fulfill_alias};
pub(crate) use raw::{copy_raw_to_host, copy_raw_to_host_future};
pub(crate) use state::{BufferState, Place};

use crate::abi::buffer::{
    BufferDeleteArgs, BufferDestroyArgs, BufferDeviceArgs, BufferDimensionsArgs, BufferDynamicDimensionIndicesArgs,
    BufferElementTypeArgs, BufferGetMemoryLayoutArgs, BufferIsDeletedArgs, BufferIsOnCpuArgs, BufferMemoryArgs,
    BufferOnDeviceSizeInBytesArgs, BufferReadyEventArgs, BufferUnpaddedDimensionsArgs,
};
use crate::element_type::{TOKEN, number};
use crate::ffi::List;
use crate::layout;
use crate::status::Status;

pub(crate) fn destroy(args: &BufferDestroyArgs) -> Result<(), Status> {
    args.buffer.destroy()
}

pub(crate) fn element_type(args: &BufferElementTypeArgs) -> Result<(), Status> {
    let buffer = args.buffer.get()?;
    args.element_type.set(if buffer.is_token { TOKEN } else { number(buffer.array.shape().element_type()) });
    Ok(())
}

pub(crate) fn dimensions(args: &BufferDimensionsArgs) -> Result<(), Status> {
    args.dims.set(List::of(&args.buffer.get()?.dims));
    Ok(())
}

/// `PJRT_Buffer_UnpaddedDimensions`: returns the actual dimensions. Waits for the array if they are dynamic.
pub(crate) fn unpadded_dimensions(args: &BufferUnpaddedDimensionsArgs) -> Result<(), Status> {
    args.unpadded_dims.set(List::of(args.buffer.get()?.unpadded_dims()?));
    Ok(())
}

pub(crate) fn dynamic_dimension_indices(args: &BufferDynamicDimensionIndicesArgs) -> Result<(), Status> {
    args.dynamic_dim_indices.set(List::of(args.buffer.get()?.dynamic_dims()));
    Ok(())
}

pub(crate) fn memory_layout(args: &BufferGetMemoryLayoutArgs) -> Result<(), Status> {
    args.layout.set(layout::lend(args.buffer.get()?.minor_to_major()));
    Ok(())
}

pub(crate) fn on_device_size(args: &BufferOnDeviceSizeInBytesArgs) -> Result<(), Status> {
    args.on_device_size_in_bytes.set(args.buffer.get()?.array.byte_size()?);
    Ok(())
}

pub(crate) fn delete(args: &BufferDeleteArgs) -> Result<(), Status> {
    args.buffer.get()?.array.delete();
    Ok(())
}

pub(crate) fn is_deleted(args: &BufferIsDeletedArgs) -> Result<(), Status> {
    args.is_deleted.set(args.buffer.get()?.array.is_deleted());
    Ok(())
}

pub(crate) fn is_on_cpu(args: &BufferIsOnCpuArgs) -> Result<(), Status> {
    args.is_on_cpu.set(args.buffer.get()?.place.client.is_on_host);
    Ok(())
}

pub(crate) fn device(args: &BufferDeviceArgs) -> Result<(), Status> {
    let place = &args.buffer.get()?.place;
    args.device.set(place.client.device_handles[place.device]);
    Ok(())
}

pub(crate) fn memory(args: &BufferMemoryArgs) -> Result<(), Status> {
    let place = &args.buffer.get()?.place;
    args.memory.set(place.client.memory(place.device, place.memory));
    Ok(())
}

pub(crate) fn ready_event(args: &BufferReadyEventArgs) -> Result<(), Status> {
    args.event.set(args.buffer.get()?.ready().handle());
    Ok(())
}
