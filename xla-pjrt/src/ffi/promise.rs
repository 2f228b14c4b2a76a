//! Callbacks for events: functions of the caller that are notified of a completion, and functions of this crate with
//! which the caller reports one.
#![expect(unsafe_code, reason = "calls functions of the caller, and is called")]

use std::ffi::c_void;

use super::entry::guarded;
use super::failed::Failed;
use super::field::Field;
use super::handle::{Handle, Kind, Owned, delete};
use super::image::{Image, with_image};
use super::pointer::Address;
use crate::status::Status;

/// Callback for a completed event. It takes ownership of the error, which is null on success.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct OnReady(Option<unsafe extern "C" fn(Handle<Failed>, Address)>);

impl Field for OnReady {
    const NULL: OnReady = OnReady(None);
}

impl OnReady {
    /// Calls the function.
    pub fn call(self, outcome: Result<(), Status>, argument: Address) {
        let error = outcome.err().map_or(Handle::NULL, Handle::new);
        if let Some(function) = self.0 {
            // SAFETY: the caller promises that the function may be called once with this argument, from any thread.
            unsafe { function(error, argument) };
        }
    }

    /// Whether there is no function.
    pub fn is_null(self) -> bool {
        self.0.is_none()
    }
}

/// Function with which the caller destroys an object of this crate.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Deleter(Option<unsafe extern "C" fn(*mut ())>);

impl Field for Deleter {
    const NULL: Deleter = Deleter(None);
}

impl Deleter {
    /// Returns the deleter for objects of a kind.
    pub fn of<K: Kind>() -> Deleter {
        Deleter(Some(delete::<K>))
    }
}

/// Function of this crate that the caller calls once with an argument structure.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct FutureCallback(Option<unsafe extern "C" fn(*mut c_void)>);

impl Field for FutureCallback {
    const NULL: FutureCallback = FutureCallback(None);
}

/// Object that waits for one call by the caller.
pub(crate) trait Awaited: Kind {
    /// Argument structure of the call.
    type Args: Image;

    /// Returns the field that holds the object, which is destroyed by the call.
    fn object(args: &Self::Args) -> &Owned<Self>
    where
        Self: Sized;

    /// Handles the call.
    fn run(value: &Self::Value, args: &Self::Args);
}

impl FutureCallback {
    /// Returns the function that the caller calls for objects of a kind.
    pub fn of<K: Awaited>() -> FutureCallback {
        FutureCallback(Some(awaited::<K>))
    }
}

/// # Safety
///
/// As the C API requires: `args` points to the argument structure of the function.
unsafe extern "C" fn awaited<K: Awaited>(args: *mut c_void) {
    let run = |args: &K::Args| {
        let object = K::object(args);
        K::run(object.value()?, args);
        object.destroy()
    };
    // SAFETY: the caller of this function guarantees it.
    let work = || unsafe { with_image::<K::Args, ()>(args.cast(), run) };
    // This function cannot report an error.
    drop(guarded(K::NAME, work));
}
