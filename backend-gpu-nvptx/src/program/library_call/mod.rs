//! Calls of NVIDIA's libraries as plain data, which compiling writes without any of the libraries.
//!
//! The `check` of each description says, without any library, whether a call is one that the library takes; lowering
//! asks it, and emits a kernel otherwise.

pub(crate) mod convolution;
mod element_type;
pub(crate) mod fourier;
pub(crate) mod matmul;

use serde::{Deserialize, Serialize};

use convolution::Convolution;
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
