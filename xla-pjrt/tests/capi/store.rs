//! Key-value store of a caller in C, for clients that act as the processes of a job.
#![expect(unsafe_code, reason = "functions that the API calls")]

use std::ffi::c_void;
use std::time::Duration;

use xla_service::topology::{InMemoryStore, KeyValueStore};

use crate::table::{Args, bytes, read};

/// Code of an error: a key was not found.
const NOT_FOUND: i32 = 5;
/// Code of an error: a key exists, or was not found in time.
const FAILED_PRECONDITION: i32 = 9;

/// Adds the functions of a store to the arguments of `PJRT_Client_Create`.
pub fn put_store(args: Args, store: &'static InMemoryStore) -> Args {
    let user = std::ptr::from_ref(store).expose_provenance();
    let functions: [(usize, *const c_void); 3] =
        [(32, get as *const c_void), (48, put as *const c_void), (72, try_get as *const c_void)];
    functions
        .into_iter()
        .fold(args, |args, (offset, function)| args.put(offset, function.expose_provenance()).put(offset + 8, user))
}

/// Returns the store whose address is a field of the arguments.
fn store(args: usize, user: usize) -> &'static InMemoryStore {
    // SAFETY: `put_store` passes the address of a store that lives for ever.
    unsafe { &*std::ptr::with_exposed_provenance(read(args + user)) }
}

/// Returns the text whose address and length begin at a field.
fn text(args: usize, offset: usize) -> String {
    String::from_utf8(bytes(read(args + offset), read(args + offset + 8))).expect("a key")
}

/// Creates an error by the function whose address is stored at the address in a field.
fn error(args: usize, make_error: usize, code: i32, message: &str) -> *mut c_void {
    let function: *const c_void = std::ptr::with_exposed_provenance(read::<usize>(read(args + make_error)));
    // SAFETY: by the API's contract there is a function of this type.
    let function: unsafe extern "C" fn(i32, *const u8, usize) -> *mut c_void = unsafe { std::mem::transmute(function) };
    // SAFETY: pointer and length are those of a text that lives during the call.
    unsafe { function(code, message.as_ptr(), message.len()) }
}

/// Stores a value that is never freed, without a deleter, and its length.
fn give(args: usize, offset: usize, value: Vec<u8>) {
    let value: &'static [u8] = value.leak();
    for (place, word) in [(offset, value.as_ptr().expose_provenance()), (offset + 8, value.len()), (offset + 16, 0)] {
        // SAFETY: the fields of the result in the argument structure of the function.
        unsafe { std::ptr::with_exposed_provenance_mut::<usize>(args + place).write(word) };
    }
}

/// `PJRT_KeyValueGetCallback`.
unsafe extern "C" fn get(args: *mut c_void) -> *mut c_void {
    let args = args.expose_provenance();
    let timeout = Duration::from_millis(read::<i32>(args + 32).try_into().expect("a time-out"));
    match store(args, 48).get(&text(args, 16), timeout) {
        Ok(value) => {
            give(args, 56, value);
            std::ptr::null_mut()
        }
        Err(failure) => error(args, 40, FAILED_PRECONDITION, failure.message()),
    }
}

/// `PJRT_KeyValueTryGetCallback`.
unsafe extern "C" fn try_get(args: *mut c_void) -> *mut c_void {
    let args = args.expose_provenance();
    match store(args, 40).try_get(&text(args, 16)) {
        Ok(Some(value)) => {
            give(args, 48, value);
            std::ptr::null_mut()
        }
        Ok(None) => error(args, 32, NOT_FOUND, "no such key"),
        Err(failure) => error(args, 32, FAILED_PRECONDITION, failure.message()),
    }
}

/// `PJRT_KeyValuePutCallback`.
unsafe extern "C" fn put(args: *mut c_void) -> *mut c_void {
    let args = args.expose_provenance();
    match store(args, 56).put(&text(args, 16), &bytes(read(args + 32), read(args + 40))) {
        Ok(()) => std::ptr::null_mut(),
        Err(failure) => error(args, 48, FAILED_PRECONDITION, failure.message()),
    }
}
