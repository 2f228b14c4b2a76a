//! Normalizes layouts: row-major inside of a program, with layout changes as data movement.

use std::collections::HashSet;

use xla_hlo::{ArrayShape, CompId, Computation, Error, InstrId, Layout, Module, Op, ProgramShape, Result, Shape};

use super::border::{self, Border};
use super::{bitcast, calls, set_header};
use crate::rewrite::replace::replace_one;
use crate::{Pass, PassContext};

/// Assigns every array inside of the program a plain row-major layout.
///
/// Layouts inside a program never affect its values, with one exception: a `bitcast` between different layouts, which
/// is expanded into the transposes, reshapes and pads that it represents. Copies between layouts are removed. Callers
/// pass and receive arrays in the order of dimensions that the module requests ([`Module::entry_layout`]): parameters
/// and results that are not row-major keep their layout, and bitcasts and transposes convert them at the boundary. So
/// do operands and results of custom calls, whose handlers access the bytes.
pub struct NormalizeLayouts;

impl Pass for NormalizeLayouts {
    fn name(&self) -> &'static str {
        "normalize-layouts"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        let asked = border::asked(module);
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            normalize(module, id, &asked)?;
        }
        let is_asked = asked.parameters.iter().chain([&asked.result]).any(|shape| !border::is_row_major(shape));
        if is_asked || module.attributes().entry_computation_layout.is_some() {
            set_header(module, asked);
        }
        Ok(())
    }
}

fn row_major(shape: &Shape) -> Shape {
    shape.map_layouts(&mut |a| Some(Layout::row_major(a.rank())))
}

fn normalize(module: &mut Module, id: CompId, asked: &ProgramShape) -> Result<()> {
    let is_entry = id == module.entry_id();
    let calls = calls::stated(module, id);
    let mut at_border = if is_entry { border::bitcasts(module, asked) } else { HashSet::new() };
    at_border.extend(calls::bitcasts(&module[id], &calls));
    // Collects the bitcasts first: they depend on the program's layouts, and each rewrite removes some of these.
    let mut bitcasts = bitcasts(&module[id])?;
    bitcasts.retain(|bitcast| !at_border.contains(&bitcast.id));
    remove_copies(module.computation_mut(id))?;
    for Bitcast { id: bitcast, from, to } in bitcasts {
        replace_one(module, id, bitcast, |at, bitcast| {
            let operand = at.graph()[bitcast].operand(0);
            bitcast::spelled_out(at, operand, &from, &to)
        })?;
    }
    let mut border = Border::new(module, id, at_border);
    for call in calls {
        call.put_border(&mut border)?;
    }
    if is_entry {
        border.put(asked)?;
    }
    let kept = border.into_kept();
    let computation = module.computation_mut(id);
    let ids: Vec<InstrId> = computation.ids().filter(|id| !kept.contains(id)).collect();
    for id in ids {
        let shape = row_major(computation[id].shape());
        computation.set_shape(id, shape);
    }
    Ok(())
}

/// A bitcast with its layouts in the program.
struct Bitcast {
    id: InstrId,
    from: ArrayShape,
    to: ArrayShape,
}

/// Returns the bitcasts that do not keep the row-major order of their operand.
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
            return Err(Error::unimplemented(format!(
                "bitcast {name} between dynamic shapes is not implemented: {from} to {to}"
            )));
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
        && crate::rewrite::graph::is_free(&computation[id])
        && order(id) != order(computation[id].operand(0))
}
