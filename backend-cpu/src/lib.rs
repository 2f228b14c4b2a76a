//! CPU backend: compiles HLO to native code with LLVM.
//!
//! ```text
//! run_hlo_passes   the standard stages with this machine's profile             compiler.rs, capabilities.rs
//! run_backend      ThunkSequence: kernels, library calls, loops, host calls    lowering/
//!                  kernels -> LLVM modules, generated in parallel              program/codegen.rs  (xla-llvm::fused)
//!                  the sequence itself -> one native entry function            program/entry.rs
//!                  the thunks of either entry                                  program/sequence.rs
//! execute          addresses of all arguments -> the entry function            program/arguments.rs, executable.rs
//!                  parallel loops, library functions, host calls               xla-cpu-runtime
//! ahead of time    an object file for any target of LLVM, and a header         aot/
//! ```

mod aot;
mod capabilities;
mod compiler;
mod executable;
mod executor;
mod lowering;
mod options;
mod platform;
mod program;
mod transfer;

pub use options::{CodeGenerators, CpuOptions, NAME, TARGET_CPUS, TargetCpu};
pub use platform::{platform, platform_with};
