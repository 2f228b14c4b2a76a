//! Tiles: arrays lie in memory as the target's profile says.

use xla_hlo::{CompId, InstrId, Layout, Module, Op, Result, Shape, Tile, TileDim};

use super::{array_of, normalize_header, reshaped, retyped};
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

fn spell_out_bitcasts(module: &mut Module, id: CompId) -> Result<()> {
    let computation = module.computation_mut(id);
    for id in computation.post_order() {
        if !matches!(computation[id].op(), Op::Bitcast(_)) {
            continue;
        }
        let to = array_of(computation, id)?;
        let value = retyped(computation, computation[id].operand(0), &to)?;
        let value = reshaped(computation, value, to.dims().to_vec());
        computation.replace_all_uses(id, value);
        computation.remove(id)?;
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
