//! Table of library functions: names in object code, addresses, descriptions of calls.

use std::ffi::c_void;

use xla_service::thunks::LibraryOp;

use crate::kernel::LibraryFn;
use crate::{convolution, dot, fft, host, linalg, narrow_dot, parallel, random, scatter, sort, top_k};

/// Symbol of the function that runs a kernel's work items on several threads.
pub const PARALLEL: &str = "xla_cpu_parallel";
/// Symbol of the function that runs a kernel's work items on several threads, each with its own scratch memory.
pub const PARALLEL_WITH_SCRATCH: &str = "xla_cpu_parallel_with_scratch";
/// Symbol of the function that evaluates an operation on the host.
pub const HOST_CALL: &str = "xla_cpu_host_call";

/// Symbol of the function that reports the start of a thunk.
pub const BEGIN_THUNK: &str = "xla_cpu_begin_thunk";
/// Symbol of the function that reports the end of a thunk.
pub const END_THUNK: &str = "xla_cpu_end_thunk";

macro_rules! library {
    ($($(#[$doc:meta])* $variant:ident $symbol:literal = $function:path;)*) => {
        /// Library functions for operations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum LibraryFunction { $($(#[$doc])* $variant,)* }

        impl LibraryFunction {
            const ALL: &[LibraryFunction] = &[$(LibraryFunction::$variant,)*];

            /// Returns the name in object code.
            pub fn symbol(self) -> &'static str {
                match self { $(LibraryFunction::$variant => $symbol,)* }
            }

            /// Returns the function. The descriptor of a call determines the buffers that it takes.
            pub fn address(self) -> LibraryFn {
                match self { $(LibraryFunction::$variant => $function,)* }
            }
        }
    };
}

library! {
    /// Computes a dot.
    Dot "xla_cpu_dot" = dot::xla_cpu_dot;
    /// Computes a dot of narrow floats, or of floats of different types.
    NarrowDot "xla_cpu_narrow_dot" = narrow_dot::xla_cpu_narrow_dot;
    /// Computes a convolution.
    Convolution "xla_cpu_convolution" = convolution::xla_cpu_convolution;
    /// Sorts rows of arrays together.
    Sort "xla_cpu_sort" = sort::xla_cpu_sort;
    /// Combines updates into arrays at given indices.
    Scatter "xla_cpu_scatter" = scatter::xla_cpu_scatter;
    /// Finds the best elements of rows.
    TopK "xla_cpu_top_k" = top_k::xla_cpu_top_k;
    /// Advances the device's random counter.
    RandomState "xla_cpu_random_state" = random::xla_cpu_random_state;
    /// Computes a Fourier transform.
    Fft "xla_cpu_fft" = fft::xla_cpu_fft;
    /// Computes the Cholesky factors of positive definite matrices.
    Cholesky "xla_cpu_cholesky" = linalg::xla_cpu_cholesky;
    /// Solves triangular systems of equations.
    TriangularSolve "xla_cpu_triangular_solve" = linalg::xla_cpu_triangular_solve;
}

impl LibraryFunction {
    /// Returns the operation whose label appears in reports.
    pub fn op(self) -> LibraryOp {
        match self {
            LibraryFunction::Dot | LibraryFunction::NarrowDot => LibraryOp::Matmul,
            LibraryFunction::Convolution => LibraryOp::Convolution,
            LibraryFunction::Sort => LibraryOp::Sort,
            LibraryFunction::Scatter => LibraryOp::Scatter,
            LibraryFunction::TopK => LibraryOp::TopK,
            LibraryFunction::RandomState => LibraryOp::RandomState,
            LibraryFunction::Fft => LibraryOp::Fft,
            LibraryFunction::Cholesky => LibraryOp::Cholesky,
            LibraryFunction::TriangularSolve => LibraryOp::TriangularSolve,
        }
    }

    /// Whether the run's context precedes the operands and results, for access to state that programs share.
    pub fn takes_context(self) -> bool {
        self == LibraryFunction::RandomState
    }
}

/// Call of a library function, without the operands: data that generated code carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryCall {
    /// Function to call.
    pub function: LibraryFunction,
    /// Description of the call; each function defines the meaning of its numbers.
    pub descriptor: Vec<i64>,
    /// Kernels that the function calls, such as the comparator of a sort, by their number in the program.
    pub kernels: Vec<u32>,
    /// Kernel that processes the result in place.
    pub epilogue: Option<Epilogue>,
}

impl LibraryCall {
    /// Creates a call without kernels.
    pub fn new(function: LibraryFunction, descriptor: Vec<i64>) -> LibraryCall {
        LibraryCall { function, descriptor, kernels: Vec::new(), epilogue: None }
    }
}

/// Kernel that runs after a library function and updates its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epilogue {
    /// Indices of the operands of the whole instruction that the library function takes.
    pub operands: Vec<usize>,
    /// Kernel by its number in the program. Its arguments are all operands, the library function's result, and its own
    /// result; the latter two are both the result of the whole instruction.
    pub kernel: u32,
}

/// Function that generated code may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Name in object code.
    pub name: &'static str,
    /// Address of the first instruction.
    pub address: *const c_void,
}

/// Returns all functions that generated code may call, for its linker: the library functions, [`PARALLEL`],
/// [`PARALLEL_WITH_SCRATCH`], [`HOST_CALL`], [`BEGIN_THUNK`] and [`END_THUNK`].
pub fn symbols() -> impl Iterator<Item = Symbol> {
    let library = LibraryFunction::ALL.iter().map(|f| Symbol { name: f.symbol(), address: f.address() as *const _ });
    [
        Symbol { name: PARALLEL, address: parallel::xla_cpu_parallel as *const _ },
        Symbol { name: PARALLEL_WITH_SCRATCH, address: parallel::xla_cpu_parallel_with_scratch as *const _ },
        Symbol { name: HOST_CALL, address: host::xla_cpu_host_call as *const _ },
        Symbol { name: BEGIN_THUNK, address: host::xla_cpu_begin_thunk as *const _ },
        Symbol { name: END_THUNK, address: host::xla_cpu_end_thunk as *const _ },
    ]
    .into_iter()
    .chain(library)
}
