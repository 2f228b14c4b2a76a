//! XLA FFI: typed custom call handlers in other languages, over the XLA FFI C API 0.5.
//!
//! ```text
//! custom call ── FfiHandler ──> XLA_FFI_CallFrame ──> handler in C ──> table: state, data, memory, threads, futures
//! ```
//!
//! Programs refer to a handler by its target name. A handler reads operands and writes results in memory, and finds
//! attributes by name; they are sorted. [`add`] registers a handler, and [`subscribe`] adds the handlers of a platform
//! to the registry of a client.

#![warn(missing_docs)]

mod abi;
mod api;
mod attributes;
mod context;
mod convert;
mod element_type;
mod error;
mod handler;
mod packing;
mod registry;
mod types;

pub use context::UserData;
pub use handler::FfiHandler;
pub use registry::{Subscription, add, subscribe};

/// Major version of the API.
const MAJOR: i32 = 0;
/// Minor version of the API.
const MINOR: i32 = 5;

/// Registers a type of data that handlers and callers exchange, by name, and returns its id. The id is `wanted` unless
/// that is 0. `deleter` is the address of the function that frees its objects, or 0. Fails with
/// [`xla_hlo::Error::InvalidArgument`] if the name has another id.
pub fn register_type(name: &str, wanted: i64, deleter: usize) -> xla_hlo::Result<i64> {
    types::register(name, wanted, deleter)
}
