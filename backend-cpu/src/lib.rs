//! The CPU backend: HLO to native code through LLVM.
//!
//! ```text
//! run_hlo_passes   the standard stages with this machine's profile             compiler.rs, capabilities.rs
//! run_backend      ThunkSequence: kernels, dots, loops, host calls             lowering.rs, dot_plan.rs
//!                  kernels -> LLVM modules, generated in parallel              codegen.rs  (xla-llvm::fused)
//!                  the sequence itself -> one native entry function            entry.rs
//! execute          pointers of all allocations -> the entry function           executable.rs
//!                  parallel loops, matrix products, host calls                 runtime/
//! ```

mod capabilities;
mod codegen;
mod compiler;
mod dot_plan;
mod entry;
mod executable;
mod executor;
mod lowering;
mod platform;
mod runtime;
mod sort;
mod transfer;

pub use platform::{NAME, platform};
