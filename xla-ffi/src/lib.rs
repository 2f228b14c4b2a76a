//! XLA FFI: typed handlers of custom calls that other languages bring, over the XLA FFI C API 0.5.
//!
//! ```text
//! custom call ── FfiHandler ──> XLA_FFI_CallFrame ──> handler in C ──> table: state, data, memory, threads, futures
//! ```
//!
//! Programs name a handler by its target; a handler reads operands and writes results in memory, and finds attributes
//! by name, sorted. [`add`] registers one, [`subscribe`] gives those of a platform to the registry of a client.

#![warn(missing_docs)]

mod abi;
mod api;
mod attributes;
mod border;
mod context;
mod element_type;
mod error;
mod handler;
mod packing;
mod registry;
mod types;

pub use context::UserData;
pub use handler::FfiHandler;
pub use registry::{Subscription, add, subscribe};

/// Version of the API: major.
const MAJOR: i32 = 0;
/// Version of the API: minor.
const MINOR: i32 = 5;

/// Registers a type of data that handlers and callers exchange, by name: its number, which is `wanted` unless that is
/// 0, and the address of the function that ends its objects, or 0. [`xla_hlo::Error::InvalidArgument`] where the name
/// has another number.
pub fn register_type(name: &str, wanted: i64, deleter: usize) -> xla_hlo::Result<i64> {
    types::register(name, wanted, deleter)
}
