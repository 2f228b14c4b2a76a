//! Layouts at the boundary of a program: converts between row-major and the layouts that callers or handlers request.
//!
//! A parameter keeps the requested order of dimensions. A `bitcast` reads its bytes as a row-major array with permuted
//! dimensions, and a `transpose` restores the order of the dimensions. Results are converted in the opposite direction.
//! The results and operands of custom calls are handled likewise.

use std::collections::HashSet;

use xla_hlo::ops::{Bitcast, Transpose};
use xla_hlo::{
    ArrayShape, CompId, Computation, InstrId, Layout, MemoryStepKind, Module, Op, ProgramShape, Result, Shape,
};

use super::inverse;
use crate::rewrite::builder::Inserter;

/// Returns the entry's shapes for callers: in the requested order of dimensions, without tiles and packing.
pub(super) fn asked(module: &Module) -> ProgramShape {
    let ordered = |a: &ArrayShape| Some(Layout::from_minor_to_major(a.minor_to_major()));
    let ProgramShape { parameters, result } = module.entry_layout();
    let plain = |shape: &Shape| shape.map_layouts(&mut |a| ordered(a));
    ProgramShape { parameters: parameters.iter().map(plain).collect(), result: plain(&result) }
}

/// Whether a parameter or result needs no conversion.
pub(super) fn is_row_major(shape: &Shape) -> bool {
    shape.leaves().iter().all(|(_, leaf)| leaf.as_array().is_none_or(in_row_major_order))
}

/// Whether dimensions are in row-major order, with or without tiles.
pub(super) fn in_row_major_order(array: &ArrayShape) -> bool {
    array.layout().is_none_or(Layout::is_row_major)
}

/// Returns the bitcasts at the boundary of an entry: they move no data, from a parameter or to the result in its
/// requested layout.
pub(super) fn bitcasts(module: &Module, asked: &ProgramShape) -> HashSet<InstrId> {
    let entry = module.entry();
    let mut found = HashSet::new();
    for (&parameter, shape) in entry.parameters().iter().zip(&asked.parameters) {
        readers(entry, parameter, shape, &mut found);
    }
    writers(entry, entry.root(), &asked.result, &mut HashSet::new(), &mut found);
    found
}

/// Collects the bitcasts of a parameter's value.
pub(super) fn readers(entry: &Computation, value: InstrId, asked: &Shape, found: &mut HashSet<InstrId>) {
    for &user in entry[value].users() {
        match (entry[user].op(), asked) {
            (Op::GetTupleElement(get), Shape::Tuple(elements)) => {
                if let Some(element) = elements.get(get.index) {
                    readers(entry, user, element, found);
                }
            }
            (Op::Bitcast(_), Shape::Array(array))
                if is_as_asked(entry, value, array) && is_view(entry, value, user) =>
            {
                found.insert(user);
            }
            _ => {}
        }
    }
}

/// Collects the bitcasts that define the root's value and have no other users.
fn writers(
    entry: &Computation,
    value: InstrId,
    asked: &Shape,
    above: &mut HashSet<InstrId>,
    found: &mut HashSet<InstrId>,
) {
    if !entry[value].users().iter().all(|user| above.contains(user)) {
        return;
    }
    match (entry[value].op(), asked) {
        (Op::Tuple(_), Shape::Tuple(elements)) => {
            above.insert(value);
            for (&operand, element) in entry[value].operands().iter().zip(elements) {
                writers(entry, operand, element, above, found);
            }
        }
        (Op::Bitcast(_), Shape::Array(array))
            if is_as_asked(entry, value, array) && is_view(entry, value, entry[value].operand(0)) =>
        {
            found.insert(value);
        }
        _ => {}
    }
}

pub(super) fn is_as_asked(entry: &Computation, id: InstrId, asked: &ArrayShape) -> bool {
    entry[id].shape().as_array().is_some_and(|array| array.minor_to_major() == asked.minor_to_major())
}

/// Whether `plain` is row-major and has the same bytes as `ordered`, which is not row-major.
pub(super) fn is_view(entry: &Computation, ordered: InstrId, plain: InstrId) -> bool {
    let (Some(ordered), Some(plain)) = (entry[ordered].shape().as_array(), entry[plain].shape().as_array()) else {
        return false;
    };
    let (Ok(steps), Ok(rest)) = (ordered.memory_steps(), plain.memory_steps()) else { return false };
    ordered.element_type() == plain.element_type()
        && ordered.storage_bits() == plain.storage_bits()
        && in_row_major_order(plain)
        && steps.split_first().is_some_and(|(first, others)| {
            matches!(first.kind, MemoryStepKind::Transpose(_)) && first.to == plain.dims() && others == rest
        })
}

/// Inserts the boundary conversions for an entry and for custom calls. All other bitcasts of the computation must have
/// been expanded.
pub(super) struct Border<'m> {
    pub(super) at: Inserter<'m>,
    bitcasts: HashSet<InstrId>,
    /// Instructions that have the requested layouts.
    kept: HashSet<InstrId>,
    is_changed: bool,
}

