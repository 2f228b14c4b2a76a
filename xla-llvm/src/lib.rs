//! Shared parts of LLVM backends: targets, code in memory, lanes, elemental operations, math functions, fused kernels.
//!
//! - [`target`]: the machine that code is generated for (host or named), and its abilities.
//! - [`codegen`]: generation of machine code from LLVM modules, isolated from fatal errors of LLVM.
//! - [`jit`]: loading of object code as callable functions.
//! - [`driver`]: code generation for the kernels of a program, in several modules in parallel.
//! - [`emitter`] and [`lanes`]: a module under construction, and arithmetic that is the same for scalars and vectors.
//! - [`denormals`]: subnormal numbers, and the mode that flushes them to zero.
//! - [`math`]: transcendental functions as straight-line code over lanes, without library calls.
//! - [`mma`]: matrix-multiply-accumulate by the threads of a warp, on tensor cores if available.
//! - [`simt`]: kernels that many threads execute, and the cooperation of their threads.
//! - [`elemental`]: the elementwise operations of HLO for every element type, based on all of the above.

pub mod codegen;
pub mod denormals;
mod diagnostics;
pub mod driver;
pub mod elemental;
pub mod emitter;
pub mod fused;
#[doc(hidden)]
pub mod internals;
pub mod jit;
pub mod lanes;
mod linking;
pub mod math;
pub mod mma;
mod own_thread;
mod parallel;
pub mod simt;
pub mod target;
