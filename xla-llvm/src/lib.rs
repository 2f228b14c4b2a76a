//! Shared parts of LLVM backends: targets, code in memory, lanes, elemental operations, math functions, fused kernels.
//!
//! - [`target`]: the machine code is generated for, host or named, and what it can do.
//! - [`codegen`]: LLVM modules become machine code, whatever becomes of LLVM meanwhile.
//! - [`jit`]: object code becomes functions that can be called.
//! - [`driver`]: kernels of a program become code, in several modules side by side.
//! - [`emitter`] and [`lanes`]: a module being written, and arithmetic that is the same for scalars and vectors.
//! - [`denormals`]: subnormal numbers, and the mode that takes them for zeros.
//! - [`math`]: transcendental functions as straight-line code over lanes, no library calls.
//! - [`mma`]: matrix-multiply-accumulate by the threads of a warp, on tensor cores where there are some.
//! - [`simt`]: kernels that many threads run at once, and how their threads work together.
//! - [`elemental`]: the elementwise operations of HLO on every element type, over all of the above.

pub mod codegen;
pub mod denormals;
pub mod driver;
pub mod elemental;
pub mod emitter;
pub mod fused;
pub mod jit;
pub mod lanes;
mod linking;
mod listening_context;
pub mod math;
pub mod mma;
mod own_thread;
mod parallel;
pub mod simt;
pub mod target;
