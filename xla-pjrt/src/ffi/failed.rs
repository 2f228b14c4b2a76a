//! Error objects, and the function table that each object starts with.
#![expect(unsafe_code, reason = "functions that C calls with pointers")]

use std::ptr;

use super::callback::Visitor;
use super::handle::{Handle, Kind, delete};
use super::pointer::Address;
use crate::status::{Code, Status};

/// Kind of `PJRT_Error` objects.
pub(crate) enum Failed {}

impl Kind for Failed {
    type Value = Status;
    const NAME: &'static str = "PJRT_Error";
    const TABLE: *const () = ptr::from_ref(&TABLE).cast();
}

/// `PJRT_Error_FunctionTable`: 56 bytes.
#[repr(C)]
struct ErrorTable {
    struct_size: usize,
    instance_size: usize,
    extensions: usize,
    destroy: unsafe extern "C" fn(*mut ()),
    message: unsafe extern "C" fn(Handle<Failed>, *mut *const u8, *mut usize),
    get_code: unsafe extern "C" fn(Handle<Failed>) -> i32,
    for_each_payload: unsafe extern "C" fn(Handle<Failed>, Visitor, Address),
}

const _: () = assert!(size_of::<ErrorTable>() == 56);

static TABLE: ErrorTable = ErrorTable {
    struct_size: size_of::<ErrorTable>(),
    instance_size: size_of::<*const ()>(),
    extensions: 0,
    destroy: delete::<Failed>,
    message,
    get_code,
    for_each_payload,
};

/// # Safety
///
/// `error` is an error of this crate, and `text` and `size` can be written.
unsafe extern "C" fn message(error: Handle<Failed>, text: *mut *const u8, size: *mut usize) {
    let found = error.get().map_or("", |status| &status.message);
    // SAFETY: the caller promises that both can be written.
    unsafe {
        text.write(found.as_ptr());
        size.write(found.len());
    }
}

/// # Safety
///
/// `error` is null or an error of this crate.
unsafe extern "C" fn get_code(error: Handle<Failed>) -> i32 {
    code(error) as i32
}

/// # Safety
///
/// `error` is null or an error of this crate.
unsafe extern "C" fn for_each_payload(error: Handle<Failed>, visitor: Visitor, argument: Address) {
    visit(error, visitor, argument);
}

/// Returns the code of an error, or `Ok` for null. This function cannot fail, because callers would ask for the code of
/// that failure in turn.
pub(crate) fn code(error: Handle<Failed>) -> Code {
    error.get().map_or(Code::Ok, |status| status.code)
}

/// Calls the visitor for each payload.
pub(crate) fn visit(error: Handle<Failed>, visitor: Visitor, argument: Address) {
    for (key, value) in error.get().map_or(&[][..], |status| &status.payload) {
        visitor.call(key, value, argument);
    }
}
