//! Copies of buffers to other devices and memories, and buffers that share contents.

use std::sync::Arc;

use super::state::{BufferState, Place};
use crate::abi::buffer::{BufferBitcastArgs, BufferCopyToDeviceArgs, BufferCopyToMemoryArgs};
use crate::abi::kinds;
use crate::ffi::{Field, Handle};
use crate::layout;
use crate::status::Status;

pub(crate) fn to_device(args: &BufferCopyToDeviceArgs) -> Result<(), Status> {
    let place = Place::of(Handle::NULL, args.dst_device)?;
    args.dst_buffer.set(copied(args.buffer.get()?, place)?);
    Ok(())
}

pub(crate) fn to_memory(args: &BufferCopyToMemoryArgs) -> Result<(), Status> {
    let place = Place::of(args.dst_memory, Handle::NULL)?;
    args.dst_buffer.set(copied(args.buffer.get()?, place)?);
    Ok(())
}

/// Copies a buffer to `place`. The layout is preserved if the target supports it.
fn copied(buffer: &BufferState, place: Place) -> Result<Handle<kinds::Buffer>, Status> {
    let (array, target) = (buffer.live()?, place.service()?);
    let copy = if Arc::ptr_eq(&buffer.place.client, &place.client) {
        array.copy_to_device(target)?
    } else {
        target.buffer_of_shape(&array.to_literal()?, &array.real_shape()?)?
    };
    Ok(if buffer.is_token { BufferState::token(place, copy) } else { BufferState::handle(place, copy) })
}

pub(crate) fn bitcast(args: &BufferBitcastArgs) -> Result<(), Status> {
    let buffer = args.buffer.get()?;
    let shape = layout::shape(args.element_type, &args.dims, &args.device_layout)?;
    args.out_buffer.set(BufferState::handle(buffer.place.clone(), buffer.live()?.view(&shape)?));
    Ok(())
}
