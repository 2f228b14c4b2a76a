//! CUDA runtime: everything that touches NVIDIA's driver and libraries, none of which is needed to build or compile.
//!
//! ```text
//! driver       the library, loaded when first asked for; what is missing, in sentences
//!   api          the C functions, by library; where libraries are found
//!   context      one device: its facts, its errors     description   the same for the service
//!   module       loaded code, launches                 tensor_map    arrays that kernels copy in bulk
//!   linker       PTX to machine code
//!   memory       memory of a device: pool (in stream order), staging (pinned buffers)
//!   stream       copies, launches, events, capture: queue (streams of the driver), clock, in_flight (for late errors)
//!   resources    what the executor and the streams of a device share
//!   graph        CUDA graphs: recording, hazards (their edges), driver (building and changing)
//!   launch       command sequences, one by one or as graphs: context, resolve, trial (of candidates), loaded (code)
//!   library      cuBLASLt, cuDNN, cuFFT
//!   nvtx         ranges for NVIDIA's profilers
//! ```
//!
//! `unsafe` stands in `api`, `driver`, `context`, `module`, `tensor_map`, `linker`, `nvtx`, `stream/{queue,clock}`,
//! `memory/staging`, `graph/driver` and `library`, which are safe to use: handles are created and freed there and
//! nowhere else. The compiler vouches for a kernel's memory accesses.

pub(crate) mod api;
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
