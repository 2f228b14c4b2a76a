//! Recognition of operations that NVIDIA's libraries compute.
//!
//! ```text
//! dot          ─ Matmul       cuBLASLt    dot.rs, and its epilogue: epilogue.rs, gelu.rs
//! convolution  ─ Convolution  cuDNN       convolution.rs; arrays in another layout: rearrangement.rs
//! fft          ─ Fourier      cuFFT       fourier.rs, and the scaling of inverse transforms
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

/// Minimum number of multiplications for which a library call pays off.
const LEAST_WORK: usize = 1 << 21;

/// Operation that a library computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecognizedCall {
    /// Library call. Its arrays are the operation's operands and its result, in this order.
    pub call: LibraryCall,
    /// Rearrangements of the operands to the library's layouts, and finally of the result to the program's layout.
    /// `None` where both layouts are equal.
    pub arrays: Vec<Option<Rearrangement>>,
    /// Scaling of the result, in place.
    pub scaling: Option<Scaling>,
}

/// Division of all elements of an array by a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scaling {
    shape: ArrayShape,
    divisor: usize,
}

/// Returns the call that computes an operation on row-major arrays, `operands` and `result`, on a GPU of this compute
/// capability; `None` if no library takes it, or if it does not pay off.
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

/// Returns the precision of a library's f32 products on a GPU of this compute capability. TF32 is only used for
/// operations that request it or that the pass `allow-tf32` marks: results are compared with those of other platforms,
/// which use full precision unless the program states otherwise.
fn precision(algorithm: Option<DotAlgorithm>, capability: (u32, u32)) -> Precision {
    let has_tf32 = capability >= (8, 0);
    if has_tf32 && algorithm == Some(DotAlgorithm::Tf32Tf32F32) { Precision::Tf32 } else { Precision::Exact }
}
