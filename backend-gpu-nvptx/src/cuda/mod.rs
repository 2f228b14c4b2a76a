//! CUDA runtime: all use of NVIDIA's driver and libraries, none of which is needed to build or compile.
//!
//! ```text
//! driver       the library, loaded on first use; errors that name the missing part
//!   api          the C functions, by library; where libraries are found
//!   context      one device: its facts, its errors     description   the same for the service
//!   module       loaded code, launches                 tensor_map    TMA descriptors of arrays
//!   linker       PTX to cubins
//!   memory       memory of a device: pool (in stream order), staging (pinned buffers)
//!   stream       copies, launches, events, capture: queue (streams of the driver), clock, in_flight (for late errors)
//!   resources    state that the executor and the streams of a device share
//!   graph        CUDA graphs: recording, hazards (their edges), driver (building and updating)
//!   launch       command sequences, one by one or as graphs: context, resolve, measure (candidates), loaded (code)
//!   library      cuBLASLt, cuDNN, cuFFT
//!   collective   NCCL: cliques of devices, sending, waiting
//!   nvtx         ranges for NVIDIA's profilers
//! ```
//!
//! `unsafe` is confined to `api`, `driver`, `context`, `module`, `tensor_map`, `linker`, `nvtx`,
//! `stream/{queue,clock}`, `memory/staging`, `graph/driver`, `library` and `collective/communicators`. Their interfaces
//! are safe: handles are created and freed only there. The compiler guarantees that a kernel's memory accesses are
//! valid.

pub(crate) mod api;
pub(crate) mod collective;
pub(crate) mod context;
pub(crate) mod description;
#[cfg(feature = "compile")]
pub(crate) mod device_profile;
pub(crate) mod driver;
pub(crate) mod graph;
pub(crate) mod launch;
pub(crate) mod library;
mod linker;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod nvtx;
pub(crate) mod resources;
pub(crate) mod stream;
mod tensor_map;

#[cfg(test)]
mod map_tests;
#[cfg(test)]
mod tests;
