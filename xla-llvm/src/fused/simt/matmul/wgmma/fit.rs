//! Matmuls that warp groups can multiply, and the shared memory of their tiles.

use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::simt::tma_operand::TmaTile;
use crate::fused::tuning::matmul_wgmma::{DEPTH, LEAST_EXTENT, MOST_BYTES, MOST_STAGES};
use crate::mma::{GROUP_ROWS, OperandType, group_block};
use crate::target::Target;

/// Returns whether the warp groups of a target can multiply the tiles of a matmul.
pub(crate) fn can_be_grouped(matmul: &Matmul<'_>, unit: OperandType, target: &Target) -> bool {
    let fits = |side: MatmulSide| {
        matmul.bulk[side as usize].as_ref().is_some_and(|layout| TmaTile::new(layout, GROUP_ROWS, DEPTH).is_some())
            && matmul.extent(side) >= LEAST_EXTENT
    };
    target.has_warp_groups(unit) && fits(MatmulSide::Left) && fits(MatmulSide::Right)
}

/// Returns the number of consumer warp groups for tiles with `rows` rows.
pub(crate) fn groups(rows: u64) -> u64 {
    rows / GROUP_ROWS
}

/// Returns the number of threads of a block for tiles with `rows` rows.
pub(crate) fn threads(rows: u64) -> u64 {
    group_block(groups(rows))
}

/// Returns the number of stages for tiles with these rows and columns.
pub(crate) fn stages([rows, columns]: [u64; 2], bytes: u64) -> u64 {
    let stage = (rows + columns) * DEPTH * bytes;
    // Two blocks with one group each share a multiprocessor: one multiplies while the other stores.
    let most = if groups(rows) > 1 { MOST_BYTES } else { MOST_BYTES / 2 };
    (most / stage).clamp(2, MOST_STAGES)
}
