//! The NVIDIA GPU backend: HLO to PTX through LLVM, run through the CUDA driver or on the host.
//!
//! ```text
//! compile          with LLVM                                                      compile/
//!   run_hlo_passes   the standard stages with the GPU's profile                    compiler.rs, capabilities.rs
//!   run_backend      ThunkSequence: each thunk a routine of launches               lowering.rs, kernels/, libraries/
//!                    kernels -> LLVM modules -> PTX, or code for the host          codegen.rs, xla_llvm::{fused, simt}
//! load             thunks again, from what was written down                       loading.rs, costs.rs
//! execute          addresses of all arrays -> launches                            executable.rs, launch.rs
//!                    through the CUDA driver, found when running                   cuda/
//!                    on the host: blocks one by one, threads as fibers             host/
//! written down     code, routines and the lowering's answers beside the module    stored.rs, compile/ahead.rs
//! ```
//!
//! Machine code for a GPU is made by the driver when a program is loaded, or by `ptxas` where there is one (`ptx/`).
//!
//! Two platforms: [`platform`] is `gpu`, [`emulated_platform`] is `gpu-emulated`: the very same kernels, run by the
//! host, to try and to test them where there is no GPU. Without the Cargo feature `compile` there is neither LLVM nor
//! the latter: `gpu` then runs what was compiled elsewhere.

mod autotune;
mod caches;
mod choices;
#[cfg(feature = "compile")]
mod compile;
#[cfg(not(feature = "compile"))]
#[path = "compile_left_out.rs"]
mod compile;
mod costs;
mod cuda;
mod device;
mod executable;
#[cfg(feature = "compile")]
mod host;
mod launch;
mod loading;
mod platform;
mod ptx;
mod stored;

#[cfg(feature = "compile")]
pub use host::{EMULATED_NAME, emulated_platform};
pub use platform::{NAME, platform};
