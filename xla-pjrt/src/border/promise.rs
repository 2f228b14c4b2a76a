//! Functions around events: those of the caller that hear of an end, those of this crate that the caller calls at one.
#![expect(unsafe_code, reason = "calls functions of the caller, and is called")]

use std::ffi::c_void;

use super::entry::guarded;
use super::failed::Failed;
use super::field::Field;
use super::handle::{Handle, Kind, Owned, delete};
use super::image::{Image, with_image};
use super::pointer::Address;
use crate::status::Status;

/// Called when an event is ready, with an error that it then owns, or null.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct OnReady(Option<unsafe extern "C" fn(Handle<Failed>, Address)>);

impl Field for OnReady {
    const NULL: OnReady = OnReady(None);
}

impl OnReady {
    /// Calls it.
    pub fn call(self, outcome: Result<(), Status>, argument: Address) {
        let error = outcome.err().map_or(Handle::NULL, Handle::new);
        if let Some(function) = self.0 {
            // SAFETY: the caller promises that it may be called once with this argument, from any thread.
            unsafe { function(error, argument) };
        }
    }

    /// Whether there is no function.
    pub fn is_null(self) -> bool {
        self.0.is_none()
    }
}

/// A function that destroys an object of this crate, for the caller.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Deleter(Option<unsafe extern "C" fn(*mut ())>);

impl Field for Deleter {
    const NULL: Deleter = Deleter(None);
}

impl Deleter {
    /// The function for objects of a kind.
    pub fn of<K: Kind>() -> Deleter {
        Deleter(Some(delete::<K>))
    }
}

/// A function of this crate that the caller calls once with one structure.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct FutureCallback(Option<unsafe extern "C" fn(*mut c_void)>);

impl Field for FutureCallback {
    const NULL: FutureCallback = FutureCallback(None);
}

/// A call that the caller will make once: the object that waits for it, and what it does then.
pub(crate) trait Awaited: Kind {
    /// The structure that the caller hands in.
    type Args: Image;

    /// The field by which the structure names the object, which ends with the call.
    fn object(args: &Self::Args) -> &Owned<Self>
    where
        Self: Sized;

    /// Does the work.
    fn run(value: &Self::Value, args: &Self::Args);
}

impl FutureCallback {
    /// The function that calls objects of a kind.
    pub fn of<K: Awaited>() -> FutureCallback {
        FutureCallback(Some(awaited::<K>))
    }
}

/// # Safety
///
/// As the C API says: `args` points to the function's structure of arguments.
unsafe extern "C" fn awaited<K: Awaited>(args: *mut c_void) {
    let run = |args: &K::Args| {
        let object = K::object(args);
        K::run(object.value()?, args);
        object.destroy()
    };
    // SAFETY: handed on.
    let work = || unsafe { with_image::<K::Args, ()>(args.cast(), run) };
    // Nobody can be told of an error.
    drop(guarded(K::NAME, work));
}
