//! The NVIDIA GPU backend: HLO to PTX through LLVM, run through the CUDA driver or on the host.
//!
//! ```text
//! run_hlo_passes   the standard stages with the GPU's profile                    compiler.rs, capabilities.rs
//! run_backend      ThunkSequence: each thunk a routine of launches               lowering.rs
//!                  kernels -> LLVM modules -> PTX, or code for the host          codegen.rs  (xla-llvm::fused, xla-llvm::simt)
//! execute          addresses of all arrays -> launches                           executable.rs
//!                  on the host: blocks one by one, threads as fibers             host/
//! ```
//!
//! Two platforms: [`platform`] is `gpu`, [`host_platform`] is `gpu-host`: the very same kernels, run by the host, to try and to test them
//! where there is no GPU.

mod capabilities;
mod codegen;
mod compiler;
mod device;
mod executable;
mod host;
mod kernels;
mod lowering;
mod platform;

pub use platform::{HOST_NAME, NAME, host_platform, platform};
