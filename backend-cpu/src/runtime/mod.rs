//! Runtime of generated code: parallel loops, library functions, the way back to the host for operations not compiled.
//!
//! Every function here is named in [`symbols`], which the JIT linker resolves. Their C signatures are stated where the
//! code generator declares them (`entry`). Library functions (matrix products and the like) all have one,
//! [`LibraryFn`], and are listed in [`LibraryFunction`].

mod convolution;
mod dot;
mod fft;
mod host;
mod keyed_place;
mod linalg;
mod line;
mod narrow_dot;
mod parallel;
pub(crate) mod pool;
mod profile;
mod random;
mod scatter;
mod sort;
mod top_k;

pub(crate) use convolution::{ConvolutionElement, convolution_descriptor};
pub(crate) use dot::{DotElement, dot_descriptor};
pub(crate) use fft::fft_descriptor;
pub(crate) use host::{HostCall, RunContext};
pub(crate) use linalg::{cholesky_descriptor, triangular_solve_descriptor};
pub(crate) use narrow_dot::NarrowTypes;
pub(crate) use profile::{OpenThunks, ThunkTable};

use xla_llvm::jit::RuntimeSymbol;
use xla_service::thunks::LibraryOp;

/// Runs a kernel's work items on several threads.
pub(crate) const PARALLEL: &str = "xla_cpu_parallel";
/// Evaluates an operation on the host.
pub(crate) const HOST_CALL: &str = "xla_cpu_host_call";

/// Hears that a thunk begins.
pub(crate) const BEGIN_THUNK: &str = "xla_cpu_begin_thunk";
/// Hears that a thunk ends.
pub(crate) const END_THUNK: &str = "xla_cpu_end_thunk";

/// A kernel: buffer pointers, first work item, one past the last.
pub(crate) type KernelFn = unsafe extern "C" fn(*const *mut u8, i64, i64);

/// A library function: the pointers of operands and results, the kernels that the call hands along, the numbers that
/// describe the call and how many they are, and how many threads it may use.
type LibraryFn = unsafe extern "C" fn(*const *mut u8, *const KernelFn, *const i64, i64, i64);

macro_rules! library {
    ($($(#[$doc:meta])* $variant:ident $symbol:literal = $function:path;)*) => {
        /// The library functions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum LibraryFunction { $($(#[$doc])* $variant,)* }

        impl LibraryFunction {
            const ALL: &[LibraryFunction] = &[$(LibraryFunction::$variant,)*];

            /// Its name in object code.
            pub(crate) fn symbol(self) -> &'static str {
                match self { $(LibraryFunction::$variant => $symbol,)* }
            }

            fn address(self) -> LibraryFn {
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
    /// Combines updates into arrays at indexed places.
    Scatter "xla_cpu_scatter" = scatter::xla_cpu_scatter;
    /// Finds the best elements of rows.
    TopK "xla_cpu_top_k" = top_k::xla_cpu_top_k;
    /// Moves the device's random counter on.
    RandomState "xla_cpu_random_state" = random::xla_cpu_random_state;
    /// Computes a Fourier transform.
    Fft "xla_cpu_fft" = fft::xla_cpu_fft;
    /// Decomposes positive definite matrices.
    Cholesky "xla_cpu_cholesky" = linalg::xla_cpu_cholesky;
    /// Solves triangular systems of equations.
    TriangularSolve "xla_cpu_triangular_solve" = linalg::xla_cpu_triangular_solve;
}

impl LibraryFunction {
    /// The operation that reports name.
    pub(crate) fn op(self) -> LibraryOp {
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

    /// Whether the run's context comes before the operands and results: for what a program shares with others.
    pub(crate) fn takes_context(self) -> bool {
        self == LibraryFunction::RandomState
    }
}

/// A call of a library function, but for the operands: data that generated code carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LibraryCall {
    /// Function to call.
    pub function: LibraryFunction,
    /// Description of the call; each function states its own meaning.
    pub descriptor: Vec<i64>,
    /// Kernels handed along, such as the comparison of a sort, by their number in the program.
    pub kernels: Vec<u32>,
    /// Kernel that processes the result in place.
    pub epilogue: Option<Epilogue>,
}

/// A kernel that runs after a library function and reads and writes its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Epilogue {
    /// Operands of the whole that the library function takes, by their places.
    pub operands: Vec<usize>,
    /// The kernel by its number in the program. It takes all operands, the library function's result, and where its own
    /// result goes: both are the result of the whole.
    pub kernel: u32,
}

/// Names and addresses for the linker.
pub(crate) fn symbols() -> Vec<RuntimeSymbol<'static>> {
    let library = LibraryFunction::ALL.iter();
    let library = library.map(|f| RuntimeSymbol { name: f.symbol(), address: f.address() as *const _ });
    [
        RuntimeSymbol { name: PARALLEL, address: parallel::xla_cpu_parallel as *const _ },
        RuntimeSymbol { name: HOST_CALL, address: host::xla_cpu_host_call as *const _ },
        RuntimeSymbol { name: BEGIN_THUNK, address: host::xla_cpu_begin_thunk as *const _ },
        RuntimeSymbol { name: END_THUNK, address: host::xla_cpu_end_thunk as *const _ },
    ]
    .into_iter()
    .chain(library)
    .collect()
}
