//! Matmuls that support multistage `cp.async` pipelines.

use crate::fused::contraction::matmul::{Along, Matmul, MatmulSide};
use crate::fused::tuning::matmul_stages::WARPS_ALONG;
use crate::mma::OperandType;
use crate::simt::{COPY_BYTES, WARP};

/// Number of threads per block.
pub(crate) const THREADS: u64 = WARPS_ALONG * WARPS_ALONG * WARP as u64;

/// Returns whether both operands are arrays in memory whose type and order suit the tensor core, with rows of whole
/// 16-byte chunks.
pub(crate) fn can_be_multistage(matmul: &Matmul<'_>, unit: OperandType) -> bool {
    [MatmulSide::Left, MatmulSide::Right].into_iter().all(|side| {
        let (near, bytes) = (matmul.neighbours[side as usize], matmul.bytes[side as usize]);
        let lies = match (near.along, unit) {
            (Along::K, _) => matmul.k_strides[side as usize] == Some(1),
            (Along::Free, OperandType::F16 | OperandType::Bf16) => matmul.k_strides[side as usize].is_some(),
            // `ldmatrix` transposes only matrices of 16-bit elements.
            (Along::Free, OperandType::Tf32) => false,
        };
        lies && near.run.is_multiple_of(COPY_BYTES / bytes)
    })
}
