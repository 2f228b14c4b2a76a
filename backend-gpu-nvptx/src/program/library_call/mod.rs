//! Calls of NVIDIA's libraries as plain data, which the compiler creates without any of the libraries.
//!
//! The `check` of each description decides, without any library, whether the library takes a call. Lowering uses it,
//! and emits a kernel if the library does not.

pub(crate) mod convolution;
mod element_type;
pub(crate) mod fourier;
pub(crate) mod matmul;

use std::fmt;

use serde::{Deserialize, Serialize};
#[cfg(feature = "compile")]
use xla_service::thunks::LibraryOp;

use convolution::Convolution;
use fourier::Fourier;
use matmul::Matmul;

/// Library call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum LibraryCall {
    /// Matrix multiplication, by cuBLASLt.
    Matmul(Matmul),
    /// Convolution or one of its gradients, by cuDNN.
    Convolution(Convolution),
    /// Fourier transforms, by cuFFT.
    Fourier(Fourier),
}

#[cfg(feature = "compile")]
impl LibraryCall {
    /// Returns the operation that thunks and reports name.
    pub fn op(&self) -> LibraryOp {
        match self {
            LibraryCall::Matmul(_) => LibraryOp::Matmul,
            LibraryCall::Convolution(_) => LibraryOp::Convolution,
            LibraryCall::Fourier(_) => LibraryOp::Fft,
        }
    }
}

/// Formats types and sizes: `f32 128x64x32 x3` is three products of 128 x 32 by 32 x 64.
impl fmt::Display for LibraryCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = |f: &mut fmt::Formatter<'_>, batch: usize| if batch > 1 { write!(f, " x{batch}") } else { Ok(()) };
        let sizes = |sizes: Vec<String>| sizes.join("x");
        match self {
            LibraryCall::Matmul(Matmul { m, n, k, batch, result, .. }) => {
                write!(f, "{} {m}x{n}x{k}", result.element)?;
                times(f, *batch)
            }
            LibraryCall::Convolution(Convolution { element, spatial, batch, .. }) => {
                write!(
                    f,
                    "{element} {}",
                    sizes(spatial.iter().map(|dimension| dimension.output.to_string()).collect())
                )?;
                times(f, *batch)
            }
            LibraryCall::Fourier(Fourier { lengths, batch, is_double, .. }) => {
                let element = if *is_double { "f64" } else { "f32" };
                write!(f, "{element} {}", sizes(lengths.iter().map(usize::to_string).collect()))?;
                times(f, *batch)
            }
        }
    }
}
