//! Making buffers: of the caller's arrays, of nothing, of errors.

use xla_hlo::Error;
use xla_service::Completion;
use xla_service::host::StridedShape;

use super::state::{BufferState, Place};
use crate::abi::transfer::{
    ClientBufferFromHostBufferArgs, ClientCreateErrorBufferArgs, ClientCreateUninitializedBufferArgs,
};
use crate::border::HostRegion;
use crate::event::Event;
use crate::layout;
use crate::named::payload;
use crate::status::{Code, Status};

/// The caller lets its memory be used as long as the buffer lives, as [`layout`] of `PJRT_HostBufferSemantics` says:
/// 0 during the call, 1 until the transfer is done, 2 and 3 until the buffer is gone.
const ZERO_COPY: [i32; 2] = [2, 3];

/// Bytes up to which a copy costs less than telling the caller later that its memory is free.
const SMALL: usize = 256;

/// Memory is used in place where the caller allows it, it is worth it and the device can read it so; else the array is
/// copied before this returns.
pub(crate) fn from_host_buffer(args: &ClientBufferFromHostBufferArgs) -> Result<(), Status> {
    args.client.get()?;
    let place = Place::of(args.memory, args.device)?;
    let shape = layout::shape(args.element_type, &args.dims, &args.device_layout)?;
    let strides = Some(args.byte_strides.get()?).filter(|strides| strides.len() == shape.rank());
    if strides.is_none() && args.byte_strides.len() > 0 {
        return Err(Status::invalid_argument(format!("{} byte strides for {shape}", args.byte_strides.len())));
    }
    let array = StridedShape { element_type: shape.element_type(), dims: shape.dims(), strides, offset: 0 };
    let extent = array.extent()?;
    let array = StridedShape { offset: extent.before, ..array };
    let region = HostRegion::new(args.data, extent.before, extent.after)?;
    let service = place.service()?;
    let may_stay = ZERO_COPY.contains(&args.host_buffer_semantics) && region.bytes().len() > SMALL;
    let (buffer, done) = if may_stay {
        let (done, completer) = Completion::pending();
        let memory = region.outside(move || completer.set(Ok(())));
        (service.buffer_from_outside(memory, &array, shape.layout())?, Event::of(done))
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

/// A buffer that is an error, and makes the results of programs that take it errors.
pub(crate) fn with_error(args: &ClientCreateErrorBufferArgs) -> Result<(), Status> {
    args.client.get()?;
    let place = Place::of(args.memory, crate::border::Field::NULL)?;
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
