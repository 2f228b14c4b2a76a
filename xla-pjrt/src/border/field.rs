//! Fields of structures of C: types of which every pattern of bits is a value.

use std::cell::Cell;

/// A type that may be a field of an [`Image`](super::Image): every pattern of bits is a value of it, zero is the one
/// for a field that the caller does not have.
pub(crate) trait Field {
    /// The value of zeros.
    const NULL: Self;
}

macro_rules! zero {
    ($($ty:ty)*) => {$(impl Field for $ty {
        const NULL: $ty = 0 as $ty;
    })*};
}
zero! { i32 i64 u64 usize isize f32 }

/// A `bool` of C.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Flag(u8);

impl Flag {
    /// Whether it is set.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Flag {
    fn from(value: bool) -> Flag {
        Flag(value.into())
    }
}

impl Field for Flag {
    const NULL: Flag = Flag(0);
}

/// A field that the function called writes.
#[repr(transparent)]
pub(crate) struct Out<T>(Cell<T>);

impl<T> Out<T> {
    /// Sets the field.
    pub fn set(&self, value: impl Into<T>) {
        self.0.set(value.into());
    }
}

impl<T: Copy> Out<T> {
    /// The value that the caller, or an earlier `set`, put there.
    pub fn get(&self) -> T {
        self.0.get()
    }
}

impl<T: Field> Field for Out<T> {
    const NULL: Out<T> = Out(Cell::new(T::NULL));
}
