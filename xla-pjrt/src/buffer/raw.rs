//! Raw copies of bytes in the device's layout.

use xla_hlo::Error;
use xla_service::{Buffer, Completion};

use crate::abi::buffer::{
    BufferCopyRawToHostArgs, BufferCopyRawToHostFutureArgs, BufferCopyRawToHostFutureCallbackArgs,
};
use crate::abi::kinds;
use crate::event::Event;
use crate::ffi::{Address, Awaited, FutureCallback, Handle, Kind, Owned};
use crate::status::{Code, Status};

pub(crate) fn copy_raw_to_host(args: &BufferCopyRawToHostArgs) -> Result<(), Status> {
    let array = args.buffer.get()?.live()?;
    let range = Range::new(array, args.offset, args.transfer_size)?;
    args.event.set(Event::of(range.copy(args.dst)).handle());
    Ok(())
}

/// `PJRT_Buffer_CopyRawToHostFuture`: starts a copy whose destination the caller provides later through the returned
/// callback.
pub(crate) fn copy_raw_to_host_future(args: &BufferCopyRawToHostFutureArgs) -> Result<(), Status> {
    let array = args.buffer.get()?.live()?;
    let range = Range::new(array, args.offset, args.transfer_size)?;
    let event = Event::pending();
    args.callback_data.set(Handle::new(RawCopy { range, event: event.clone() }));
    args.future_ready_callback.set(FutureCallback::of::<kinds::RawCopy>());
    args.event.set(event.handle());
    Ok(())
}

/// Range of an array's bytes.
struct Range {
    /// Shared reference to the value, which may outlive the buffer.
    array: Buffer,
    offset: usize,
    size: usize,
}

impl Range {
    fn new(array: &Buffer, offset: i64, size: i64) -> Result<Range, Status> {
        let bytes = array.byte_size()?;
        let inside = usize::try_from(offset).ok().zip(usize::try_from(size).ok());
        let inside = inside.filter(|(offset, size)| offset.checked_add(*size).is_some_and(|end| end <= bytes));
        let error = || {
            Status::invalid_argument(format!(
                "{size} bytes at offset {offset} are not inside the {bytes} bytes of the buffer"
            ))
        };
        let (offset, size) = inside.ok_or_else(error)?;
        Ok(Range { array: array.view(array.shape()).unwrap_or_else(|_| array.clone()), offset, size })
    }

    /// Copies the bytes once the array is ready.
    fn copy(&self, target: Address) -> Completion {
        let (offset, size) = (self.offset, self.size);
        self.array.read_when_ready(move |array| {
            let array = array?;
            target.fill(size, |bytes| array.copy_raw_to_host(offset, bytes))
        })
    }
}

/// Raw copy that waits for its destination.
pub(crate) struct RawCopy {
    range: Range,
    event: Event,
}

impl Kind for kinds::RawCopy {
    type Value = RawCopy;
    const NAME: &'static str = "PJRT_Buffer_CopyRawToHostFuture callback data";
}

impl Awaited for kinds::RawCopy {
    type Args = BufferCopyRawToHostFutureCallbackArgs;

    fn object(args: &Self::Args) -> &Owned<Self> {
        &args.callback_data
    }

    fn run(copy: &RawCopy, args: &Self::Args) {
        let event = copy.event.clone();
        let done = match Code::from_number(args.error_code) {
            Code::Ok => copy.range.copy(args.dst),
            code => {
                let message = args.error_message.as_str().unwrap_or("the target of a copy failed");
                Completion::failed(Error::from(&Status::new(code, message)))
            }
        };
        // Only this callback sets the event, so setting it succeeds.
        done.on_ready(move |outcome| drop(event.set(outcome.map_err(Status::from))));
    }
}
