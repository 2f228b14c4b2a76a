//! Linear algebra, Fourier transforms, batch normalization.

use xla_hlo::ops::{BatchNorm, BatchNormKind, Cholesky, Epsilon, Fft, FftType, Op, TransposeKind, TriangularSolve};
use xla_hlo::{Error, InstrId, Result};

use super::call::Call;
use super::context::Lowering;
use crate::ir::EnumKind;

/// Lowers an operation on matrices, a Fourier transform or a batch normalization.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    let op = match call.name {
        "cholesky" => call.attributes.flag("lower").map(|lower| Cholesky { lower }.into()),
        "triangular_solve" => triangular_solve(call),
        "fft" => fft(call),
        "batch_norm_training" => batch_norm(call, BatchNormKind::Training),
        "batch_norm_inference" => batch_norm(call, BatchNormKind::Inference),
        "batch_norm_grad" => batch_norm(call, BatchNormKind::Grad),
        _ => return None,
    };
    Some(op.and_then(|op| lowering.add(op, call.shape(), call.operands.clone())))
}

fn triangular_solve(call: &Call<'_>) -> Result<Op> {
    let flag = |name| call.attributes.flag(name);
    let transpose_a = match call.attributes.enumeration("transpose_a", EnumKind::Transpose)? {
        "NO_TRANSPOSE" => TransposeKind::NoTranspose,
        "TRANSPOSE" => TransposeKind::Transpose,
        "ADJOINT" => TransposeKind::Adjoint,
        other => {
            return Err(Error::invalid_argument(format!(
                "transpose_a is {other}, not NO_TRANSPOSE, TRANSPOSE or ADJOINT"
            )));
        }
    };
    let (left_side, lower, unit_diagonal) = (flag("left_side")?, flag("lower")?, flag("unit_diagonal")?);
    Ok(TriangularSolve { left_side, lower, unit_diagonal, transpose_a }.into())
}

fn fft(call: &Call<'_>) -> Result<Op> {
    let fft_type = match call.attributes.enumeration("fft_type", EnumKind::FftType)? {
        "FFT" => FftType::Fft,
        "IFFT" => FftType::Ifft,
        "RFFT" => FftType::Rfft,
        _ => FftType::Irfft,
    };
    Ok(Fft { fft_type, fft_length: call.attributes.indices("fft_length")? }.into())
}

fn batch_norm(call: &Call<'_>, kind: BatchNormKind) -> Result<Op> {
    let epsilon = Epsilon::new(call.attributes.float("epsilon")?);
    Ok(BatchNorm { kind, epsilon, feature_index: call.attributes.index("feature_index")? }.into())
}
