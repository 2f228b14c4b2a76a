//! Pointers to one structure, to anything, and the value of a named value.
#![expect(unsafe_code, reason = "reads the caller's memory")]

use std::{ptr, slice};

use xla_ffi::FfiHandler;
use xla_hlo::Error;

use super::field::Field;
use super::image::{Image, read_image, with_image};
use super::list::{List, Many, Text};
use crate::status::Status;

/// A pointer to a structure of the caller, or null.
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
    /// Whether there is no structure.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl<T: Image> Pointer<T> {
    /// A copy of the structure; fields beyond its `struct_size` are zero. `None` for null.
    pub fn read(&self) -> Result<Option<T>, Status> {
        if self.0.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller promises during the call what `struct_size` says.
        unsafe { read_image(self.0) }.map(|(image, _)| Some(image))
    }

    /// A copy of the structure, which must be there.
    pub fn expect(&self) -> Result<T, Status> {
        self.read()?.ok_or_else(|| Status::invalid_argument(format!("a {} must not be null", T::NAME)))
    }

    /// Works on a copy of the structure, and copies it back.
    pub fn update<R>(&self, work: impl FnOnce(&T) -> Result<R, Status>) -> Result<R, Status> {
        // SAFETY: the caller promises during the call what `struct_size` says.
        unsafe { with_image(self.0, work) }
    }
}

/// Memory of the caller whose size and meaning stand elsewhere.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(super) *mut u8);

impl Field for Address {
    const NULL: Address = Address(ptr::null_mut());
}

// SAFETY: an address. Who reads or writes through it says why it may.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    /// Whether there is no memory.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The address as a number.
    pub fn number(self) -> usize {
        self.0.addr()
    }

    /// The address that a device's memory says it has.
    pub fn of_number(number: usize) -> Address {
        Address(ptr::with_exposed_provenance_mut(number))
    }

    /// The word that a structure of the caller begins with; 0 for none.
    pub fn first_word(self) -> usize {
        // SAFETY: null, or a structure of the caller that begins with a pointer and lives during the call.
        unsafe { self.0.cast::<usize>().as_ref() }.copied().unwrap_or(0)
    }

    /// The handler of custom calls that a function of the caller is.
    pub fn handler(self) -> xla_hlo::Result<FfiHandler> {
        // SAFETY: the caller promises a function of that type, for as long as the process lives.
        unsafe { FfiHandler::from_address(self.0.expose_provenance()) }
    }

    /// Bytes to be read during the call.
    pub fn bytes(&self, len: usize) -> Result<&[u8], Status> {
        if len == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() || isize::try_from(len).is_err() {
            return Err(Status::invalid_argument(format!("{len} bytes at {:p} cannot be read", self.0)));
        }
        // SAFETY: not null, of a possible size, and the caller promises them during the call.
        Ok(unsafe { slice::from_raw_parts(self.0, len) })
    }

    /// Copies bytes there. The caller has promised room for them.
    pub fn write(self, bytes: &[u8]) -> Result<(), Status> {
        Ok(self.fill(bytes.len(), |target| {
            target.copy_from_slice(bytes);
            Ok(())
        })?)
    }

    /// Has bytes written there. The caller has promised room for them until it is told that they are there.
    pub fn fill<R>(self, len: usize, work: impl FnOnce(&mut [u8]) -> xla_hlo::Result<R>) -> xla_hlo::Result<R> {
        if len == 0 {
            return work(&mut []);
        }
        if self.0.is_null() || isize::try_from(len).is_err() {
            return Err(Error::invalid_argument(format!("{len} bytes at {:p} cannot be written", self.0)));
        }
        // SAFETY: not null, of a possible size, and the caller promises that nobody else uses the memory until it is
        // told that the copy is done.
        work(unsafe { slice::from_raw_parts_mut(self.0, len) })
    }
}

/// The value of a named value: a number, a flag, or the start of a list or of a string.
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

// SAFETY: a number or an address, as `Many`.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

impl From<i64> for Word {
    fn from(integer: i64) -> Word {
        Word { integer }
    }
}

impl From<f32> for Word {
    fn from(real: f32) -> Word {
        // All eight bytes are set, the upper ones to zero.
        Word { integer: i64::from(real.to_bits()) }
    }
}

impl From<bool> for Word {
    fn from(flag: bool) -> Word {
        Word { integer: flag.into() }
    }
}

impl Word {
    /// An array that is lent to the caller; its owner says for how long.
    pub fn array<T>(array: &[T]) -> Word {
        Word { start: array.as_ptr().cast() }
    }

    /// The value as an integer.
    pub fn integer(self) -> i64 {
        // SAFETY: every constructor and every caller sets all eight bytes, and any bytes are an integer.
        unsafe { self.integer }
    }

    /// The value as a float.
    pub fn real(self) -> f32 {
        // SAFETY: any bytes are a float.
        unsafe { self.real }
    }

    /// The value as a flag.
    pub fn flag(self) -> bool {
        // SAFETY: any byte is a `u8`.
        unsafe { self.flag != 0 }
    }

    /// The value as the start of a string of that length.
    pub fn text(self, len: usize) -> Text {
        List::starting(self.many(), len)
    }

    /// The value as the start of a list of that length.
    pub fn integers(self, len: usize) -> List<i64> {
        List::starting(self.many(), len)
    }

    fn many<T>(self) -> Many<T> {
        // SAFETY: any bytes are an address; what may be read there is judged when it is read.
        Many::starting(unsafe { self.start }.cast())
    }
}
