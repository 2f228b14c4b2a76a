//! Libraries of NVIDIA: loaded when first called, and asked for algorithms, workspaces and results.
//!
//! ```text
//! LibraryCall::Matmul(Matmul) ── gemm: row major to column major ── blas: cuBLASLt
//! LibraryCall::Convolution(Convolution) ── dnn: cuDNN's plans for a graph of operations
//! LibraryCall::Fourier(Fourier) ── fft: cuFFT
//! ```
//!
//! Each library is loaded when it is first called. The `check` of each description says, without any library, whether a
//! call is one that the library takes; lowering asks it, and emits a kernel otherwise.

pub(crate) mod blas;
pub(crate) mod dnn;
pub(crate) mod fft;
mod gemm;
pub(crate) mod presence;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use xla_hlo::{Error, Result};

use super::context::Context;
use super::stream::queue::Queue;
use crate::program::library_call::LibraryCall;
use blas::Blas;
use dnn::Dnn;
use fft::Fft;
use presence::{BLAS, DNN, FFT, OptionalLibrary};

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
    /// Loads no library yet.
    pub fn new(context: &Arc<Context>) -> Libraries {
        Libraries { context: context.clone(), blas: OnceLock::new(), dnn: OnceLock::new(), fft: OnceLock::new() }
    }

    /// Name of each library, and its version and file or why there is none. Opens them all.
    pub fn describe(&self) -> Vec<(String, Result<String>)> {
        let versions = [
            (&BLAS, self.blas().map(Blas::version)),
            (&DNN, self.dnn().map(Dnn::version)),
            (&FFT, self.fft().and_then(Fft::version)),
        ];
        let line = |(library, version): (&OptionalLibrary, Result<String>)| {
            let told = version.and_then(|version| Ok(format!("{version}, {}", library.file()?)));
            (library.wanted.name.to_string(), told)
        };
        versions.map(line).into()
    }

    /// The name and version of a call's library. [`Error::FailedPrecondition`] if it is not installed, saying which.
    pub fn version(&self, call: &LibraryCall) -> Result<String> {
        match call {
            LibraryCall::Matmul(_) => Ok(self.blas()?.version()),
            LibraryCall::Convolution(_) => Ok(self.dnn()?.version()),
            LibraryCall::Fourier(_) => self.fft()?.version(),
        }
    }

    /// Number of the library's algorithms for a call on arrays at those addresses.
    pub fn algorithms(&self, call: &LibraryCall, addresses: &[u64]) -> Result<usize> {
        match call {
            LibraryCall::Matmul(matmul) => self.blas()?.algorithms(matmul, addresses),
            LibraryCall::Convolution(convolution) => self.dnn()?.algorithms(convolution, addresses),
            LibraryCall::Fourier(_) => Ok(1),
        }
    }

    /// Bytes of a call's workspace, aligned to 256. [`Error::FailedPrecondition`] if the library
    /// is not installed, saying which.
    pub fn workspace(&self, ChosenCall { call, algorithm }: &ChosenCall, addresses: &[u64]) -> Result<usize> {
        match call {
            LibraryCall::Matmul(matmul) => self.blas()?.workspace(matmul, *algorithm, addresses),
            LibraryCall::Convolution(convolution) => self.dnn()?.workspace(convolution, *algorithm, addresses),
            LibraryCall::Fourier(fourier) => self.fft()?.workspace(fourier),
        }
    }

    /// Sends a call to a queue, with the addresses of its arrays in the order that its description tells, and that of
    /// its workspace.
    pub(crate) fn send(&self, chosen: &ChosenCall, addresses: &[u64], workspace: u64, queue: &Queue) -> Result<()> {
        let ChosenCall { call, algorithm } = chosen;
        match call {
            LibraryCall::Matmul(matmul) => self.blas()?.run(matmul, *algorithm, addresses, workspace, queue),
            LibraryCall::Convolution(convolution) => {
                self.dnn()?.run(convolution, *algorithm, addresses, workspace, queue)
            }
            LibraryCall::Fourier(fourier) => self.fft()?.run(fourier, addresses, workspace, queue),
        }
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

/// Warns that kernels of our own do what was lowered for a library, once in a process for each reason.
pub(crate) fn tell_of_kernels(call: &LibraryCall, why: &Error) {
    let library = match call {
        LibraryCall::Matmul(_) => &BLAS,
        LibraryCall::Convolution(_) => &DNN,
        LibraryCall::Fourier(_) => &FFT,
    };
    if is_new(why) {
        tracing::warn!(%why, "{} is not used: kernels of this compiler take its place", library.wanted.name);
    }
}

/// Warns that a library does a call, but not what comes after it, once in a process for each reason.
pub(crate) fn tell_of_epilogue(why: &Error) {
    if is_new(why) {
        tracing::warn!(%why, "a kernel of this compiler goes on after a library's call");
    }
}

/// Whether nobody was told of that reason yet.
fn is_new(why: &Error) -> bool {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(why.to_string())
}
