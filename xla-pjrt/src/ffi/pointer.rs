//! Pointers to a structure, untyped pointers, and the value of a named value.
#![expect(unsafe_code, reason = "reads the caller's memory")]

use std::{ptr, slice};

use xla_ffi::FfiHandler;
use xla_hlo::Error;

use super::field::Field;
use super::image::{Image, read_image, with_image};
use super::list::{List, Many, Text};
use crate::status::Status;

/// Pointer to a structure of the caller, or null.
#[repr(transparent)]
pub(crate) struct Pointer<T>(*mut T);

impl<T> Clone for Pointer<T> {
    fn clone(&self) -> Pointer<T> {
        *self
    }
}

impl<T> Copy for Pointer<T> {}

impl<T> Field for Pointer<T> {
    const NULL: Pointer<T> = Pointer(ptr::null_mut());
}

impl<T> Pointer<T> {
    /// Whether the pointer is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl<T: Image> Pointer<T> {
    /// Returns a copy of the structure, with zeros beyond its `struct_size`; `None` for null.
    pub fn read(&self) -> Result<Option<T>, Status> {
        if self.0.is_null() {
            return Ok(None);
        }
        // SAFETY: null was handled above, and the caller promises that the bytes that `struct_size` states can be read
        // during the call.
        unsafe { read_image(self.0) }.map(|(image, _)| Some(image))
    }

    /// Returns a copy of the structure; an error for null.
    pub fn expect(&self) -> Result<T, Status> {
        self.read()?.ok_or_else(|| Status::invalid_argument(format!("a {} must not be null", T::NAME)))
    }

    /// Runs `work` on a copy of the structure, and copies it back.
    pub fn update<R>(&self, work: impl FnOnce(&T) -> Result<R, Status>) -> Result<R, Status> {
        // SAFETY: the pointer is null, or the caller promises that the bytes that `struct_size` states can be read and
        // written during the call.
        unsafe { with_image(self.0, work) }
    }
}

/// Address in the caller's memory. Size and meaning of the data are stored elsewhere.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address(pub(super) *mut u8);

impl Field for Address {
    const NULL: Address = Address(ptr::null_mut());
}

// SAFETY: only an address. Reads and writes through it are justified where they happen.
unsafe impl Send for Address {}
// SAFETY: only an address, as for `Send`.
unsafe impl Sync for Address {}

impl Address {
    /// Whether the address is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns the address as a number.
    pub fn number(self) -> usize {
        self.0.addr()
    }

    /// Creates an address from the number that a device reports for its memory.
    pub fn of_number(number: usize) -> Address {
        Address(ptr::with_exposed_provenance_mut(number))
    }

    /// Returns the first word of a structure of the caller; 0 for null.
    pub fn first_word(self) -> usize {
        // SAFETY: null, or a structure of the caller that begins with a pointer and lives during the call.
        unsafe { self.0.cast::<usize>().as_ref() }.copied().unwrap_or(0)
    }

    /// Converts the address of a function to a custom call handler.
    pub fn handler(self) -> xla_hlo::Result<FfiHandler> {
        // SAFETY: the caller promises a function of this type that stays valid for the lifetime of the process.
        unsafe { FfiHandler::from_address(self.0.expose_provenance()) }
    }

    /// Returns `len` bytes, which are valid during the call.
    pub fn bytes(&self, len: usize) -> Result<&[u8], Status> {
        if len == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() || isize::try_from(len).is_err() {
            return Err(Status::invalid_argument(format!("{len} bytes at {:p} cannot be read", self.0)));
        }
        // SAFETY: not null, of a possible size, and the caller promises the bytes during the call.
        Ok(unsafe { slice::from_raw_parts(self.0, len) })
    }

    /// Copies bytes to the address, where the caller has promised enough room.
    pub fn write(self, bytes: &[u8]) -> Result<(), Status> {
        Ok(self.fill(bytes.len(), |target| {
            target.copy_from_slice(bytes);
            Ok(())
        })?)
    }

    /// Runs `work` on `len` bytes at the address. The caller has promised them until it is notified of the completion.
    pub fn fill<R>(self, len: usize, work: impl FnOnce(&mut [u8]) -> xla_hlo::Result<R>) -> xla_hlo::Result<R> {
        if len == 0 {
            return work(&mut []);
        }
        if self.0.is_null() || isize::try_from(len).is_err() {
            return Err(Error::invalid_argument(format!("{len} bytes at {:p} cannot be written", self.0)));
        }
        // SAFETY: not null, of a possible size, and the caller promises that no other code uses the memory until it is
        // notified that the copy is done.
        work(unsafe { slice::from_raw_parts_mut(self.0, len) })
    }
}

/// Content of a named value: a number, a flag, or a pointer to a list or string.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Word {
    start: *const (),
    integer: i64,
    real: f32,
    flag: u8,
}

impl Field for Word {
    const NULL: Word = Word { start: ptr::null() };
}

// SAFETY: a number or an address, as for `Many`.
unsafe impl Send for Word {}
// SAFETY: a number or an address, as for `Many`.
unsafe impl Sync for Word {}

impl From<i64> for Word {
    fn from(integer: i64) -> Word {
        Word { integer }
    }
}

impl From<f32> for Word {
    fn from(real: f32) -> Word {
        // Sets all eight bytes; the upper four are zero.
        Word { integer: i64::from(real.to_bits()) }
    }
}

impl From<bool> for Word {
    fn from(flag: bool) -> Word {
        Word { integer: flag.into() }
    }
}

impl Word {
    /// Lends an array to the caller. Its owner determines for how long.
    pub fn array<T>(array: &[T]) -> Word {
        Word { start: array.as_ptr().cast() }
    }

    /// Returns the value as an integer.
    pub fn integer(self) -> i64 {
        // SAFETY: every constructor and every caller sets all eight bytes, and any bytes are a valid integer.
        unsafe { self.integer }
    }

    /// Returns the value as a float.
    pub fn real(self) -> f32 {
        // SAFETY: any bytes are a valid float.
        unsafe { self.real }
    }

    /// Returns the value as a flag.
    pub fn flag(self) -> bool {
        // SAFETY: any byte is a valid `u8`.
        unsafe { self.flag != 0 }
    }

    /// Returns the value as a string of this length.
    pub fn text(self, len: usize) -> Text {
        List::starting(self.many(), len)
    }

    /// Returns the value as a list of this length.
    pub fn integers(self, len: usize) -> List<i64> {
        List::starting(self.many(), len)
    }

    fn many<T>(self) -> Many<T> {
        // SAFETY: any bytes are a valid address; reads through it are justified where they happen.
        Many::starting(unsafe { self.start }.cast())
    }
}
