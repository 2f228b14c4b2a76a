//! Plan of an attention with register tiles: blocks of keys, and runs of queries.

use std::fmt;

use xla_hlo::{ElementType, Result};

use super::kernel::AttentionKernel;
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::arrays::Arrays;
use crate::fused::contraction::axes::Axis;
use crate::fused::contraction::groups::Groups;
use crate::fused::contraction::matmul::{Along, Matmul, MatmulSide};
use crate::fused::contraction::tiling::{Place, RegisterTiles, group_of_last, register_tile, row_pitch, within};
use crate::fused::kernel::Launch;
use crate::fused::loops::frame::Frame;
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::register_attention::{BLOCK, BLOCKS, STATE_BYTES};
use crate::fused::tuning::register_tiles::{ITEMS_A_THREAD, MOST_VECTORS};

/// Width of scores and sums, in bits.
const F32_BITS: u32 = 32;

/// Number of f32 in the widest vector of any target.
const VECTOR: u64 = 16;

/// Attention with register tiles. A work item has a run of query tiles; it packs each block of keys and values once
/// for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegisterAttention {
    /// Loops over the rows of the scores; the innermost one has the tiles.
    pub rows: Axis,
    /// Tiles of full blocks of keys.
    pub full: BlockTiles,
    /// Number of full blocks.
    pub blocks: u64,
    /// Tiles of the last block, which has fewer keys.
    pub rest: Option<BlockTiles>,
    /// Number of query tiles in a work item.
    pub run: u64,
}

/// Tiles of a block of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockTiles {
    /// Number of keys.
    pub keys: u64,
    /// Tiles of the scores: rows are queries, columns are keys.
    pub scores: RegisterTiles,
    /// Tiles of the results: rows are queries, columns are elements of values, and K is the keys.
    pub results: RegisterTiles,
}

impl Strategy for RegisterAttention {
    fn names() -> &'static [&'static str] {
        &["register-attention"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<RegisterAttention>> {
        let kernel = choice.kernel;
        // Tiles overlap, and read queries after others have stored results.
        match kernel.attention_kernel().filter(|_| kernel.source.overwrites.is_empty()) {
            Some(attention) => RegisterAttention::new(kernel, &attention, choice.emitter),
            None => Ok(None),
        }
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_register_attention(emitter, frame, self).map(Launch::alone)
    }
}

impl RegisterAttention {
    fn new<'m>(
        kernel: &FusedKernel<'_, 'm>,
        attention: &AttentionKernel<'m>,
        emitter: &Emitter<'_>,
    ) -> Result<Option<RegisterAttention>> {
        let (scores, result) = (&attention.scores, &attention.result);
        let [queries, ..] = attention.sides();
        let is_f32 = |matmul: &Matmul<'_>| matmul.accumulator_type == ElementType::F32;
        let keys = attention.keys();
        if !is_f32(scores) || !is_f32(result) || keys == 0 || scores.k() == 0 {
            return Ok(None);
        }
        let rows = Axis::longest_apart(&scores.free[queries as usize]);
        let block = block_size(keys);
        let Some(tile) = register_tile(scores, [rows.extent, block], emitter) else { return Ok(None) };
        let arrays = [kernel.matmul_arrays(scores, emitter.target())?, kernel.matmul_arrays(result, emitter.target())?];
        // All blocks share packed memory, and so the groups of K: those of the block with the fewest columns.
        let rest = Some(keys % block).filter(|&rest| rest > 0);
        let tiles =
            |keys: u64| BlockTiles::new(attention, &arrays, (&rows, tile, [keys, rest.unwrap_or(block)]), emitter);
        let (full, rest) = (tiles(block), rest.map(tiles));
        let mut plan = RegisterAttention { rows, full, blocks: keys / block, rest, run: 1 };
        plan.choose_run(scores.batches(), emitter.options().threads as u64);
        Ok(Some(plan))
    }

    /// Chooses the number of tiles in a work item: enough items for all threads, and a state that stays in the L2
    /// cache.
    fn choose_run(&mut self, batches: u64, threads: u64) {
        let wanted = if threads > 1 { ITEMS_A_THREAD * threads } else { 1 };
        let [tiles, _] = self.full.scores.tiles();
        let items = batches * self.rows.outer.iter().product::<u64>();
        let most = (STATE_BYTES / (self.full.state() * size_of::<f32>() as u64)).clamp(1, tiles);
        self.run = tiles.div_ceil(wanted.div_ceil(items.max(1)).clamp(1, tiles)).min(most);
        // The last tile overlaps the one before, and no two threads write to the same place.
        if !self.rows.extent.is_multiple_of(self.full.scores.rows) {
            self.run = group_of_last(self.run, tiles);
        }
    }

    /// Returns the extents of the loops over work items: batch, outer rows, runs of query tiles.
    pub fn items(&self, batch: &[u64]) -> Vec<u64> {
        let [tiles, _] = self.full.scores.tiles();
        batch.iter().chain(&self.rows.outer).copied().chain([tiles.div_ceil(self.run)]).collect()
    }
}

