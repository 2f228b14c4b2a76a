//! Structures of the PJRT C API, version 0.112 and later additions: names, sizes and offsets.
//!
//! A field that the called function writes is an `Out`. An adjacent pair of pointer and length is one `List`.

pub(crate) mod buffer;
pub(crate) mod client;
pub(crate) mod device;
pub(crate) mod errors;
pub(crate) mod executable;
pub(crate) mod extensions;
pub(crate) mod kinds;
pub(crate) mod profiler;
pub(crate) mod transfer;
