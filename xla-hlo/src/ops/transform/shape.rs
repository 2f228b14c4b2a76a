//! Shape rules of the transform family.

use super::*;
use crate::ElementType;
use crate::ops::checks::{self, ensure};

/// Checks that the sizes of the innermost dimensions equal `fft_length`; returns the shape of the result.
pub(super) fn fft(op: &Fft, cx: &ShapeContext<'_>) -> Result<Shape> {
    let operand = cx.array(0)?;
    let rank = op.fft_length.len();
    ensure!((1..=3).contains(&rank), "fft_length {:?} must have 1 to 3 dimensions", op.fft_length);
    ensure!(
        rank <= operand.rank(),
        "fft_length {:?} has {rank} dimensions, more than the operand {operand}",
        op.fft_length
    );
    let mut dims = operand.dims().to_vec();
    let first = dims.len() - rank;
    let last = dims.len() - 1;
    let length = op.fft_length[rank - 1];
    let element_type = result_type(op, operand.element_type())?;
    let is_empty_inverse = op.fft_type == FftType::Irfft && length == 0 && dims[last] <= 1;
    for (d, &n) in (first..).zip(&op.fft_length) {
        let expected = if op.fft_type == FftType::Irfft && d == last { Fft::half_size(n) } else { n };
        ensure!(
            dims[d] == expected || (d == last && is_empty_inverse),
            "fft_length {:?} requires size {expected} in dimension {d}, which has size {} in the operand {operand}",
            op.fft_length,
            dims[d]
        );
    }
    match op.fft_type {
        FftType::Fft | FftType::Ifft => {}
        FftType::Rfft => dims[last] = Fft::half_size(length),
        FftType::Irfft => dims[last] = length,
    }
    checks::array(element_type, dims)
}

fn result_type(op: &Fft, operand: ElementType) -> Result<ElementType> {
    use ElementType::{C64, C128, F32, F64};
    match (op.fft_type, operand) {
        (FftType::Fft | FftType::Ifft, C64 | C128) => Ok(operand),
        (FftType::Rfft, F32) => Ok(C64),
        (FftType::Rfft, F64) => Ok(C128),
        (FftType::Irfft, C64) => Ok(F32),
        (FftType::Irfft, C128) => Ok(F64),
        (FftType::Fft | FftType::Ifft | FftType::Irfft, _) => Err(crate::Error::invalid_argument(format!(
            "the operand must be of c64 or c128, its elements are {operand}"
        ))),
        (FftType::Rfft, _) => Err(crate::Error::invalid_argument(format!(
            "the operand must be of f32 or f64, its elements are {operand}"
        ))),
    }
}
