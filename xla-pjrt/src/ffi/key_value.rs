//! Key-value store of the caller, which the processes of a job share.
#![expect(unsafe_code, reason = "calls functions of the caller")]

use std::ffi::c_void;
use std::ptr;
use std::time::Duration;

use xla_hlo::{Error, Result};
use xla_service::topology::KeyValueStore;

use super::failed::Failed;
use super::field::Field;
use super::handle::{Handle, Owned};
use super::list::{List, Many, Text};
use super::pointer::Address;
use crate::status::{Code, Status};

/// Function of the caller that accesses its store. It takes a pointer to its arguments, and returns null or an error
/// that [`make_error`] created.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreFunction(Option<unsafe extern "C" fn(*mut c_void) -> Owned<Failed>>);

impl Field for StoreFunction {
    const NULL: StoreFunction = StoreFunction(None);
}

/// `PJRT_CallbackError`: creates an error from code, message and its length.
type MakeError = unsafe extern "C" fn(i32, *const u8, usize) -> Handle<Failed>;

/// Deleter of a value.
type DeleteValue = Option<unsafe extern "C" fn(*mut u8)>;

/// `PJRT_KeyValueGetCallback_Args`.
#[repr(C)]
struct GetArgs {
    struct_size: usize,
    extensions: usize,
    key: Text,
    timeout_in_ms: i32,
    make_error: *const MakeError,
    user_arg: Address,
    value: *mut u8,
    value_size: usize,
    deleter: DeleteValue,
}

/// `PJRT_KeyValueTryGetCallback_Args`.
#[repr(C)]
struct TryGetArgs {
    struct_size: usize,
    extensions: usize,
    key: Text,
    make_error: *const MakeError,
    user_arg: Address,
    value: *mut u8,
    value_size: usize,
    deleter: DeleteValue,
}

/// `PJRT_KeyValuePutCallback_Args`.
#[repr(C)]
struct PutArgs {
    struct_size: usize,
    extensions: usize,
    key: Text,
    value: Text,
    make_error: *const MakeError,
    user_arg: Address,
}

const _: () = {
    assert!(size_of::<GetArgs>() == 80 && size_of::<TryGetArgs>() == 72 && size_of::<PutArgs>() == 64);
};

/// Function that the caller calls to create an error. The caller receives a pointer to it.
static MAKE_ERROR: MakeError = make_error;

/// # Safety
///
/// As the C API requires: `message` points to `size` bytes.
unsafe extern "C" fn make_error(code: i32, message: *const u8, size: usize) -> Handle<Failed> {
    let text = List::starting(Many::starting(message), size);
    let message = text.get().map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned());
    Handle::new(Status::new(Code::from_number(code), message))
}

/// Key-value store that the caller of `PJRT_Client_Create` provides. Its functions may be called from any thread while
/// the client exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallerStore {
    pub get: (StoreFunction, Address),
    pub try_get: (StoreFunction, Address),
    pub put: (StoreFunction, Address),
}

impl CallerStore {
    /// Returns an error if the caller has not passed all functions.
    pub fn checked(self) -> std::result::Result<CallerStore, Status> {
        match [self.get.0, self.try_get.0, self.put.0].iter().all(|function| function.0.is_some()) {
            true => Ok(self),
            false => Err(Status::invalid_argument(
                "a client of several processes needs a key-value store: kv_get_callback, kv_try_get_callback and \
                 kv_put_callback; in JAX, call jax.distributed.initialize first",
            )),
        }
    }
}

/// Calls a function of the store with its arguments.
///
/// # Safety
///
/// `Args` is the argument structure of the function.
unsafe fn call<Args>(function: StoreFunction, args: &mut Args) -> std::result::Result<(), Status> {
    let function = function.0.ok_or_else(|| Status::internal("the key-value store lacks a function"))?;
    // SAFETY: the caller of the C API promises that the function may be called from any thread while the client exists.
    // The arguments are of its type, as the caller of this function guarantees, and live during the call.
    let error = unsafe { function(ptr::from_mut(args).cast()) };
    let outcome = match error.is_null() {
        true => Ok(()),
        false => Err(error.value()?.clone()),
    };
    error.destroy()?;
    outcome
}

/// Copies a value of the caller and deletes the original.
fn take(value: *mut u8, size: usize, deleter: DeleteValue) -> Result<Vec<u8>> {
    let copy = Address(value).bytes(size).map(<[u8]>::to_vec);
    if let Some(delete) = deleter.filter(|_| !value.is_null()) {
        // SAFETY: the deleter that the caller passed with the value, called once; the value is not used afterwards.
        unsafe { delete(value) };
    }
    copy.map_err(|status| Error::from(&status))
}

impl KeyValueStore for CallerStore {
    fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        let mut args = GetArgs {
            struct_size: size_of::<GetArgs>(),
            extensions: 0,
            key: Text::text(key),
            timeout_in_ms: i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX),
            make_error: &raw const MAKE_ERROR,
            user_arg: self.get.1,
            value: ptr::null_mut(),
            value_size: 0,
            deleter: None,
        };
        // SAFETY: the argument structure of this function.
        unsafe { call(self.get.0, &mut args) }.map_err(|status| Error::from(&status))?;
        take(args.value, args.value_size, args.deleter)
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let mut args = TryGetArgs {
            struct_size: size_of::<TryGetArgs>(),
            extensions: 0,
            key: Text::text(key),
            make_error: &raw const MAKE_ERROR,
            user_arg: self.try_get.1,
            value: ptr::null_mut(),
            value_size: 0,
            deleter: None,
        };
        // SAFETY: the argument structure of this function.
        match unsafe { call(self.try_get.0, &mut args) } {
            Ok(()) => take(args.value, args.value_size, args.deleter).map(Some),
            Err(status) if status.code == Code::NotFound => Ok(None),
            Err(status) => Err(Error::from(&status)),
        }
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        let mut args = PutArgs {
            struct_size: size_of::<PutArgs>(),
            extensions: 0,
            key: Text::text(key),
            value: List::of(value),
            make_error: &raw const MAKE_ERROR,
            user_arg: self.put.1,
        };
        // SAFETY: the argument structure of this function.
        unsafe { call(self.put.0, &mut args) }.map_err(|status| Error::from(&status))
    }
}
