//! Sizes of the tiles of a warp-specialized attention.

use std::fmt;

use xla_hlo::Result;

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::attention::kernel::AttentionKernel;
use crate::fused::contraction::matmul::{Matmul, MatmulSide};
use crate::fused::kernel::Launch;
use crate::fused::loops::frame::Frame;
use crate::fused::simt::tma_operand::TmaTile;
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::attention_groups::{BUSY, GROUPS, KEYS, LONG_KEYS, MOST_HEAD, STAGES};
use crate::mma::{GROUP_ROWS, OperandType, ROWS};
use crate::target::Target;

/// Tile sizes of a warp-specialized attention kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WgmmaAttention {
    pub unit: OperandType,
    /// Consumer groups, each with [`GROUP_ROWS`] queries.
    pub groups: u64,
    /// Number of keys per tile.
    pub keys: u64,
    /// Number of elements of a query (or key), and of a value.
    pub heads: [u64; 2],
    /// Tiles of queries, keys and values.
    pub tiles: [TmaTile; 3],
}

impl Strategy for WgmmaAttention {
    fn names() -> &'static [&'static str] {
        &["group-attention"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<WgmmaAttention>> {
        let kernel = choice.kernel.attention_kernel();
        Ok(kernel.and_then(|kernel| WgmmaAttention::new(&kernel, choice.target())))
    }

    fn maps(&self) -> usize {
        WgmmaAttention::MAPS
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_attention_of_groups(emitter, frame, *self)
    }
}

impl WgmmaAttention {
    /// Number of tensor maps of a kernel: queries, keys and values.
    pub const MAPS: usize = 3;
    /// Number of stages for keys and values.
    pub const STAGES: u64 = STAGES;

    /// Returns the tiling of an attention, if the target's warp groups can multiply the tiles.
    fn new(kernel: &AttentionKernel<'_>, target: &Target) -> Option<WgmmaAttention> {
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
        Some(WgmmaAttention { unit, groups, keys, heads, tiles })
    }

    /// Returns the number of queries per block.
    pub fn rows(self) -> u64 {
        self.groups * GROUP_ROWS
    }

    /// Returns the size in bytes of a stage: a tile of keys, and one of values.
    pub fn stage_bytes(self) -> u64 {
        self.tiles[1].all_bytes() + self.tiles[2].all_bytes()
    }

    /// Returns the size in bytes of shared memory.
    pub fn all_bytes(self) -> u64 {
        self.tiles[0].all_bytes() + WgmmaAttention::STAGES * self.stage_bytes()
    }
}

/// Returns the tile of an operand with `free` rows (or columns) and `sum` steps of K. `None` if the operand is not
/// K-major (`along_sum`) or MN-major as required, or if no layout supports the tile.
fn tile(matmul: &Matmul<'_>, side: MatmulSide, [free, sum]: [u64; 2], along_sum: bool) -> Option<TmaTile> {
    let layout = matmul.bulk[side as usize].as_ref().filter(|layout| layout.along_sum() == along_sum)?;
    TmaTile::new(layout, free, sum)
}

impl fmt::Display for WgmmaAttention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WgmmaAttention { unit, groups, keys, heads: [head, value], .. } = self;
        let rows = self.rows();
        write!(
            f,
            "tiles of {rows} queries and {keys} keys, heads of {head} and {value}, warp groups in {unit:?}: {groups}"
        )
    }
}
