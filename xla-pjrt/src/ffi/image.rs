//! Structures of the C API with their offsets, and copies from and to the caller's memory.
#![expect(unsafe_code, reason = "copies structures of the caller")]

use std::ptr;

use super::field::Field;
use crate::status::Status;

/// First fields of nearly every structure.
#[repr(C)]
pub(crate) struct Head {
    /// Size of the structure that the caller knows, in bytes.
    pub struct_size: usize,
    /// Extensions of the call. Currently, callers attach only profiler extensions.
    pub extensions: usize,
}

impl Field for Head {
    const NULL: Head = Head { struct_size: 0, extensions: 0 };
}

/// Structure of the C API that begins with its size. Only [`args!`] implements it, which ensures `repr(C)` and that all
/// fields are [`Field`]s.
pub(crate) trait Image: Sized {
    /// Name of the function, or of the structure, without `_Args`.
    const NAME: &'static str;
    /// Offset of the end of the last field, in bytes.
    const SIZE: usize;
    /// Bytes that a caller must provide. Later fields may be missing and are then zero. 0 for structures whose size the
    /// caller may set to 0, which means the whole structure.
    const REQUIRED: usize;
    /// Whether callers always provide the whole structure and may leave its size uninitialized.
    const IS_WHOLE: bool = false;

    /// Returns a structure with all fields zero.
    fn null() -> Self;
}

/// Runs `work` on a copy of the caller's structure and copies the fields that it set back, in both directions no more
/// bytes than the caller has. An error for a null pointer and for a structure that is too small.
///
/// # Safety
///
/// `structure` is null, or as many bytes as its field `struct_size` states can be read and written.
pub(super) unsafe fn with_image<T: Image, R>(
    structure: *mut T,
    work: impl FnOnce(&T) -> Result<R, Status>,
) -> Result<R, Status> {
    // SAFETY: the caller of this function guarantees it.
    let (image, known) = unsafe { read_image(structure)? };
    let result = work(&image)?;
    // SAFETY: `known` is at most the caller's size, which can be written, and at most the size of `T`. `image` is a
    // local value, so the two do not overlap.
    unsafe { copy_known::<T>(ptr::from_ref(&image).cast(), structure.cast(), known) };
    Ok(result)
}

/// Copies the first `known` bytes of a `T`. For current callers, that is all of it, so the copy compiles to a few
/// moves.
///
/// # Safety
///
/// `known` bytes can be read at `from` and written at `to`, and the two do not overlap.
unsafe fn copy_known<T: Image>(from: *const u8, to: *mut u8, known: usize) {
    if known == T::SIZE {
        // SAFETY: the caller of this function guarantees it.
        unsafe { ptr::copy_nonoverlapping(from, to, T::SIZE) };
    } else {
        // SAFETY: the caller of this function guarantees it.
        unsafe { ptr::copy_nonoverlapping(from, to, known) };
    }
}

/// Returns a copy of the caller's structure, and the number of bytes that the caller has.
///
/// # Safety
///
/// `structure` is null, or as many bytes as its field `struct_size` states can be read; the whole structure if the size
/// is 0 where that is allowed, or is meaningless.
pub(super) unsafe fn read_image<T: Image>(structure: *const T) -> Result<(T, usize), Status> {
    if structure.is_null() {
        return Err(Status::invalid_argument(format!("{}_Args must not be null", T::NAME)));
    }
    // SAFETY: every structure begins with its size, and an unaligned read requires no alignment of the address.
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
    // SAFETY: the first `known` bytes can be read, and `T` has at least that size. Any bytes are a valid `T`, because
    // its fields are `Field`s.
    unsafe { copy_known::<T>(structure.cast(), ptr::from_mut(&mut image).cast(), known) };
    Ok((image, known))
}

/// Declares structures that begin with a [`Head`](super::Head): name, Rust type, size up to the last field, and fields
/// with their offsets, which are checked. `from N` means that the caller's structure may be as short as `N` bytes; with
/// `from 0`, its size field may also be 0.
macro_rules! args {
    ($(
        $name:literal $ty:ident $size:literal $(from $least:literal)? { $($offset:literal $field:ident: $t:ty,)* }
    )*) => {
        $crate::ffi::sized! {$(
            $name $ty $size $(from $least)? { 0 head: $crate::ffi::Head, $($offset $field: $t,)* }
        )*}
    };
}

/// Declares structures that begin with their size.
macro_rules! sized {
    ($(
        $name:literal $ty:ident $size:literal $(from $least:literal)? { $($offset:literal $field:ident: $t:ty,)* }
    )*) => {$(
        $crate::ffi::plain! { $name $ty $size { $($offset $field: $t,)* } }

        impl $crate::ffi::Image for $ty {
            const NAME: &'static str = $name;
            const SIZE: usize = $size;
            const REQUIRED: usize = [$($least,)? $size][0];

            fn null() -> Self {
                <$ty as $crate::ffi::Field>::NULL
            }
        }
    )*};
}

/// Declares structures that begin with a size that callers need not set, and that are always complete.
macro_rules! whole {
    ($($name:literal $ty:ident $size:literal { $($offset:literal $field:ident: $t:ty,)* })*) => {$(
        $crate::ffi::plain! { $name $ty $size { $($offset $field: $t,)* } }

        impl $crate::ffi::Image for $ty {
            const NAME: &'static str = $name;
            const SIZE: usize = $size;
            const REQUIRED: usize = $size;
            const IS_WHOLE: bool = true;

            fn null() -> Self {
                <$ty as $crate::ffi::Field>::NULL
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

        impl $crate::ffi::Field for $ty {
            const NULL: Self = $ty { $($field: <$t as $crate::ffi::Field>::NULL,)* };
        }
    )*};
}
pub(crate) use {args, plain, sized, whole};
