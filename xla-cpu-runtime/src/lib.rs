//! Library functions of CPU backends, independent of the code generator. Does not link LLVM.
//!
//! Contains matrix products, convolutions, sorts, transforms, parallel loops, and calls back to the host for operations
//! that are not compiled.
//!
//! ```text
//! calls.rs      instruction -> LibraryCall: the function, and its plan encoded as numbers
//! library.rs    table of library functions, and their symbols
//! plans/        shapes and layouts -> loops, strides, chunks for threads: no access to memory
//! dot.rs ...    the functions, on raw buffers: decode the plan, then compute
//! pool.rs       parallel loops on the threads of rayon
//! host.rs       calls from generated code to the host: custom calls, evaluated operations, profiles
//! ```
//!
//! A backend lowers an instruction with [`calls`], stores the [`LibraryCall`], and calls the function with the pointers
//! of operands and results: through [`LibraryFunction::address`], or by its name in object code ([`symbols`]). The
//! backend generates the kernels that are passed to a call, such as a sort's comparator.

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
