//! Calls of NVIDIA's libraries: as plain data, which compiling makes without any of them, and run where they are
//! installed.
//!
//! ```text
//! LibraryCall::Matmul(Matmul) ── gemm: row major to column major ── blas: cuBLASLt
//! LibraryCall::Convolution(Convolution) ── dnn: cuDNN
//! LibraryCall::Fourier(Fourier) ── fft: cuFFT
//! ```
//!
//! Each library is loaded when it is first called. The `check` of each description says, without any library, whether a
//! call is one that the library takes; lowering asks it, and emits a kernel otherwise.

pub(crate) mod blas;
pub(crate) mod convolution;
pub(crate) mod dnn;
pub(crate) mod fft;
pub(crate) mod fourier;
mod gemm;
pub(crate) mod matmul;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use xla_hlo::{Error, Result};

use super::context::Context;
use super::executor::scratch;
use super::queue::Queue;
use super::stream::CudaStream;
use blas::Blas;
use convolution::Convolution;
use dnn::Dnn;
use fft::Fft;
use fourier::Fourier;
use matmul::Matmul;

/// One call of a library.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum LibraryCall {
    /// A product of matrices, by cuBLASLt.
    Matmul(Matmul),
    /// A convolution or a derivative of one, by cuDNN.
    Convolution(Convolution),
    /// Fourier transforms, by cuFFT.
    Fourier(Fourier),
}

/// A call with the library's algorithm for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChosenCall {
    pub call: LibraryCall,
    /// Its number in the library's own order of preference; the last one for greater numbers.
    pub algorithm: usize,
}

/// The libraries of one device.
#[derive(Debug)]
pub(crate) struct Libraries {
    context: Arc<Context>,
    blas: OnceLock<Result<Blas>>,
    dnn: OnceLock<Result<Dnn>>,
    fft: OnceLock<Result<Fft>>,
}

impl Libraries {
    /// No library is loaded yet.
    pub fn new(context: &Arc<Context>) -> Libraries {
        Libraries { context: context.clone(), blas: OnceLock::new(), dnn: OnceLock::new(), fft: OnceLock::new() }
    }

    /// The name and version of a call's library. [`Error::FailedPrecondition`] if it is not installed, saying which.
    pub fn version(&self, call: &LibraryCall) -> Result<String> {
        match call {
            LibraryCall::Matmul(_) => Ok(self.blas()?.version()),
            LibraryCall::Convolution(_) => Ok(self.dnn()?.version()),
            LibraryCall::Fourier(_) => self.fft()?.version(),
        }
    }

    /// How many algorithms the library has for a call on arrays there.
    pub fn algorithms(&self, call: &LibraryCall, addresses: &[u64]) -> Result<usize> {
        match call {
            LibraryCall::Matmul(matmul) => self.blas()?.algorithms(matmul, addresses),
            LibraryCall::Convolution(convolution) => self.dnn()?.algorithms(convolution),
            LibraryCall::Fourier(_) => Ok(1),
        }
    }

    /// Bytes of the memory that a call takes for itself, aligned to 256. [`Error::FailedPrecondition`] if the library
    /// is not installed, saying which.
    pub fn workspace(&self, ChosenCall { call, algorithm }: &ChosenCall, addresses: &[u64]) -> Result<usize> {
        match call {
            LibraryCall::Matmul(matmul) => self.blas()?.workspace(matmul, *algorithm, addresses),
            LibraryCall::Convolution(convolution) => self.dnn()?.workspace(convolution, *algorithm),
            LibraryCall::Fourier(fourier) => self.fft()?.workspace(fourier),
        }
    }

    /// Sends a call to a queue, with the addresses of its arrays in the order that its description tells, and that of
    /// its workspace.
    pub(super) fn send(&self, chosen: &ChosenCall, addresses: &[u64], workspace: u64, queue: &Queue) -> Result<()> {
        let ChosenCall { call, algorithm } = chosen;
        match call {
            LibraryCall::Matmul(matmul) => self.blas()?.run(matmul, *algorithm, addresses, workspace, queue),
            LibraryCall::Convolution(convolution) => {
                self.dnn()?.run(convolution, *algorithm, addresses, workspace, queue)
            }
            LibraryCall::Fourier(fourier) => self.fft()?.run(fourier, addresses, workspace, queue),
        }
    }

    /// Sends a call to a stream, with memory for itself.
    pub fn run(&self, call: &ChosenCall, addresses: &[u64], stream: &CudaStream) -> Result<()> {
        let bytes = self.workspace(call, addresses)?;
        let workspace = scratch(stream, bytes)?;
        stream.library(self, call, addresses, workspace.address_on(stream, 0, bytes)?)
    }

    fn blas(&self) -> Result<&Blas> {
        self.blas.get_or_init(|| Blas::load(&self.context)).as_ref().map_err(Error::again)
    }

    fn dnn(&self) -> Result<&Dnn> {
        self.dnn.get_or_init(|| Dnn::load(&self.context)).as_ref().map_err(Error::again)
    }

    fn fft(&self) -> Result<&Fft> {
        self.fft.get_or_init(|| Fft::load(&self.context)).as_ref().map_err(Error::again)
    }
}

/// Sees that a library is there, with the functions that are called: cudarc looks for a function when it is first
/// called, and panics where it finds none.
fn load(present: bool, symbols: &[&str], has: impl Fn(&str) -> bool, absent: impl Fn() -> Error) -> Result<()> {
    if !present {
        return Err(absent());
    }
    match symbols.iter().find(|symbol| !has(symbol)) {
        Some(symbol) => Err(absent().note(format!("The one that was found has another version: it lacks {symbol}."))),
        None => Ok(()),
    }
}

/// The error for a library that is not installed: `file` is what was looked for, `package` the Python package that has
/// it.
fn missing(library: &str, file: &str, package: &str) -> Error {
    Error::failed_precondition(format!(
        "{library} is not installed: {file} was not found; install it with the CUDA toolkit, or the Python package {package} with its \
         folder in LD_LIBRARY_PATH"
    ))
}
