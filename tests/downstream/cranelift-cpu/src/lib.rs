//! CPU backend without LLVM: memory and streams of the host from `xla_service::host`, fusions through Cranelift,
//! library calls from `xla-cpu-runtime`, and all other operations by the host fallback.
//!
//! ```text
//! platform.rs        the platform's parts; one device, the host
//! capabilities.rs    supported fusions and expansions              ─> passes
//! compiler.rs        passes, then thunks
//! lowering/          one instruction -> one kernel or library call, or no lowering
//!   element.rs       an element of an instruction at an index: calls of the files below
//!   movement.rs      data movement: index maps of elements
//!   fold.rs          reductions, windows, contractions without a library function
//!   indexing.rs      gather, scatter
//!   arithmetic.rs    elementwise operations, inline or by the evaluator's function
//!   convert.rs       conversions between element types
//! builder.rs         loops, branches, loads, constants of one kernel in Cranelift's IR
//! code.rs            kernels of a program: from IR to machine code
//! launcher.rs        launches of kernels and library calls
//! machine.rs         calls of machine code and library functions; the only file with `unsafe`
//! ```

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod builder;
mod capabilities;
mod code;
mod compiler;
mod launcher;
mod lowering;
mod machine;
mod platform;

pub use capabilities::NAME;
pub use platform::platform;
