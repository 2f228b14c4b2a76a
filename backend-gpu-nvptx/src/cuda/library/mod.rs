//! Calls of NVIDIA's libraries: as plain data, which compiling makes without any of them, and run where they are installed.
//!
//! ```text
//! LibraryCall::Matmul(Matmul) ── gemm: row major to column major ── blas: cuBLASLt
//! LibraryCall::Convolution    ── dnn: cuDNN
//! LibraryCall::Fft            ── fft: cuFFT
//! ```
//!
//! Each library is loaded when it is first called. [`LibraryCall::check`] says, without any library, whether a call is one that the
//! library takes; lowering asks it, and emits a kernel otherwise.

pub(crate) mod blas;
pub(crate) mod gemm;
pub(crate) mod matmul;

use std::sync::{Arc, OnceLock};

use xla_hlo::{Error, Result};

use super::context::Context;
use super::executor::scratch;
use super::queue::Queue;
use super::stream::CudaStream;
use blas::Blas;
use matmul::Matmul;

/// One call of a library.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LibraryCall {
    /// A product of matrices, by cuBLASLt.
    Matmul(Matmul),
}

impl LibraryCall {
    /// Whether the library takes the call on a GPU of that compute capability; [`Error::Unimplemented`] says why not.
    pub fn check(&self, capability: (u32, u32)) -> Result<()> {
        match self {
            LibraryCall::Matmul(matmul) => matmul.check(capability),
        }
    }
}

/// The libraries of one device.
#[derive(Debug)]
pub(crate) struct Libraries {
    context: Arc<Context>,
    blas: OnceLock<Result<Blas>>,
}

impl Libraries {
    /// No library is loaded yet.
    pub fn new(context: &Arc<Context>) -> Libraries {
        Libraries { context: context.clone(), blas: OnceLock::new() }
    }

    /// Bytes of the memory that a call takes for itself, aligned to 256. [`Error::FailedPrecondition`] if the library is not
    /// installed, saying which.
    pub fn workspace(&self, call: &LibraryCall, addresses: &[u64]) -> Result<usize> {
        match call {
            LibraryCall::Matmul(matmul) => self.blas()?.workspace(matmul, addresses),
        }
    }

    /// Sends a call to a queue, with the addresses of its arrays in the order that its description tells, and that of its workspace.
    pub(super) fn send(&self, call: &LibraryCall, addresses: &[u64], workspace: u64, queue: &Queue) -> Result<()> {
        match call {
            LibraryCall::Matmul(matmul) => self.blas()?.run(matmul, addresses, workspace, queue),
        }
    }

    /// Sends a call to a stream, with memory for itself.
    pub fn run(&self, call: &LibraryCall, addresses: &[u64], stream: &CudaStream) -> Result<()> {
        let bytes = self.workspace(call, addresses)?;
        let workspace = scratch(stream, bytes)?;
        self.send(call, addresses, workspace.address_on(stream, 0, bytes)?, stream.queue())
    }

    fn blas(&self) -> Result<&Blas> {
        self.blas.get_or_init(|| Blas::load(&self.context)).as_ref().map_err(Error::again)
    }
}

/// The error for a library that is not installed: `file` is what was looked for, `package` the Python package that has it.
fn missing(library: &str, file: &str, package: &str) -> Error {
    Error::failed_precondition(format!(
        "{library} is not installed: {file} was not found; install it with the CUDA toolkit, or the Python package {package} with its \
         folder in LD_LIBRARY_PATH"
    ))
}
