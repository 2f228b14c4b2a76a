//! Library functions of CPU backends, independent of the code generator. Does not link LLVM.
//!
//! Contains matrix products, convolutions, sorts, transforms, parallel loops, and calls back to the host for operations
//! that are not compiled.
//!
//! ```text
//! calls.rs      an instruction -> a LibraryCall: the function, and its plan as numbers
//! library.rs    the table of library functions, and their symbols
//! plans/        shapes and layouts -> loops, strides, chunks for threads: no access to memory
//! dot.rs ...    the functions, on raw buffers: numbers back to a plan, then the work
//! pool.rs       parallel loops on the threads of rayon
//! host.rs       calls from generated code to the host: custom calls, evaluated operations, profiles
//! ```
//!
//! A backend describes an instruction by [`calls`], keeps the [`LibraryCall`], and calls the function with the pointers
//! of operands and results: through [`LibraryFunction::address`], or by its name in object code ([`symbols`]).
//! Kernels that a call hands along, such as a sort's comparator, are the backend's own code.

#![warn(missing_docs)]

pub mod calls;
mod convolution;
mod dot;
mod fft;
mod host;
mod kernel;
mod keyed_place;
mod library;
mod linalg;
mod line;
mod narrow_dot;
mod parallel;
mod plans;
mod pool;
mod profile;
mod random;
mod scatter;
mod sort;
mod top_k;

pub use host::{HostCall, RunContext};
pub use kernel::{KernelFn, LibraryFn};
pub use library::{
    BEGIN_THUNK, END_THUNK, Epilogue, HOST_CALL, LibraryCall, LibraryFunction, PARALLEL, PARALLEL_WITH_SCRATCH, Symbol,
    symbols,
};
pub use pool::{Helpers, parallel_for};
pub use profile::{OpenThunks, ThunkTable};
