//! The border to C: raw pointers become values that safe code can use, and back.
//!
//! ```text
//! caller ── *mut Args ──> entry ── copy in ──> &Args ──> safe function ── Out::set ──> copy out ──> caller
//!                           │ catches panics, checks null and struct_size
//! ```
//!
//! - [`args!`](crate::border::args) declares the structures with their offsets; [`Image`] copies them in and out, no
//!   further than their caller's `struct_size`.
//! - [`Handle`] is a pointer to an object of this crate, [`Owned`] one that comes back to be destroyed, [`Hosted`] an
//!   object that lives as long as another one.
//! - [`List`], [`Many`], [`Slots`], [`Pointer`], [`Word`] and [`Address`] are the caller's memory.
//!
//! Whatever is read through them is what the caller of the C API promises for the time of the call; this is the only
//! assumption, and it is made in this folder alone.

mod callback;
mod entry;
mod export;
mod failed;
mod field;
mod handle;
mod host;
mod image;
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
pub(crate) use list::{Counted, List, Many, Slots, Text};
pub(crate) use pointer::{Address, Pointer, Word};
pub(crate) use promise::{Awaited, Deleter, FutureCallback, OnReady};
pub(crate) use user_data::{HasUserData, UserData, user_data_table};
