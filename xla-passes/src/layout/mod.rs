//! Layouts: every array becomes row major, and layout-changing operations what they do; regions choose the order of their
//! dimensions; at the end, the target's tiles.

use xla_hlo::ops::{BitcastConvert, Reshape, Transpose};
use xla_hlo::{
    ArrayShape, CompId, Computation, Error, InstrId, Instruction, Layout, Module, Op, ProgramShape, Result, Shape,
};

use crate::{Pass, PassContext};

mod assign;
mod order;
mod tile;

pub use assign::AssignLayouts;
pub use tile::TileLayouts;

/// Gives every array a plain row-major layout, in computations and in the module's header.
///
/// Layouts inside a program never change its values, with one exception: a `bitcast` between different layouts, which
/// becomes transposes around a reshape. Copies between layouts disappear. Callers of the compiled program pass and get
/// row-major arrays whatever layouts the program named.
pub struct NormalizeLayouts;

impl Pass for NormalizeLayouts {
    fn name(&self) -> &'static str {
        "normalize-layouts"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            normalize(module.computation_mut(id))?;
        }
        normalize_header(module, row_major);
        Ok(())
    }
}

fn row_major(shape: &Shape) -> Shape {
    shape.map_layouts(&mut |a| Some(Layout::row_major(a.rank())))
}

fn normalize(computation: &mut Computation) -> Result<()> {
    for id in computation.post_order() {
        match computation[id].op() {
            Op::Bitcast(_) => expand_bitcast(computation, id)?,
            Op::Copy(_) if changes_layout(computation, id) => {
                let operand = computation[id].operand(0);
                computation.replace_all_uses(id, operand);
                computation.remove(id)?;
            }
            _ => {}
        }
    }
    let ids: Vec<InstrId> = computation.ids().collect();
    for id in ids {
        let shape = row_major(computation[id].shape());
        computation.set_shape(id, shape);
    }
    Ok(())
}

fn changes_layout(computation: &Computation, id: InstrId) -> bool {
    let order = |id: InstrId| computation[id].shape().as_array().map(ArrayShape::minor_to_major);
    crate::graph::is_free(&computation[id]) && order(id) != order(computation[id].operand(0))
}

/// Dimensions, slowest varying first.
fn major_to_minor(shape: &ArrayShape) -> Vec<usize> {
    shape.minor_to_major().into_iter().rev().collect()
}

fn is_identity(permutation: &[usize]) -> bool {
    permutation.iter().enumerate().all(|(i, &d)| i == d)
}

fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    permutation.iter().enumerate().for_each(|(i, &d)| inverse[d] = i);
    inverse
}

/// The same bytes: operand in the order of its bytes, reshaped to the result in the order of its bytes, put back in order.
fn expand_bitcast(computation: &mut Computation, id: InstrId) -> Result<()> {
    let operand = computation[id].operand(0);
    let (Some(from), Some(to)) = (computation[operand].shape().as_array(), computation[id].shape().as_array()) else {
        return Ok(());
    };
    let (from, to) = (from.clone(), to.clone());
    let (from_order, to_order) = (major_to_minor(&from), major_to_minor(&to));
    if is_identity(&from_order) && is_identity(&to_order) && from.element_type() == to.element_type() {
        return Ok(());
    }
    if [&from, &to].iter().any(|s| s.layout().is_some_and(|l| !l.tiles.is_empty())) {
        let name = computation[id].name();
        return Err(Error::unimplemented(format!("bitcast {name} between tiled layouts ({from} to {to})")));
    }
    let mut value = transposed(computation, operand, &from_order);
    value = retyped(computation, value, &to)?;
    let stored: Vec<usize> = to_order.iter().map(|&d| to.dims()[d]).collect();
    value = reshaped(computation, value, stored);
    value = transposed(computation, value, &inverse(&to_order));
    computation.replace_all_uses(id, value);
    computation.remove(id)
}

fn array_of(computation: &Computation, id: InstrId) -> Result<ArrayShape> {
    computation[id].shape().expect_array().cloned()
}

fn transposed(computation: &mut Computation, x: InstrId, permutation: &[usize]) -> InstrId {
    if is_identity(permutation) {
        return x;
    }
    let Some(shape) = computation[x].shape().as_array() else { return x };
    let dims: Vec<usize> = permutation.iter().map(|&d| shape.dims()[d]).collect();
    let shape = ArrayShape::new(shape.element_type(), dims).with_row_major_layout();
    computation.add(Instruction::new(Transpose { permutation: permutation.to_vec() }.into(), shape.into(), [x]))
}

fn reshaped(computation: &mut Computation, x: InstrId, dims: Vec<usize>) -> InstrId {
    let Some(shape) = computation[x].shape().as_array() else { return x };
    if shape.dims() == dims {
        return x;
    }
    let shape = ArrayShape::new(shape.element_type(), dims).with_row_major_layout();
    computation.add(Instruction::new(Reshape { inferred_dimension: None }.into(), shape.into(), [x]))
}

/// The same bytes under the element type of `to`; the result is one-dimensional where widths differ.
fn retyped(computation: &mut Computation, x: InstrId, to: &ArrayShape) -> Result<InstrId> {
    let shape = array_of(computation, x)?;
    let (old, new) = (shape.element_type().byte_width(), to.element_type().byte_width());
    if shape.element_type() == to.element_type() {
        return Ok(x);
    }
    let count = shape.checked_element_count()?;
    let (x, dims) = match old.cmp(&new) {
        std::cmp::Ordering::Equal => (x, shape.dims().to_vec()),
        std::cmp::Ordering::Greater => (reshaped(computation, x, vec![count]), vec![count, old / new]),
        std::cmp::Ordering::Less => {
            let ratio = new / old;
            (reshaped(computation, x, vec![count / ratio, ratio]), vec![count / ratio])
        }
    };
    let shape = ArrayShape::new(to.element_type(), dims).with_row_major_layout();
    Ok(computation.add(Instruction::new(BitcastConvert.into(), shape.into(), [x])))
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
