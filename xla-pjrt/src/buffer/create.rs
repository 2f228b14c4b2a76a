//! Creation of buffers: from host arrays, uninitialized, or with an error.

use xla_hlo::Error;
use xla_service::Completion;
use xla_service::host::StridedShape;

use super::state::{BufferState, Place};
use crate::abi::transfer::{
    ClientBufferFromHostBufferArgs, ClientCreateErrorBufferArgs, ClientCreateUninitializedBufferArgs,
};
use crate::event::Event;
use crate::ffi::HostRegion;
use crate::layout;
use crate::named::payload;
use crate::status::{Code, Status};

/// Values of `PJRT_HostBufferSemantics` that permit use of the caller's memory as long as the buffer exists: 2
/// (immutable zero-copy) and 3 (mutable zero-copy). The others are 0 (only during the call) and 1 (until the transfer
/// completes).
const ZERO_COPY: [i32; 2] = [2, 3];

/// Size in bytes up to which a copy is cheaper than a later notification of the caller that its memory is free.
const SMALL: usize = 256;

/// `PJRT_Client_BufferFromHostBuffer`: uses the caller's memory in place if the caller permits it, the array is large
/// enough and the device can read it. Otherwise, the array is copied before the call returns.
pub(crate) fn from_host_buffer(args: &ClientBufferFromHostBufferArgs) -> Result<(), Status> {
    args.client.get()?;
    let place = Place::of(args.memory, args.device)?;
    let shape = layout::shape(args.element_type, &args.dims, &args.device_layout)?;
    let strides = Some(args.byte_strides.get()?).filter(|strides| strides.len() == shape.rank());
    if strides.is_none() && args.byte_strides.len() > 0 {
        return Err(Status::invalid_argument(format!(
            "the number of byte strides ({}) differs from the rank of {shape}",
            args.byte_strides.len()
        )));
    }
    let array = StridedShape { element_type: shape.element_type(), dims: shape.dims(), strides, offset: 0 };
    let extent = array.extent()?;
    let array = StridedShape { offset: extent.before, ..array };
    let region = HostRegion::new(args.data, extent.before, extent.after)?;
    let service = place.service()?;
    let may_stay = ZERO_COPY.contains(&args.host_buffer_semantics) && region.bytes().len() > SMALL;
    let (buffer, done) = if may_stay {
        let (done, completer) = Completion::pending();
        let memory = region.external(move || completer.set(Ok(())));
        (service.buffer_from_external(memory, &array, shape.layout())?, Event::of(done))
    } else {
        (service.buffer_from_host(region.bytes(), &array, shape.layout())?, Event::done())
    };
    args.done_with_host_buffer.set(done.handle());
    args.buffer.set(BufferState::handle(place, buffer));
    Ok(())
}

pub(crate) fn uninitialized(args: &ClientCreateUninitializedBufferArgs) -> Result<(), Status> {
    args.client.get()?;
    let place = Place::of(args.memory, args.device)?;
    let shape = layout::shape(args.shape_element_type, &args.shape_dims, &args.shape_layout)?;
    let buffer = place.service()?.uninitialized_buffer(&shape)?;
    args.buffer.set(BufferState::handle(place, buffer));
    Ok(())
}

/// `PJRT_Client_CreateErrorBuffer`: creates a buffer that holds an error. Programs that take it as an argument return
/// the error as well.
pub(crate) fn with_error(args: &ClientCreateErrorBufferArgs) -> Result<(), Status> {
    args.client.get()?;
    let place = Place::of(args.memory, crate::ffi::Field::NULL)?;
    let shape = layout::shape(args.shape_element_type, &args.shape_dims, &args.shape_layout)?;
    let mut status = Status::new(Code::from_number(args.error_code), args.error_message.as_str()?);
    if status.code == Code::Ok {
        return Err(Status::invalid_argument("the error of a buffer must not be OK"));
    }
    status.payload = payload(&args.payload)?;
    let buffer = place.service()?.errored_buffer(&shape, Error::from(&status))?;
    args.buffer.set(BufferState::handle(place, buffer));
    Ok(())
}