impl<'m> Border<'m> {
    pub fn new(module: &'m mut Module, computation: CompId, bitcasts: HashSet<InstrId>) -> Border<'m> {
        Border { at: Inserter::new(module, computation), bitcasts, kept: HashSet::new(), is_changed: false }
    }

    /// Assigns the requested layouts to parameters and result, and row-major layouts to all other values.
    pub fn put(&mut self, asked: &ProgramShape) -> Result<()> {
        let parameters = self.at.graph().parameters().to_vec();
        for (parameter, shape) in parameters.into_iter().zip(&asked.parameters) {
            self.open(parameter, shape)?;
        }
        let root = self.at.graph().root();
        let result = self.close(root, &asked.result)?;
        self.at.graph_mut().set_root(result);
        Ok(())
    }

    /// Returns the instructions that must keep their layout.
    pub fn into_kept(mut self) -> HashSet<InstrId> {
        if self.is_changed {
            self.at.graph_mut().set_schedule(None);
        }
        self.kept
    }

    fn keep(&mut self, value: InstrId, shape: &Shape) {
        self.kept.insert(value);
        self.at.graph_mut().set_shape(value, shape.clone());
    }

    /// Converts an external value to row-major for its users.
    pub(super) fn open(&mut self, value: InstrId, shape: &Shape) -> Result<()> {
        if is_row_major(shape) {
            return Ok(());
        }
        self.keep(value, shape);
        let mut others = Vec::new();
        for user in self.at.graph()[value].users().to_vec() {
            match (self.at.graph()[user].op(), shape) {
                (Op::GetTupleElement(get), Shape::Tuple(elements)) => {
                    let element = &elements[get.index];
                    self.open(user, element)?;
                }
                _ if self.bitcasts.contains(&user) => {}
                _ => others.push(user),
            }
        }
        let is_root = self.at.graph().root() == value;
        if others.is_empty() && !is_root {
            return Ok(());
        }
        let row_major = self.row_major(value, shape)?;
        for user in others {
            for i in 0..self.at.graph()[user].operands().len() {
                if self.at.graph()[user].operand(i) == value {
                    self.at.graph_mut().replace_operand(user, i, row_major);
                }
            }
        }
        if is_root {
            self.at.graph_mut().set_root(row_major);
        }
        Ok(())
    }

    /// Returns row-major arrays for a value in an external layout.
    fn row_major(&mut self, value: InstrId, shape: &Shape) -> Result<InstrId> {
        if is_row_major(shape) {
            return Ok(value);
        }
        self.is_changed = true;
        self.keep(value, shape);
        match shape {
            Shape::Array(array) => {
                let order = major_to_minor(array);
                let plain = self.at.add_as(Bitcast, in_order(array, &order), [value])?;
                self.bitcasts.insert(plain);
                self.at.add(Transpose { permutation: inverse(&order) }, [plain])
            }
            Shape::Tuple(elements) => {
                let mut parts = Vec::with_capacity(elements.len());
                for (i, element) in elements.iter().enumerate() {
                    let part = self.at.get(value, i)?;
                    parts.push(self.row_major(part, element)?);
                }
                self.at.tuple(&parts)
            }
            Shape::Token | Shape::Opaque | Shape::Buffer(_) => Ok(value),
        }
    }

    /// Converts a row-major value to an external layout.
    pub(super) fn close(&mut self, value: InstrId, shape: &Shape) -> Result<InstrId> {
        if is_row_major(shape) {
            return Ok(value);
        }
        match shape {
            Shape::Array(array) => {
                if !self.bitcasts.contains(&value) {
                    // Results of dynamic shape are converted after they have become static.
                    if !self.at.array(value)?.is_static() {
                        return Ok(value);
                    }
                    self.is_changed = true;
                    let permutation = major_to_minor(array);
                    let plain = self.at.add(Transpose { permutation }, [value])?;
                    let result = self.at.add_as(Bitcast, shape.clone(), [plain])?;
                    self.kept.insert(result);
                    return Ok(result);
                }
                self.keep(value, shape);
                Ok(value)
            }
            Shape::Tuple(elements) => self.close_tuple(value, shape, elements),
            Shape::Token | Shape::Opaque | Shape::Buffer(_) => Ok(value),
        }
    }

    fn close_tuple(&mut self, value: InstrId, shape: &Shape, elements: &[Shape]) -> Result<InstrId> {
        let is_tuple = matches!(self.at.graph()[value].op(), Op::Tuple(_));
        let operands = self.at.operands(value);
        let mut parts = Vec::with_capacity(elements.len());
        for (i, element) in elements.iter().enumerate() {
            let part = if is_tuple { operands[i] } else { self.at.get(value, i)? };
            parts.push(self.close(part, element)?);
        }
        let result = if is_tuple && parts == operands { value } else { self.at.tuple(&parts)? };
        self.is_changed |= result != value;
        self.keep(result, shape);
        Ok(result)
    }
}

fn major_to_minor(array: &ArrayShape) -> Vec<usize> {
    array.minor_to_major().into_iter().rev().collect()
}

/// Returns the row-major shape of an array with its dimensions in that order.
fn in_order(array: &ArrayShape, order: &[usize]) -> ArrayShape {
    let dims: Vec<usize> = order.iter().map(|&d| array.dims()[d]).collect();
    ArrayShape::new(array.element_type(), dims).with_row_major_layout()
}
