//! PJRT plugins: the PJRT C API for any registered platform.
//!
//! ```text
//! jaxlib ── GetPjrtApi() ──> table ──> ffi ──> client, buffer, compile, execute, ... ──> xla-service
//!                                   (unsafe here)              (safe Rust)
//! ```
//!
//! A plugin is a `cdylib` of one line, [`plugin!`]. Callers in Rust get the same function table from [`api`]. The API
//! is version 0.112, which jaxlib 0.10.2 and newer accept. Structures of other versions are read as far as both sides
//! define their fields. Every slot is filled; a function that is not implemented returns `UNIMPLEMENTED` with its name.
//! No panic leaves this crate, and no lock is held during callbacks of the caller.

#![warn(missing_docs)]

mod abi;
mod api;
mod buffer;
mod client;
mod compile;
mod device;
mod effects;
mod element_type;
mod errors;
mod event;
mod executable;
mod execute;
mod extensions;
mod ffi;
mod layout;
mod memory;
mod named;
mod options;
mod plugin;
mod profile;
mod program;
mod serialized;
mod status;
mod table;
mod topology;
mod transfer;

use xla_service::PlatformRegistry;

pub use status::Code;
pub use table::PjrtApi;

/// Returns the PJRT C API for the platforms of a registry, which each new client requests from `platforms`.
///
/// The first call in a process determines the platforms; later calls return the same API.
pub fn api(platforms: fn() -> PlatformRegistry) -> &'static PjrtApi {
    plugin::set_platforms(platforms);
    &table::API
}
