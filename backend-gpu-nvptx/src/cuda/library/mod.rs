//! NVIDIA's libraries: each is loaded on its first call, and provides algorithms, workspace sizes and results.
//!
//! ```text
//! LibraryCall::Matmul(Matmul) ── gemm: row major to column major ── blas: cuBLASLt
//! LibraryCall::Convolution(Convolution) ── dnn: cuDNN's plans for a graph of operations
//! LibraryCall::Fourier(Fourier) ── fft: cuFFT
//! ```
//!
//! The `check` of each description decides, without any library, whether the library takes a call. Lowering uses it,
//! and emits a kernel if the library does not.

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

use super::collective::communicators;
use super::context::Context;
use super::stream::queue::Queue;
use crate::program::library_call::LibraryCall;
use blas::Blas;
use dnn::Dnn;
use fft::Fft;
use presence::{BLAS, DNN, FFT, NCCL, OptionalLibrary};

/// Library call with one of the library's algorithms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChosenCall {
    pub call: LibraryCall,
    /// Index in the library's order of preference; larger numbers denote the last algorithm.
    pub algorithm: usize,
}

/// Libraries of one device.
#[derive(Debug)]
pub(crate) struct Libraries {
    context: Arc<Context>,
    blas: OnceLock<Result<Blas>>,
    dnn: OnceLock<Result<Dnn>>,
    fft: OnceLock<Result<Fft>>,
}

impl Libraries {
    /// Creates the state without loading a library.
    pub fn new(context: &Arc<Context>) -> Libraries {
        Libraries { context: context.clone(), blas: OnceLock::new(), dnn: OnceLock::new(), fft: OnceLock::new() }
    }

    /// Returns the name of each library, with its version and file or the reason why it is missing. Opens all of them.
    pub fn describe(&self) -> Vec<(String, Result<String>)> {
        let versions = [
            (&BLAS, self.blas().map(Blas::version)),
            (&DNN, self.dnn().map(Dnn::version)),
            (&FFT, self.fft().and_then(Fft::version)),
            (&NCCL, communicators::version()),
        ];
        let line = |(library, version): (&OptionalLibrary, Result<String>)| {
            let told = version.and_then(|version| Ok(format!("{version}, {}", library.file()?)));
            (library.wanted.name.to_string(), told)
        };
        versions.map(line).into()
    }

    /// Returns the name and version of a call's library. [`Error::FailedPrecondition`] names a library that is not
    /// installed.
    pub fn version(&self, call: &LibraryCall) -> Result<String> {
        match call {
            LibraryCall::Matmul(_) => Ok(self.blas()?.version()),
            LibraryCall::Convolution(_) => Ok(self.dnn()?.version()),
            LibraryCall::Fourier(_) => self.fft()?.version(),
        }
    }

    /// Returns the number of the library's algorithms for a call on arrays at these addresses.
    pub fn algorithms(&self, call: &LibraryCall, addresses: &[u64]) -> Result<usize> {
        match call {
            LibraryCall::Matmul(matmul) => self.blas()?.algorithms(matmul, addresses),
            LibraryCall::Convolution(convolution) => self.dnn()?.algorithms(convolution, addresses),
            LibraryCall::Fourier(_) => Ok(1),
        }
    }

    /// Returns the size of a call's workspace in bytes; its address is a multiple of 256. [`Error::FailedPrecondition`]
    /// names a library that is not installed.
    pub fn workspace(&self, ChosenCall { call, algorithm }: &ChosenCall, addresses: &[u64]) -> Result<usize> {
        match call {
            LibraryCall::Matmul(matmul) => self.blas()?.workspace(matmul, *algorithm, addresses),
            LibraryCall::Convolution(convolution) => self.dnn()?.workspace(convolution, *algorithm, addresses),
            LibraryCall::Fourier(fourier) => self.fft()?.workspace(fourier),
        }
    }

    /// Sends a call to a queue. The description of the call defines the order of `addresses`.
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

/// Warns that our own kernels replace a library call, once per process for each reason.
pub(crate) fn tell_of_kernels(call: &LibraryCall, why: &Error) {
    let library = match call {
        LibraryCall::Matmul(_) => &BLAS,
        LibraryCall::Convolution(_) => &DNN,
        LibraryCall::Fourier(_) => &FFT,
    };
    if is_new(why) {
        tracing::warn!(%why, "{} is not used: kernels of this compiler replace its calls", library.wanted.name);
    }
}

/// Warns that a library executes a call without its epilogue, once per process for each reason.
pub(crate) fn tell_of_epilogue(why: &Error) {
    if is_new(why) {
        tracing::warn!(%why, "a library call runs without its epilogue, which a kernel of this compiler computes");
    }
}

/// Whether the reason has not been reported yet.
fn is_new(why: &Error) -> bool {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(why.to_string())
}
