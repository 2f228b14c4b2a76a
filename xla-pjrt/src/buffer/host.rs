//! Copies of buffers to the caller's memory.

use xla_hlo::{Error, Layout};
use xla_service::host::HostOrder;

use crate::abi::buffer::BufferToHostBufferArgs;
use crate::event::Event;
use crate::layout;
use crate::status::Status;

/// `PJRT_Buffer_ToHostBuffer`: copies the array once it is ready, in the layout that the caller requests, or by default
/// in the layout of the buffer. Without a destination, returns the required size in bytes.
///
/// For an array with dynamic dimensions, that is the size at the bounds. The copy is dense at the actual sizes and
/// followed by zeros up to the bound, as far as there is room.
pub(crate) fn to_host_buffer(args: &BufferToHostBufferArgs) -> Result<(), Status> {
    let buffer = args.src.get()?;
    if buffer.is_token {
        return Err(Status::invalid_argument("a token has no data for the host"));
    }
    // The size of a deleted array is still available.
    let array = if args.dst.is_null() { &buffer.array } else { buffer.live()? };
    let asked = match args.host_layout.is_null() {
        true => array.shape().layout().cloned(),
        false => layout::read(&args.host_layout, array.shape())?,
    };
    let size = order(asked.as_ref()).byte_size(array.shape())?;
    if args.dst.is_null() {
        args.dst_size.set(size);
        return Ok(());
    }
    let (target, room) = (args.dst, args.dst_size.get());
    if array.is_dynamic() {
        let done = array.read_when_ready(move |array| {
            let array = array?;
            let shape = array.real_shape()?;
            let real = order(asked.as_ref()).byte_size(&shape)?;
            if room < real {
                return Err(Error::invalid_argument(format!("{real} bytes of {shape} do not fit into {room} bytes")));
            }
            target.fill(real.max(room.min(size)), |bytes| {
                let (elements, behind) = bytes.split_at_mut(real);
                behind.fill(0);
                array.copy_to_host(order(asked.as_ref()), elements)
            })
        });
        args.event.set(Event::of(done).handle());
        return Ok(());
    }
    if room < size {
        return Err(Status::invalid_argument(format!(
            "{size} bytes of {} do not fit into {room} bytes",
            array.shape()
        )));
    }
    let done = array.read_when_ready(move |array| {
        let array = array?;
        target.fill(size, |bytes| array.copy_to_host(order(asked.as_ref()), bytes))
    });
    args.event.set(Event::of(done).handle());
    Ok(())
}

fn order(layout: Option<&Layout>) -> HostOrder<'_> {
    layout.map_or(HostOrder::RowMajor, |layout| HostOrder::MinorToMajor(&layout.minor_to_major))
}
