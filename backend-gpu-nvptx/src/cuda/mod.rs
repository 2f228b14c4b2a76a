//! Everything that touches NVIDIA's driver and libraries. Nothing here is needed to build or to compile programs.
//!
//! ```text
//! driver   the library, found when first asked for; what is missing, in sentences
//!   context  one device: its facts, its errors     queue         streams and events
//!                                                  code, linker  modules, launches     graph  graphs
//!     pool  memory, in stream order                staging  pinned memory
//!       executor, stream                           what the service sees
//!   launch   routines, one by one or as graphs    gather  their pieces of work    tune  which way is the fastest
//!   library  cuBLAS, cuDNN, cuFFT
//! ```
//!
//! `unsafe` stands in `driver`, `context`, `queue`, `code`, `linker`, `graph` and `library`, which are safe to use:
//! handles are made and freed there and nowhere else. What a kernel does with the addresses that it is given is the
//! compiler's word.

pub(crate) mod code;
pub(crate) mod context;
pub(crate) mod driver;
pub(crate) mod executor;
pub(crate) mod graph;
mod in_flight;
pub(crate) mod launch;
pub(crate) mod library;
mod linker;
mod pool;
pub(crate) mod queue;
mod resolve;
mod staging;
pub(crate) mod stream;
mod tune;

#[cfg(test)]
mod tests;
