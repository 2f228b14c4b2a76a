//! Buffers whose value is provided later: by another buffer, or when a dependency is ready.

use std::sync::{Mutex, PoisonError};

use xla_hlo::Error;
use xla_service::{Buffer, BufferPromise};

use super::state::{BufferState, Place};
use crate::abi::buffer::{BufferDonateWithControlDependencyArgs, BufferDonateWithControlDependencyCallbackArgs};
use crate::abi::kinds;
use crate::abi::transfer::{ClientCreateAliasBufferArgs, ClientFulfillAliasBufferArgs};
use crate::ffi::{Awaited, Field, FutureCallback, Handle, Kind, Owned};
use crate::layout;
use crate::status::{Code, Status};

impl Kind for kinds::AliasPromise {
    type Value = Mutex<Option<BufferPromise>>;
    const NAME: &'static str = "PJRT_FulfillAliasBufferCallback";
}

pub(crate) fn alias(args: &ClientCreateAliasBufferArgs) -> Result<(), Status> {
    args.client.get()?;
    let place = Place::of(args.memory, Handle::NULL)?;
    let shape = layout::shape(args.shape_element_type, &args.shape_dims, &args.shape_layout)?;
    let (buffer, promise) = place.service()?.alias_buffer(&shape)?;
    args.alias_buffer.set(BufferState::handle(place, buffer));
    args.fulfill_alias_buffer_cb.set(Handle::new(Mutex::new(Some(promise))));
    Ok(())
}

/// `PJRT_Client_FulfillAliasBuffer`: fulfils the promise and destroys it.
pub(crate) fn fulfill_alias(args: &ClientFulfillAliasBufferArgs) -> Result<(), Status> {
    let promise = args.fulfill_alias_buffer_cb.value()?.lock().unwrap_or_else(PoisonError::into_inner).take();
    let promise = promise.ok_or_else(|| Status::failed_precondition("the alias was already fulfilled"))?;
    match Code::from_number(args.status_code) {
        Code::Ok => promise.fulfil(Ok(&args.buffer.get()?.array))?,
        code => {
            let status = Status::new(code, args.error_message.as_str()?);
            // `fulfil` returns the error that it was given, which is not an error of this call.
            promise.fulfil(Err(Error::from(&status))).unwrap_or_default();
        }
    }
    args.fulfill_alias_buffer_cb.destroy()
}

/// Donated value that waits for its dependency.
pub(crate) struct Donation {
    /// Value, and the promise of the buffer that receives it.
    parts: Mutex<Option<(Buffer, BufferPromise)>>,
}

impl Kind for kinds::Donation {
    type Value = Donation;
    const NAME: &'static str = "PJRT_Buffer_DonateWithControlDependency callback data";
}

/// `PJRT_Buffer_DonateWithControlDependency`: donates the buffer. A new buffer receives the value once the caller
/// reports that the dependency is ready.
pub(crate) fn donate_with_control_dependency(args: &BufferDonateWithControlDependencyArgs) -> Result<(), Status> {
    let buffer = args.buffer.get()?;
    let array = buffer.live()?;
    let value = array.view(array.shape())?;
    let (later, promise) = buffer.place.service()?.alias_buffer(array.shape())?;
    array.delete();
    args.callback_data.set(Handle::new(Donation { parts: Mutex::new(Some((value, promise))) }));
    args.dependency_ready_callback.set(FutureCallback::of::<kinds::Donation>());
    args.out_buffer.set(BufferState::handle(buffer.place.clone(), later));
    Ok(())
}

impl Awaited for kinds::Donation {
    type Args = BufferDonateWithControlDependencyCallbackArgs;

    fn object(args: &Self::Args) -> &Owned<Self> {
        &args.callback_data
    }

    fn run(donation: &Donation, args: &Self::Args) {
        let parts = donation.parts.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((value, promise)) = parts else { return };
        let outcome = match Code::from_number(args.error_code) {
            Code::Ok => promise.fulfil(Ok(&value)),
            code => {
                let message = args.error_message.as_str().unwrap_or("the dependency failed");
                promise.fulfil(Err(Error::from(&Status::new(code, message))))
            }
        };
        // The new buffer carries the error.
        outcome.unwrap_or_default();
    }
}
