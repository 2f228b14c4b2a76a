//! Entry layouts: layouts and memory spaces of the program's arguments and results.

use xla_hlo::{ArrayShape, Error, Layout, MEMORY_KINDS, Module, ProgramShape, Result, Shape};

use super::attributes::{Attributes, integers, lookup};
use super::dictionary::dictionaries;
use crate::ir::{self, AttrId, Attribute, OpId};

/// Returns the entry layout that attributes of the module and of `main` request, row-major where unspecified, whatever
/// layout a transpose assigned to the root. `None` if parameters and root already have these layouts.
pub(super) fn entry_layout(program: &ir::Module, [top, main]: [OpId; 2], hlo: &Module) -> Result<Option<ProgramShape>> {
    let entry = hlo.entry();
    let mut parameters: Vec<Shape> =
        entry.parameters().iter().map(|&parameter| entry[parameter].shape().clone()).collect();
    let row_major = entry.result_shape().without_layout().with_default_layouts();
    let mut is_said = row_major != *entry.result_shape();
    let mut results = match row_major {
        Shape::Tuple(elements) => elements,
        one => vec![one],
    };
    let is_tuple = entry.result_shape().as_tuple().is_some();
    let header = Attributes { module: program, op: top };
    for (name, shapes) in [
        ("mhlo.xla_entry_computation_parameter_layouts", &mut parameters),
        ("mhlo.xla_entry_computation_result_layout", &mut results),
    ] {
        if let Some(Attribute::Array(orders)) = header.get(name).map(|id| &program.attributes[id]) {
            is_said = true;
            for (shape, &order) in shapes.iter_mut().zip(orders) {
                *shape = ordered(shape, indices(program, order)?)?;
            }
        }
    }
    for (name, shapes) in [("arg_attrs", &mut parameters), ("res_attrs", &mut results)] {
        for (shape, &dictionary) in shapes.iter_mut().zip(dictionaries(program, main, name)?) {
            is_said |= one(program, dictionary, shape)?;
        }
    }
    let result = if is_tuple { Shape::Tuple(results) } else { results.swap_remove(0) };
    Ok(is_said.then_some(ProgramShape { parameters, result }))
}

/// Applies the layout and memory space attributes of an argument or result; returns whether there are any.
fn one(program: &ir::Module, dictionary: AttrId, shape: &mut Shape) -> Result<bool> {
    let string = |name: &str| match lookup(program, dictionary, name) {
        Some(id) => match program.string_attribute(id) {
            Some(text) => Ok(Some(text)),
            None => Err(Error::invalid_argument(format!("{name} must be a string"))),
        },
        None => Ok(None),
    };
    let mut is_said = false;
    if let Some(mode) = string("mhlo.layout_mode")?
        && !matches!(&*mode, "default" | "auto")
    {
        let wrong = || {
            Error::invalid_argument(format!(
                "mhlo.layout_mode is {mode:?}, not auto, default or an order such as {{1,0}}"
            ))
        };
        let list = mode.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or_else(wrong)?;
        let numbers = list.split(',').map(str::trim).filter(|number| !number.is_empty());
        let order = numbers.map(|number| number.parse().map_err(|_| wrong())).collect::<Result<Vec<usize>>>()?;
        *shape = ordered(shape, order)?;
        is_said = true;
    }
    if let Some(kind) = string("mhlo.memory_kind")?
        && let Some(&(_, memory_space)) = MEMORY_KINDS.iter().find(|(name, space)| *name == &*kind && *space != 0)
    {
        *shape = shape.map_layouts(&mut |array: &ArrayShape| {
            let layout = array.layout().cloned().unwrap_or_else(|| Layout::row_major(array.rank()));
            Some(Layout { memory_space, ..layout })
        });
        is_said = true;
    }
    Ok(is_said)
}

fn indices(program: &ir::Module, id: AttrId) -> Result<Vec<usize>> {
    let index = |value: i64| {
        usize::try_from(value)
            .map_err(|_| Error::invalid_argument(format!("a layout has the negative dimension {value}")))
    };
    integers(program, id)?.into_iter().map(index).collect()
}

/// Returns an array shape with this minor-to-major layout; a token stays unchanged.
fn ordered(shape: &Shape, order: Vec<usize>) -> Result<Shape> {
    let Shape::Array(array) = shape else { return Ok(shape.clone()) };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..array.rank()) {
        return Err(Error::invalid_argument(format!("the layout {order:?} does not fit {array}")));
    }
    Ok(Shape::Array(array.clone().with_layout(Some(Layout::from_minor_to_major(order)))))
}
