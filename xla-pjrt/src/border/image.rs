//! Structures of the C API with their offsets, and copies of them in and out.
#![expect(unsafe_code, reason = "copies structures of the caller")]

use std::ptr;

use super::field::Field;
use crate::status::Status;

/// The beginning of nearly every structure.
#[repr(C)]
pub(crate) struct Head {
    /// Bytes of the structure that the caller knows.
    pub struct_size: usize,
    /// Extensions of the call; those that callers attach today are for profilers.
    pub extensions: usize,
}

impl Field for Head {
    const NULL: Head = Head { struct_size: 0, extensions: 0 };
}

/// A structure of the C API that begins with its size. [`args!`] alone implements it: `repr(C)`, and all fields are
/// [`Field`]s.
pub(crate) trait Image: Sized {
    /// The name of the function, or of the structure, without `_Args`.
    const NAME: &'static str;
    /// Bytes up to the end of the last field.
    const SIZE: usize;
    /// Bytes that a caller must have: fields beyond may be missing, and are zero then. 0 for structures whose size
    /// callers leave 0, and mean all of it.
    const REQUIRED: usize;
    /// Whether callers have all of it, and may leave any number where the size would be.
    const IS_WHOLE: bool = false;

    /// All fields zero.
    fn null() -> Self;
}

/// Runs `work` on a copy of the caller's structure, and copies what it has set back: of both no more bytes than the
/// caller has. An error for a null pointer, and for a structure that is too small.
///
/// # Safety
///
/// `structure` is null, or what its field `struct_size` says can be read and written.
pub(super) unsafe fn with_image<T: Image, R>(
    structure: *mut T,
    work: impl FnOnce(&T) -> Result<R, Status>,
) -> Result<R, Status> {
    // SAFETY: handed on.
    let (image, known) = unsafe { read_image(structure)? };
    let result = work(&image)?;
    // SAFETY: `known` is at most the caller's size, which can be written, and at most the size of `T`. `image` is a
    // local value, so the two do not overlap.
    unsafe { copy_known::<T>(ptr::from_ref(&image).cast(), structure.cast(), known) };
    Ok(result)
}

/// Copies the first `known` bytes of a `T`: of today's callers all of it, which is a few moves and no call.
///
/// # Safety
///
/// So many bytes can be read there and written here, and the two do not overlap.
unsafe fn copy_known<T: Image>(from: *const u8, to: *mut u8, known: usize) {
    if known == T::SIZE {
        // SAFETY: handed on.
        unsafe { ptr::copy_nonoverlapping(from, to, T::SIZE) };
    } else {
        // SAFETY: handed on.
        unsafe { ptr::copy_nonoverlapping(from, to, known) };
    }
}

/// A copy of the caller's structure, and the number of bytes that it has.
///
/// # Safety
///
/// `structure` is null, or what its field `struct_size` says can be read; all of it where that may be 0 and is, or says
/// nothing.
pub(super) unsafe fn read_image<T: Image>(structure: *const T) -> Result<(T, usize), Status> {
    if structure.is_null() {
        return Err(Status::invalid_argument(format!("{}_Args must not be null", T::NAME)));
    }
    // SAFETY: every structure begins with its size; unaligned reads ask nothing of the address.
    let mut size = unsafe { structure.cast::<usize>().read_unaligned() };
    if size == 0 && T::REQUIRED == 0 || T::IS_WHOLE {
        size = T::SIZE;
    }
    if size < T::REQUIRED {
        return Err(Status::invalid_argument(format!(
            "Unexpected {}_Args size: expected {}, got {size}. Check installed software versions.",
            T::NAME,
            T::REQUIRED,
        )));
    }
    let known = size.min(T::SIZE);
    let mut image = T::null();
    // SAFETY: the first `known` bytes can be read, and `T` has as many. Any bytes are a `T`, whose fields are `Field`s.
    unsafe { copy_known::<T>(structure.cast(), ptr::from_mut(&mut image).cast(), known) };
    Ok((image, known))
}

/// Declares structures that begin with a [`Head`](super::Head): name, Rust type, size up to the last field, and fields
/// with their offsets, which are checked. `from N` says that the caller's may be as short as that; `from 0`, that its
/// size may be 0 as well.
macro_rules! args {
    ($(
        $name:literal $ty:ident $size:literal $(from $least:literal)? { $($offset:literal $field:ident: $t:ty,)* }
    )*) => {
        $crate::border::sized! {$(
            $name $ty $size $(from $least)? { 0 head: $crate::border::Head, $($offset $field: $t,)* }
        )*}
    };
}

/// Declares structures that begin with their size.
macro_rules! sized {
    ($(
        $name:literal $ty:ident $size:literal $(from $least:literal)? { $($offset:literal $field:ident: $t:ty,)* }
    )*) => {$(
        $crate::border::plain! { $name $ty $size { $($offset $field: $t,)* } }

        impl $crate::border::Image for $ty {
            const NAME: &'static str = $name;
            const SIZE: usize = $size;
            const REQUIRED: usize = [$($least,)? $size][0];

            fn null() -> Self {
                <$ty as $crate::border::Field>::NULL
            }
        }
    )*};
}

/// Declares structures that begin with a size that callers need not set: they have all fields.
macro_rules! whole {
    ($($name:literal $ty:ident $size:literal { $($offset:literal $field:ident: $t:ty,)* })*) => {$(
        $crate::border::plain! { $name $ty $size { $($offset $field: $t,)* } }

        impl $crate::border::Image for $ty {
            const NAME: &'static str = $name;
            const SIZE: usize = $size;
            const REQUIRED: usize = $size;
            const IS_WHOLE: bool = true;

            fn null() -> Self {
                <$ty as $crate::border::Field>::NULL
            }
        }
    )*};
}

/// Declares structures without a head.
macro_rules! plain {
    ($($name:literal $ty:ident $size:literal { $($offset:literal $field:ident: $t:ty,)* })*) => {$(
        #[doc = concat!("`", $name, "`: ", $size, " bytes.")]
        #[repr(C)]
        #[allow(dead_code, reason = "fields are there for the layout, whether they are read or not")]
        pub(crate) struct $ty { $(pub $field: $t,)* }

        const _: () = {
            $(assert!(std::mem::offset_of!($ty, $field) == $offset);)*
            let ends = [0, $($offset + size_of::<$t>()),*];
            assert!(ends[ends.len() - 1] == $size);
            assert!(size_of::<$ty>() == ends[ends.len() - 1].next_multiple_of(align_of::<$ty>()));
        };

        impl $crate::border::Field for $ty {
            const NULL: Self = $ty { $($field: <$t as $crate::border::Field>::NULL,)* };
        }
    )*};
}
pub(crate) use {args, plain, sized, whole};
