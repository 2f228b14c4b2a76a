//! Matmuls whose operands can come in stages.

use crate::fused::contraction::matmul::{Along, Matmul, MatmulSide};
use crate::fused::tuning::matmul_stages::WARPS_ALONG;
use crate::mma::OperandType;
use crate::simt::{COPY_BYTES, WARP};

/// Threads of a block.
pub(crate) const THREADS: u64 = WARPS_ALONG * WARPS_ALONG * WARP as u64;

/// Whether both operands lie in memory as they are multiplied, and their rows are whole chunks.
pub(crate) fn can_be_staged(matmul: &Matmul<'_>, unit: OperandType) -> bool {
    [MatmulSide::Left, MatmulSide::Right].into_iter().all(|side| {
        let (near, bytes) = (matmul.neighbours[side as usize], matmul.bytes[side as usize]);
        let lies = match (near.along, unit) {
            (Along::K, _) => matmul.k_strides[side as usize] == Some(1),
            (Along::Free, OperandType::F16 | OperandType::Bf16) => matmul.k_strides[side as usize].is_some(),
            // Matrices of 32-bit elements cannot be transposed.
            (Along::Free, OperandType::Tf32) => false,
        };
        lies && near.run.is_multiple_of(COPY_BYTES / bytes)
    })
}
