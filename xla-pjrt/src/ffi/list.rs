//! Arrays of the caller, and arrays that are lent to the caller.
#![expect(unsafe_code, reason = "reads and writes the caller's memory")]

use std::{ptr, slice, str};

use super::field::Field;
use crate::status::Status;

/// Pointer to an array whose length is stored elsewhere.
#[repr(transparent)]
pub(crate) struct Many<T>(*const T);

/// Pointer to an array, followed by its length.
#[repr(C)]
pub(crate) struct List<T> {
    start: Many<T>,
    len: usize,
}

/// Length of an array, followed by its pointer.
#[repr(C)]
pub(crate) struct Counted<T> {
    len: usize,
    start: Many<T>,
}

/// String.
pub(crate) type Text = List<u8>;

/// Pointer to an array that the called function fills.
#[repr(transparent)]
pub(crate) struct Slots<T>(*mut T);

macro_rules! address {
    ($($ty:ident: $null:expr;)*) => {$(
        impl<T> Clone for $ty<T> {
            fn clone(&self) -> $ty<T> {
                *self
            }
        }

        impl<T> Copy for $ty<T> {}

        impl<T> Field for $ty<T> {
            const NULL: $ty<T> = $null;
        }

        // SAFETY: only an address. Reads through it are justified where they happen, or it refers to Rust data that is
        // immutable and lives as long as its owner.
        unsafe impl<T> Send for $ty<T> {}
        // SAFETY: only an address, as for `Send`.
        unsafe impl<T> Sync for $ty<T> {}
    )*};
}

address! {
    Many: Many(ptr::null());
    List: List { start: Many::NULL, len: 0 };
    Counted: Counted { len: 0, start: Many::NULL };
    Slots: Slots(ptr::null_mut());
}

impl<T> Many<T> {
    /// Lends an array to the caller. Its owner determines for how long.
    pub fn of(array: &[T]) -> Many<T> {
        Many(array.as_ptr())
    }

    /// Wraps a pointer of the caller.
    pub(super) fn starting(start: *const T) -> Many<T> {
        Many(start)
    }
}

impl<T: Field> Many<T> {
    /// Returns the caller's array of this length; an error for null and for an impossible length.
    pub fn slice(&self, len: usize) -> Result<&[T], Status> {
        if len == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(Status::invalid_argument(format!("an array of {len} must not be null")));
        }
        let fits = len.checked_mul(size_of::<T>()).is_some_and(|bytes| isize::try_from(bytes).is_ok());
        if !fits || !self.0.is_aligned() {
            return Err(Status::invalid_argument(format!(
                "an array of {len} at {:p} is too large or misaligned",
                self.0
            )));
        }
        // SAFETY: not null, aligned, of a possible size, and the caller promises its `len` elements during the call;
        // any bytes are a valid `T`.
        Ok(unsafe { slice::from_raw_parts(self.0, len) })
    }
}

impl<T> List<T> {
    /// Lends an array to the caller. Its owner determines for how long.
    pub fn of(array: &[T]) -> List<T> {
        List { start: Many::of(array), len: array.len() }
    }

    /// Combines a pointer and a length.
    pub fn starting(start: Many<T>, len: usize) -> List<T> {
        List { start, len }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }
}

impl<T: Field> List<T> {
    /// Returns the caller's array.
    pub fn get(&self) -> Result<&[T], Status> {
        self.start.slice(self.len)
    }
}

impl Text {
    /// Lends a string to the caller. Its owner determines for how long.
    pub fn text(text: &str) -> Text {
        List::of(text.as_bytes())
    }

    /// Returns the caller's string, which must be UTF-8.
    pub fn as_str(&self) -> Result<&str, Status> {
        str::from_utf8(self.get()?).map_err(|_| Status::invalid_argument("a string must be UTF-8"))
    }
}

impl<T> Counted<T> {
    /// Lends an array to the caller. Its owner determines for how long.
    pub fn of(array: &[T]) -> Counted<T> {
        Counted { len: array.len(), start: Many::of(array) }
    }
}

impl<T> Slots<T> {
    /// Whether the caller does not request the values.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Fills the caller's array, which must have room for all values.
    pub fn fill(self, values: impl Iterator<Item = T>) -> Result<(), Status> {
        let count = values.size_hint().1.unwrap_or(usize::MAX);
        if self.0.is_null() && count > 0 {
            return Err(Status::invalid_argument(format!("an array for {count} results must not be null")));
        }
        for (i, value) in values.enumerate() {
            // SAFETY: not null, and the caller promises the elements during the call.
            unsafe { self.0.add(i).write_unaligned(value) };
        }
        Ok(())
    }
}

impl Field for u8 {
    const NULL: u8 = 0;
}
