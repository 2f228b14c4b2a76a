//! Tiles layouts according to the target's profile.

use xla_hlo::{CompId, InstrId, Layout, Module, Op, ProgramShape, Result, Shape, Tile, TileDim};

use super::{bitcast, border, set_header};
use crate::fuse::programs;
use crate::rewrite::replace::replace_one;
use crate::{Pass, PassContext, TileProfile};

/// Assigns every array with a buffer the tiled layout of the target. Does nothing if the profile has no tiles.
///
/// Runs after all arrays are row-major, when later passes only add copies. Bitcasts, which keep the bytes of row-major
/// arrays, are expanded into reshapes and `bitcast-convert`s, since they would not keep the bytes of tiled arrays.
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
        if let Some(ProgramShape { parameters, result }) = module.attributes().entry_computation_layout.clone() {
            let parameters = parameters.iter().map(|shape| tiled(shape, tiles)).collect();
            set_header(module, ProgramShape { parameters, result: tiled(&result, tiles) });
        }
        Ok(())
    }
}

fn tiled(shape: &Shape, tiles: TileProfile) -> Shape {
    shape.map_layouts(&mut |array| Some(tiles.layout_in_order(array.minor_to_major())))
}

/// Expands bitcasts of row-major arrays, which are not tiled yet. Bitcasts at the program's boundary are kept: tiles
/// divide the array in memory, whatever the order of its dimensions is called.
fn spell_out_bitcasts(module: &mut Module, id: CompId) -> Result<()> {
    let in_order = |i: InstrId| module[id][i].shape().as_array().is_none_or(border::in_row_major_order);
    let is_inside = |i: &InstrId| {
        let instruction = &module[id][*i];
        matches!(instruction.op(), Op::Bitcast(_)) && in_order(*i) && in_order(instruction.operand(0))
    };
    let bitcasts: Vec<InstrId> = module[id].post_order().into_iter().filter(is_inside).collect();
    for bitcast in bitcasts {
        replace_one(module, id, bitcast, |at, bitcast| {
            let operand = at.graph()[bitcast].operand(0);
            let (from, to) = (at.array(operand)?.clone(), at.array(bitcast)?.clone());
            bitcast::spelled_out(at, operand, &from, &to)
        })?;
    }
    Ok(())
}

impl TileProfile {
    /// Returns the layout of an array of that rank: row-major, tiled for rank 1 and above.
    pub fn layout(self, rank: usize) -> Layout {
        self.layout_in_order((0..rank).rev().collect())
    }

    /// Returns the layout of an array with that order of dimensions.
    pub fn layout_in_order(self, minor_to_major: Vec<usize>) -> Layout {
        let sizes: &[usize] = match minor_to_major.len() {
            0 => &[],
            1 => &[self.rows * self.columns],
            _ => &[self.rows, self.columns],
        };
        let tiles = if sizes.is_empty() {
            Vec::new()
        } else {
            vec![Tile(sizes.iter().map(|&size| TileDim::Size(size as u64)).collect())]
        };
        Layout { tiles, ..Layout::from_minor_to_major(minor_to_major) }
    }
}
