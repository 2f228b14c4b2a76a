//! The CPU backend: HLO to native code through LLVM.
//!
//! ```text
//! run_hlo_passes   the standard stages with this machine's profile             compiler.rs, capabilities.rs
//! run_backend      ThunkSequence: kernels, library calls, loops, host calls    lowering.rs, *_plan.rs, sort/
//!                  kernels -> LLVM modules, generated in parallel              codegen.rs  (xla-llvm::fused)
//!                  the sequence itself -> one native entry function            entry.rs
//! execute          addresses of all arguments -> the entry function            arguments.rs, executable.rs
//!                  parallel loops, library functions, host calls               runtime/
//! ```

mod arguments;
mod capabilities;
mod codegen;
mod compiler;
mod convolution_plan;
mod cut;
mod dot_plan;
mod entry;
mod executable;
mod executor;
mod lowering;
mod machine_code;
mod platform;
mod runtime;
mod sort;
mod transfer;

pub use platform::{CpuOptions, NAME, TARGET_CPUS, TargetCpu, platform, platform_with};
