//! PJRT plugins: the C API of PJRT over any registered platform.
//!
//! ```text
//! jaxlib ── GetPjrtApi() ──> table ──> border ──> client, buffer, compile, execute, ... ──> xla-service
//!                                   (unsafe here)              (safe Rust)
//! ```
//!
//! A plugin is a `cdylib` of one line, [`plugin!`]; [`api`] is the same table for callers in Rust. The API is version
//! 0.112, which jaxlib 0.10.2 and newer ones take; structures that are longer or shorter are read as far as both sides
//! know them. Every slot is filled: a function that is not there yet answers `UNIMPLEMENTED` with its own name. No
//! panic leaves this crate, and no lock is held while code of the caller runs.

#![warn(missing_docs)]

mod abi;
mod api;
mod border;
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

/// The PJRT C API over the platforms of a registry, which each new client asks for.
///
/// A process has one answer: the platforms are those of the first call.
pub fn api(platforms: fn() -> PlatformRegistry) -> &'static PjrtApi {
    plugin::set_platforms(platforms);
    &table::API
}
