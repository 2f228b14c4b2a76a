//! Fields of C structures: types for which every bit pattern is valid.

use std::cell::Cell;

/// Type that may be a field of an [`Image`](super::Image): every bit pattern is a valid value. Fields that the caller's
/// structure lacks are zero.
pub(crate) trait Field {
    /// Value with all bits zero.
    const NULL: Self;
}

macro_rules! zero {
    ($($ty:ty)*) => {$(impl Field for $ty {
        const NULL: $ty = 0 as $ty;
    })*};
}
zero! { i32 i64 u64 usize isize f32 }

/// C's `bool`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Flag(u8);

impl Flag {
    /// Whether the flag is set.
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

/// Field that the called function writes.
#[repr(transparent)]
pub(crate) struct Out<T>(Cell<T>);

impl<T> Out<T> {
    /// Sets the field.
    pub fn set(&self, value: impl Into<T>) {
        self.0.set(value.into());
    }
}

impl<T: Copy> Out<T> {
    /// Returns the value that the caller or an earlier `set` wrote.
    pub fn get(&self) -> T {
        self.0.get()
    }
}

impl<T: Field> Field for Out<T> {
    const NULL: Out<T> = Out(Cell::new(T::NULL));
}
