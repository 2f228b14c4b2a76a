//! Recognition of NVIDIA's library calls in the operations of a program.
//!
//! ```text
//! dot          ─ Matmul       cuBLASLt    dot.rs, and its epilogue: epilogue.rs, gelu.rs
//! convolution  ─ Convolution  cuDNN       convolution.rs; arrays in another layout: rearrangement.rs
//! fft          ─ Fourier      cuFFT       fourier.rs, and what it sums divided
//! ```

mod convolution;
mod dot;
mod epilogue;
mod fourier;
mod gelu;
mod rearrangement;
#[cfg(test)]
mod reference;

use xla_hlo::ArrayShape;
use xla_hlo::ops::{DotAlgorithm, Op};

use crate::program::library_call::LibraryCall;
use crate::program::library_call::matmul::Precision;
pub(crate) use epilogue::absorb;
pub(crate) use rearrangement::Rearrangement;

/// Multiplications from which on a library is worth its call.
const LEAST_WORK: usize = 1 << 21;

/// An operation that a library computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecognizedCall {
    /// The call. Its arrays are the operation's operands and its result, in this order.
    pub call: LibraryCall,
    /// The rearrangements of operands to the library's layouts, where they differ; last, that of the result
    /// as the program wants it.
    pub arrays: Vec<Option<Rearrangement>>,
    /// The scaling of the result, in place.
    pub scaling: Option<Scaling>,
}

/// The division of all elements of an array by a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scaling {
    shape: ArrayShape,
    divisor: usize,
}

/// The call that computes an operation on row-major arrays, `operands` and `result`, on a GPU of that compute
/// capability; `None` if no library takes it, or if it is not worth it.
pub(crate) fn find(
    op: &Op,
    operands: &[&ArrayShape],
    result: &ArrayShape,
    capability: (u32, u32),
) -> Option<RecognizedCall> {
    match (op, operands) {
        (Op::Dot(op), [lhs, rhs]) => dot::find(op, [lhs, rhs, result], capability),
        (Op::Convolution(op), [lhs, rhs]) => convolution::find(op, [lhs, rhs, result], capability),
        (Op::Fft(op), [operand]) => fourier::find(op, operand, result),
        _ => None,
    }
}

/// The precision of a library's f32 products on a GPU of that compute capability. TF32 is for operations that ask for
/// it, or are marked by the pass `allow-tf32`: results are compared with those of other platforms, which compute what
/// nobody says otherwise of as exactly as the type.
fn precision(algorithm: Option<DotAlgorithm>, capability: (u32, u32)) -> Precision {
    let has_tf32 = capability >= (8, 0);
    if has_tf32 && algorithm == Some(DotAlgorithm::Tf32Tf32F32) { Precision::Tf32 } else { Precision::Exact }
}
