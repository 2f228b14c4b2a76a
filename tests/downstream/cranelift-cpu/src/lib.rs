//! A CPU backend without LLVM: the host's memory and streams from `xla_service::host`, fusions through Cranelift,
//! library calls from `xla-cpu-runtime`, and everything else by the host fallback.
//!
//! ```text
//! platform.rs       names the parts; one device, the host
//! capabilities.rs   what may be fused, what is expanded                     ─> passes
//! compiler.rs       passes, then thunks
//! lowering/         one instruction -> one kernel or library call, or "not mine"
//!   element.rs        an element of an instruction at an index: calls of the files below
//!   movement.rs       operations that only say where elements are
//!   fold.rs           reductions, windows, contractions that no library does
//!   indexing.rs       gather, scatter
//!   arithmetic.rs     elementwise operations, inline or by the evaluator's function
//!   convert.rs        conversions between element types
//! builder.rs        loops, branches, loads, constants of one kernel in Cranelift's IR
//! code.rs           kernels of a program: from IR to machine code
//! launcher.rs       the thunks' kernels and library calls
//! machine.rs        calls of machine code and library functions; the one file with `unsafe`
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
