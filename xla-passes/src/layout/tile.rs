//! Tiles: arrays lie in memory as the target's profile says.

use xla_hlo::{CompId, InstrId, Layout, Module, Op, Result, Shape, Tile, TileDim};

use super::{bitcast, normalize_header};
use crate::expand::expand_one;
use crate::fuse::programs;
use crate::{Pass, PassContext, TileProfile};

/// Gives every array that has a buffer the tiled layout of the target; does nothing where the profile has no tiles.
///
/// Runs when everything is row major and nothing makes new arrays any more but copies. Bitcasts, which keep the bytes of
/// row-major arrays, would no longer do so and become reshapes and `bitcast-convert`s.
pub struct TileLayouts;

impl Pass for TileLayouts {
    fn name(&self) -> &'static str {
        "tile-layouts"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let Some(tiles) = cx.profile().tiles else { return Ok(()) };
        for id in programs(module) {
            spell_out_bitcasts(module, id)?;
            let computation = module.computation_mut(id);
            let ids: Vec<InstrId> = computation.ids().collect();
            for id in ids {
                let shape = tiled(computation[id].shape(), tiles);
                computation.set_shape(id, shape);
            }
        }
        normalize_header(module, |shape| tiled(shape, tiles));
        Ok(())
    }
}

fn tiled(shape: &Shape, tiles: TileProfile) -> Shape {
    shape.map_layouts(&mut |array| Some(tiles.layout(array.rank())))
}

/// Bitcasts of row-major arrays, which are not in tiles yet.
fn spell_out_bitcasts(module: &mut Module, id: CompId) -> Result<()> {
    let is_bitcast = |i: &InstrId| matches!(module[id][*i].op(), Op::Bitcast(_));
    let bitcasts: Vec<InstrId> = module[id].post_order().into_iter().filter(is_bitcast).collect();
    for bitcast in bitcasts {
        expand_one(module, id, bitcast, |at, bitcast| {
            let operand = at.graph()[bitcast].operand(0);
            let (from, to) = (at.array(operand)?.clone(), at.array(bitcast)?.clone());
            bitcast::spelled_out(at, operand, &from, &to)
        })?;
    }
    Ok(())
}

impl TileProfile {
    /// The layout of an array of that rank: row major, tiled from rank 1 on.
    pub fn layout(self, rank: usize) -> Layout {
        let sizes: &[usize] = match rank {
            0 => &[],
            1 => &[self.rows * self.columns],
            _ => &[self.rows, self.columns],
        };
        let tile = Tile(sizes.iter().map(|&size| TileDim::Size(size as u64)).collect());
        Layout { tiles: if rank == 0 { Vec::new() } else { vec![tile] }, ..Layout::row_major(rank) }
    }
}
