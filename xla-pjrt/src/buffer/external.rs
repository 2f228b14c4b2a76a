//! Memory that is shared with the caller: external references to buffers, and buffers over the caller's memory.

use xla_service::host::StridedShape;

use super::state::{BufferState, Place};
use crate::abi::buffer::{
    BufferDecreaseExternalReferenceCountArgs, BufferIncreaseExternalReferenceCountArgs,
    BufferOpaqueDeviceMemoryDataPointerArgs, BufferUnsafePointerArgs,
};
use crate::abi::transfer::ClientCreateViewOfDeviceBufferArgs;
use crate::ffi::{Address, HostRegion};
use crate::layout;
use crate::status::Status;

pub(crate) fn add_reference(args: &BufferIncreaseExternalReferenceCountArgs) -> Result<(), Status> {
    args.buffer.get()?.add_hold()
}

pub(crate) fn remove_reference(args: &BufferDecreaseExternalReferenceCountArgs) -> Result<(), Status> {
    args.buffer.get()?.remove_hold()
}

pub(crate) fn data_pointer(args: &BufferOpaqueDeviceMemoryDataPointerArgs) -> Result<(), Status> {
    args.device_memory_ptr.set(Address::of_number(args.buffer.get()?.address()?));
    Ok(())
}

pub(crate) fn unsafe_pointer(args: &BufferUnsafePointerArgs) -> Result<(), Status> {
    args.buffer_pointer.set(args.buffer.get()?.address()?);
    Ok(())
}

/// `PJRT_Client_CreateViewOfDeviceBuffer`: creates a buffer over the caller's memory. If the device cannot read it in
/// place, the array is copied and the caller is notified at once that its memory is free.
pub(crate) fn view_of_device_buffer(args: &ClientCreateViewOfDeviceBufferArgs) -> Result<(), Status> {
    let client = args.client.get()?;
    let place = Place::of(args.memory, args.device)?;
    if !client.is_on_host {
        return Err(Status::unimplemented("views of memory of this platform's devices are not supported"));
    }
    let shape = layout::shape(args.element_type, &args.dims, &args.layout)?;
    let strides = layout::strides(&shape);
    let (dims, strides) = (shape.dims(), Some(&strides[..]));
    let array = StridedShape { element_type: shape.element_type(), dims, strides, offset: 0 };
    // The callback belongs to the caller unless the call succeeds.
    let service = place.service()?;
    let region = HostRegion::new(args.device_buffer_ptr, 0, array.extent()?.after)?;
    let (release, memory, argument) = (args.on_delete_callback, args.device_buffer_ptr, args.on_delete_callback_arg);
    let memory = region.external(move || release.call(memory, argument));
    let buffer = service.buffer_from_external(memory, &array, shape.layout())?;
    args.buffer.set(BufferState::handle(place, buffer));
    Ok(())
}
