//! Sizes of the tiles of an attention by warp groups.

use std::fmt;

use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::simt::attention::plan::AttentionKernel;
use crate::fused::simt::bulk_operand::BulkTile;
use crate::fused::tuning::attention_groups::{BUSY, GROUPS, KEYS, LONG_KEYS, MOST_HEAD, STAGES};
use crate::mma::{GROUP, GROUP_ROWS, OperandType, ROWS};
use crate::target::Target;

/// Sizes of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupAttention {
    pub unit: OperandType,
    /// Groups, each with [`GROUP_ROWS`] queries.
    pub groups: u64,
    /// Keys of a tile.
    pub keys: u64,
    /// Elements of a query or a key, and of a value.
    pub heads: [u64; 2],
    /// Tiles of queries, keys and values.
    pub tiles: [BulkTile; 3],
}

impl<'m> FusedKernel<'_, 'm> {
    /// The attention that the kernel is, and its tiles, on a target whose warp groups can multiply them.
    pub(crate) fn attention_of_groups(&self, target: &Target) -> Option<(AttentionKernel<'m>, GroupAttention)> {
        let kernel = self.attention_kernel()?;
        let plan = GroupAttention::new(&kernel, target)?;
        Some((kernel, plan))
    }
}

impl GroupAttention {
    /// Maps of a kernel: of queries, keys and values.
    pub const MAPS: usize = 3;
    /// Stages of keys and values.
    pub const STAGES: u64 = STAGES;

    fn new(kernel: &AttentionKernel<'_>, target: &Target) -> Option<GroupAttention> {
        let unit = kernel.scores.operand_type.filter(|&unit| target.has_warp_groups(unit))?;
        let [query, key, value] = kernel.sides();
        let heads = [kernel.scores.k(), kernel.result.extent(value)];
        let fits = |head: &u64| head.is_multiple_of(ROWS) && (ROWS..=MOST_HEAD).contains(head);
        if kernel.result.operand_type != Some(unit) || !heads.iter().all(fits) || kernel.queries() < GROUP_ROWS {
            return None;
        }
        let most = if heads.iter().any(|&head| head > LONG_KEYS) { KEYS / 2 } else { KEYS };
        let keys = if kernel.keys() <= most / 2 { most / 2 } else { most };
        let blocks = |groups: u64| kernel.scores.batches() * kernel.queries().div_ceil(groups * GROUP_ROWS);
        let groups = if blocks(GROUPS) >= BUSY { GROUPS } else { 1 };
        let tiles = [
            tile(&kernel.scores, query, [groups * GROUP_ROWS, heads[0]], true)?,
            tile(&kernel.scores, key, [keys, heads[0]], true)?,
            tile(&kernel.result, value, [heads[1], keys], false)?,
        ];
        Some(GroupAttention { unit, groups, keys, heads, tiles })
    }

    /// Queries of a block.
    pub fn rows(self) -> u64 {
        self.groups * GROUP_ROWS
    }

    /// Threads that multiply.
    pub fn threads(self) -> u64 {
        self.groups * u64::from(GROUP)
    }

    /// Bytes of a stage: a tile of keys, and one of values.
    pub fn stage_bytes(self) -> u64 {
        self.tiles[1].all_bytes() + self.tiles[2].all_bytes()
    }

    /// Bytes of shared memory.
    pub fn all_bytes(self) -> u64 {
        self.tiles[0].all_bytes() + GroupAttention::STAGES * self.stage_bytes()
    }
}

/// The tile of an operand, of so many rows or columns, and steps, where its rows go along the sum or not.
fn tile(matmul: &Matmul<'_>, side: MatmulSide, [free, sum]: [u64; 2], along_sum: bool) -> Option<BulkTile> {
    let layout = matmul.bulk[side as usize].as_ref().filter(|layout| layout.along_sum() == along_sum)?;
    BulkTile::new(layout, free, sum)
}

impl fmt::Display for GroupAttention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupAttention { unit, groups, keys, heads: [head, value], .. } = self;
        let rows = self.rows();
        write!(
            f,
            "tiles of {rows} queries and {keys} keys, heads of {head} and {value}, warp groups in {unit:?}: {groups}"
        )
    }
}
