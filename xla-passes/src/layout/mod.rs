//! Layouts: every array becomes row major, and layout-changing operations what they do; regions choose the order of their
//! dimensions; at the end, the target's tiles.

use xla_hlo::{ArrayShape, CompId, Computation, Error, InstrId, Layout, Module, Op, ProgramShape, Result, Shape};

use crate::expand::expand_one;
use crate::{Pass, PassContext};

mod assign;
mod bitcast;
mod order;
mod tile;

pub use assign::AssignLayouts;
pub use tile::TileLayouts;

/// Gives every array a plain row-major layout, in computations and in the module's header.
///
/// Layouts inside a program never change its values, with one exception: a `bitcast` between different layouts, which
/// becomes the transposes, reshapes and paddings that it stands for. Copies between layouts disappear. Callers of the
/// compiled program pass and get row-major arrays whatever layouts the program named.
pub struct NormalizeLayouts;

impl Pass for NormalizeLayouts {
    fn name(&self) -> &'static str {
        "normalize-layouts"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            normalize(module, id)?;
        }
        normalize_header(module, row_major);
        Ok(())
    }
}

fn row_major(shape: &Shape) -> Shape {
    shape.map_layouts(&mut |a| Some(Layout::row_major(a.rank())))
}

fn normalize(module: &mut Module, id: CompId) -> Result<()> {
    // What a bitcast means depends on the layouts of the program, of which each rewrite takes some away.
    let bitcasts = bitcasts(&module[id])?;
    remove_copies(module.computation_mut(id))?;
    for Bitcast { id: bitcast, from, to } in bitcasts {
        expand_one(module, id, bitcast, |at, bitcast| {
            let operand = at.graph()[bitcast].operand(0);
            bitcast::spelled_out(at, operand, &from, &to)
        })?;
    }
    let computation = module.computation_mut(id);
    let ids: Vec<InstrId> = computation.ids().collect();
    for id in ids {
        let shape = row_major(computation[id].shape());
        computation.set_shape(id, shape);
    }
    Ok(())
}

/// A bitcast with the layouts that the program gave it.
struct Bitcast {
    id: InstrId,
    from: ArrayShape,
    to: ArrayShape,
}

/// The bitcasts that do not keep the row-major order of their operand.
fn bitcasts(computation: &Computation) -> Result<Vec<Bitcast>> {
    let mut found = Vec::new();
    for id in computation.post_order() {
        let instruction = &computation[id];
        let Op::Bitcast(_) = instruction.op() else { continue };
        let from = computation[instruction.operand(0)].shape().expect_array()?.clone();
        let to = instruction.shape().expect_array()?.clone();
        if keeps_row_major_order(&from, &to)? {
            continue;
        }
        if !from.is_static() || !to.is_static() {
            let name = instruction.name();
            return Err(Error::unimplemented(format!("bitcast {name} between dynamic shapes, {from} to {to}")));
        }
        found.push(Bitcast { id, from, to });
    }
    Ok(found)
}

fn keeps_row_major_order(from: &ArrayShape, to: &ArrayShape) -> Result<bool> {
    Ok(from.element_type() == to.element_type()
        && from.storage_bits() == to.storage_bits()
        && from.memory_steps()?.is_empty()
        && to.memory_steps()?.is_empty())
}

fn remove_copies(computation: &mut Computation) -> Result<()> {
    let copies: Vec<InstrId> =
        computation.post_order().into_iter().filter(|&id| changes_layout(computation, id)).collect();
    for id in copies {
        let operand = computation[id].operand(0);
        computation.replace_all_uses(id, operand);
        computation.remove(id)?;
    }
    Ok(())
}

fn changes_layout(computation: &Computation, id: InstrId) -> bool {
    let order = |id: InstrId| computation[id].shape().as_array().map(ArrayShape::minor_to_major);
    matches!(computation[id].op(), Op::Copy(_))
        && crate::graph::is_free(&computation[id])
        && order(id) != order(computation[id].operand(0))
}

fn is_identity(permutation: &[usize]) -> bool {
    permutation.iter().enumerate().all(|(i, &d)| i == d)
}

fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    permutation.iter().enumerate().for_each(|(i, &d)| inverse[d] = i);
    inverse
}

/// The header's layout becomes that of the entry.
fn normalize_header(module: &mut Module, layout: impl Fn(&Shape) -> Shape) {
    let Some(old) = &module.attributes().entry_computation_layout else { return };
    let parameters = old.parameters.iter().map(&layout).collect();
    let new = ProgramShape { parameters, result: layout(&old.result) };
    if *old != new {
        module.attributes_mut().entry_computation_layout = Some(new);
    }
}
