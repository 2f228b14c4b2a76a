//! The NVIDIA GPU backend: HLO to PTX through LLVM, run by the CUDA driver or emulated on the host.
//!
//! ```text
//! compile          with LLVM                                                   compiler/
//!   run_hlo_passes   the standard stages with the GPU's profile                capabilities.rs, gpu_profile/
//!   run_backend      ThunkSequence: each thunk a command sequence              lowering/
//!                    kernels -> LLVM modules -> PTX, or code for the host      lowering/codegen.rs
//! serialize, load  code, commands and recorded lowerings with the module       program/
//! execute          addresses of all arrays -> launches                         executable.rs, program/launcher.rs
//!                    by the CUDA driver, loaded at run time                    executor.rs, cuda/
//!                    emulated: blocks in sequence, threads as fibers           emulation/
//! ```
//!
//! The driver assembles PTX to machine code when a program is loaded. An installed `ptxas` can assemble it ahead of
//! time (`ptx/`). Candidates for a library call, and the tilings of our own matmul kernels, are measured on the device
//! that runs the program (`autotune/`).
//!
//! There are two platforms. [`platform`] is `gpu`. [`emulated_platform`] is `gpu-emulated`: it runs the same kernels on
//! the host, to test them without a GPU. Without the Cargo feature `compile`, there is neither LLVM nor the emulated
//! platform, and `gpu` only runs programs that were compiled elsewhere.

mod autotune;
#[cfg(feature = "compile")]
mod capabilities;
#[cfg(feature = "compile")]
mod compiler;
#[cfg(not(feature = "compile"))]
#[path = "compiler_without_llvm.rs"]
mod compiler;
mod cuda;
#[cfg(feature = "compile")]
mod emulation;
mod executable;
mod executor;
mod gpu_profile;
#[cfg(feature = "compile")]
mod lowering;
mod names;
mod platform;
mod program;
mod ptx;
mod transfer;

#[cfg(feature = "compile")]
pub use emulation::{emulated_platform, emulated_platform_with_way};
#[cfg(feature = "compile")]
pub use names::EMULATED_NAME;
pub use names::NAME;
pub use platform::{GpuOptions, platform, platform_with};
