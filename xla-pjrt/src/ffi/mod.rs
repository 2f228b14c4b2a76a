//! The FFI layer: converts raw pointers from C to values that safe code can use, and back.
//!
//! ```text
//! caller ── *mut Args ──> entry ── copy in ──> &Args ──> safe function ── Out::set ──> copy out ──> caller
//!                           │ catches panics, checks null and struct_size
//! ```
//!
//! - [`args!`](crate::ffi::args) declares the structures with their offsets. [`Image`] copies them in and out,
//!   within the caller's `struct_size`.
//! - [`Handle`] is a pointer to an object of this crate, [`Owned`] one that C returns to be destroyed, and [`Hosted`]
//!   an object that another object owns.
//! - [`List`], [`Many`], [`Slots`], [`Pointer`], [`Word`] and [`Address`] refer to the caller's memory.
//!
//! The only assumption is that the caller keeps the promises of the C API about the memory that it passes, for the
//! duration of the call. No code outside of this folder relies on it.

mod callback;
mod entry;
mod export;
mod failed;
mod field;
mod handle;
mod host;
mod image;
mod key_value;
mod list;
mod pointer;
mod promise;
mod user_data;

pub(crate) use callback::{Release, Visitor};
pub(crate) use entry::{Function, Procedure, Slot, entry, procedure, slot};
pub(crate) use failed::{Failed, code, visit};
pub(crate) use field::{Field, Flag, Out};
pub(crate) use handle::{Handle, Hosted, Kind, Owned};
pub(crate) use host::HostRegion;
pub(crate) use image::{Head, Image, args, plain, sized, whole};
pub(crate) use key_value::{CallerStore, StoreFunction};
pub(crate) use list::{Counted, List, Many, Slots, Text};
pub(crate) use pointer::{Address, Pointer, Word};
pub(crate) use promise::{Awaited, Deleter, FutureCallback, OnReady};
pub(crate) use user_data::{HasUserData, UserData, user_data_table};
