//! Matmuls that warp groups can multiply, and the memory that their tiles take.

use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::simt::bulk_operand::BulkTile;
use crate::fused::tuning::matmul_groups::{DEPTH, LEAST_EXTENT, MOST_BYTES, MOST_STAGES};
use crate::mma::{GROUP_ROWS, OperandType, group_block};
use crate::target::Target;

/// Whether warp groups of a target multiply tiles of a matmul.
pub(crate) fn can_be_grouped(matmul: &Matmul<'_>, unit: OperandType, target: &Target) -> bool {
    let fits = |side: MatmulSide| {
        matmul.bulk[side as usize].as_ref().is_some_and(|layout| BulkTile::new(layout, GROUP_ROWS, DEPTH).is_some())
            && matmul.extent(side) >= LEAST_EXTENT
    };
    target.has_warp_groups(unit) && fits(MatmulSide::Left) && fits(MatmulSide::Right)
}

/// Groups that multiply, in tiles of so many rows.
pub(crate) fn groups(rows: u64) -> u64 {
    rows / GROUP_ROWS
}

/// Threads of a block of so many rows.
pub(crate) fn threads(rows: u64) -> u64 {
    group_block(groups(rows))
}

/// Stages of tiles of so many rows and columns.
pub(crate) fn stages([rows, columns]: [u64; 2], bytes: u64) -> u64 {
    let stage = (rows + columns) * DEPTH * bytes;
    // Two blocks of one group are on a multiprocessor at a time: one multiplies while the other stores.
    let most = if groups(rows) > 1 { MOST_BYTES } else { MOST_BYTES / 2 };
    (most / stage).clamp(2, MOST_STAGES)
}
