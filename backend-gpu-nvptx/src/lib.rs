//! The NVIDIA GPU backend: HLO to PTX through LLVM, run through the CUDA driver or on the host.
//!
//! ```text
//! run_hlo_passes   the standard stages with the GPU's profile                    compiler.rs, capabilities.rs
//! run_backend      ThunkSequence: each thunk a routine of launches               lowering.rs, kernels/, libraries.rs
//!                  kernels: fusions, sorts, scans, scatters                           kernels/
//!                  kernels -> LLVM modules -> PTX, or code for the host          codegen.rs  (xla-llvm::fused, xla-llvm::simt)
//! execute          addresses of all arrays -> launches                           executable.rs, launch.rs
//!                  through the CUDA driver, found when running                   cuda/
//!                  on the host: blocks one by one, threads as fibers             host/
//! written down     code, routines and the lowering's answers beside the module   stored.rs, ahead.rs
//! ```
//!
//! Machine code for a GPU is made by the driver when a program is loaded, or by `ptxas` where there is one (`ptx/`).
//!
//! Two platforms: [`platform`] is `gpu`, [`host_platform`] is `gpu-host`: the very same kernels, run by the host, to try and to test them
//! where there is no GPU.

mod ahead;
mod capabilities;
mod codegen;
mod compiler;
#[allow(dead_code, reason = "no convolution or Fourier transform goes to a library yet")]
mod cuda;
mod device;
mod executable;
mod host;
mod kernels;
mod launch;
mod libraries;
mod lowering;
mod platform;
#[allow(dead_code, reason = "the cache is not used yet")]
mod ptx;
mod stored;

pub use platform::{HOST_NAME, NAME, host_platform, platform};