/// Returns the number of keys of a full block: all if they are few, a divisor if there is one, and otherwise a size
/// that leaves at least a vector for the last block.
fn block_size(keys: u64) -> u64 {
    if keys <= *BLOCKS.end() {
        return keys;
    }
    let sizes = || BLOCKS.rev().filter(|&size| size.is_multiple_of(VECTOR));
    let divisor = sizes().find(|&size| keys.is_multiple_of(size));
    let other = || std::iter::once(BLOCK).chain(sizes()).find(|&size| keys % size >= VECTOR);
    divisor.or_else(other).unwrap_or(BLOCK)
}

impl BlockTiles {
    fn new(
        attention: &AttentionKernel<'_>,
        [scores, results]: &[Arrays; 2],
        (rows, [height, vectors, lanes, _], [keys, least_keys]): (&Axis, [u64; 4], [u64; 2]),
        emitter: &Emitter<'_>,
    ) -> BlockTiles {
        let [of_queries, of_keys, of_values] = attention.sides();
        let (first, second) = (&attention.scores, &attention.result);
        let key = Axis::apart(&first.free[of_keys as usize]);
        let value = Axis::apart(&second.free[of_values as usize]);
        let value_lanes = within(emitter.target().lanes(F32_BITS).into(), value.extent);
        let lanes = within(lanes, keys);
        let registers = u64::from(emitter.target().abilities().registers).saturating_sub(1);
        let most = (registers / (height + 1)).clamp(1, MOST_VECTORS);
        let depth = Axis::apart(&second.contracting).part(keys);
        let of_scores = Side { matmul: first, rows: of_queries, groups: scores.groups(first, least_keys, emitter) };
        let groups = results.groups(second, value.extent, emitter).map(|groups| Groups { extent: keys, ..groups });
        let of_results = Side { matmul: second, rows: of_values.other(), groups };
        let vectors_of_value = value.extent.div_ceil(value_lanes).min(most);
        let results_tiles = of_results.tiles([rows.clone(), value, depth], [height, vectors_of_value, value_lanes]);
        // Exponentials are stored row by row.
        BlockTiles {
            keys,
            scores: of_scores.tiles(
                [rows.clone(), key.part(keys), Axis::apart(&first.contracting)],
                [height, vectors.min(keys.div_ceil(lanes)), lanes],
            ),
            results: RegisterTiles { places: [Place::Panel(Along::K), results_tiles.places[1]], ..results_tiles },
        }
    }

    /// Returns the number of sums that a tile of queries keeps between blocks of keys.
    pub fn sums(&self) -> u64 {
        let [_, panels] = self.results.tiles();
        panels * self.results.rows * self.results.columns()
    }

    /// Returns the number of elements of a tile's state: sums, and the largest logit and sum of exponentials of a row.
    fn state(&self) -> u64 {
        self.sums() + 2 * self.scores.rows
    }

    /// Returns the row stride of scores and exponentials, in elements: that of packed rows of the second dot.
    pub fn pitch(&self) -> u64 {
        row_pitch(self.keys)
    }
}

/// GEMM of an attention, the side of its rows, and its groups of K.
struct Side<'a, 'm> {
    matmul: &'a Matmul<'m>,
    rows: MatmulSide,
    groups: Option<Groups>,
}

impl Side<'_, '_> {
    /// Returns tiles of `height` rows; both operands are packed.
    fn tiles(self, [rows, columns, k]: [Axis; 3], [height, vectors, lanes]: [u64; 3]) -> RegisterTiles {
        let sides = [self.rows, self.rows.other()];
        let k = self.groups.map_or(k.clone(), |groups| groups.axis(&k));
        let depth = k.extent;
        let mut tiles = RegisterTiles {
            sides,
            axes: [rows, columns],
            packing: [k.clone(), k.clone()],
            sums: k,
            parts: 1,
            depth,
            groups: self.groups,
            rows: height,
            vectors,
            lanes,
            k_lanes: 1,
            whole: [true; 2],
            places: sides.map(|side| Place::Panel(self.matmul.neighbours[side as usize].along)),
            block: 1,
            run: 1,
            all_rows: false,
        };
        [_, tiles.block] = tiles.tiles();
        tiles
    }
}

impl fmt::Display for RegisterAttention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockTiles { keys, scores, results } = &self.full;
        write!(f, "{} blocks of {keys} keys", self.blocks)?;
        if let Some(rest) = &self.rest {
            write!(f, " and one of {}", rest.keys)?;
        }
        write!(f, ", {} tiles a run; scores {scores}; results {results}", self.run)
    }
}
