//! Operations on parts of global values: the rule for splits, and the form of the operation on one device.

use std::rc::Rc;

use xla_hlo::{ArrayShape, CompId, Error, InstrId, Op, Result, Shape};

use super::factors::{Factor, factors};
use super::place::{Along, Place, Split, Value};
use super::rewrite::Rewriter;
use crate::join::entry::regrouped;

/// Splits of the operands and results of an operation.
pub(super) struct Rule {
    /// Split of each operand.
    operands: Vec<Rc<Split>>,
    /// Split of each array of the result.
    result: Rc<Split>,
}

/// Reason for a refusal: a predicate of the operation.
type Refused = String;

impl Rewriter<'_> {
    /// Emits an operation with split operands. Replicated operands are cut into parts where necessary.
    pub(super) fn on_parts(&mut self, computation: CompId, id: InstrId, operands: &[Value]) -> Result<Value> {
        let rule = self.rule(computation, id, operands)?;
        let instruction = &self.source[computation][id];
        let mut ids = Vec::with_capacity(operands.len());
        for (operand, split) in operands.iter().zip(&rule.operands) {
            ids.push(self.converted(operand, split)?);
        }
        let mut op = instruction.op().clone();
        op.map_called_computations(&mut |callee| self.copies[&callee].copy);
        let shapes = self.source[computation].operand_shapes(id);
        on_part(&mut op, shapes.first().and_then(|shape| shape.as_array()), &rule);
        let places = vec![Place::Part(rule.result); instruction.shape().leaves().len()];
        let shape = local_shape(instruction.shape(), &places);
        Ok(Value { id: self.emit(instruction, op, shape, ids), places: places.into() })
    }

    /// Computes the splits of an operation with these operands. Returns `Error::Unimplemented` if the devices would
    /// have to communicate.
    pub(super) fn rule(&self, computation: CompId, id: InstrId, operands: &[Value]) -> Result<Rule> {
        let graph = &self.source[computation];
        let instruction = &graph[id];
        let opcode = instruction.op().opcode();
        let cannot = |cause: Refused| Error::unimplemented(format!("{opcode} {cause}, which needs a partitioner"));
        let shapes: Option<Vec<&ArrayShape>> = graph.operand_shapes(id).into_iter().map(Shape::as_array).collect();
        let leaves = instruction.shape().leaves();
        let leaves: Option<Vec<&ArrayShape>> = leaves.into_iter().map(|(_, leaf)| leaf.as_array()).collect();
        let (Some(shapes), Some(leaves)) = (shapes, leaves) else {
            return Err(cannot("takes a split value, and takes or returns values that are not arrays".to_string()));
        };
        if !shapes.iter().chain(&leaves).all(|shape| shape.is_static()) {
            return Err(cannot("takes a split value, and takes or returns arrays of dynamic size".to_string()));
        }
        let Some(&first) = leaves.first() else {
            return Err(cannot("takes a split value and returns none".to_string()));
        };
        let list = factors(instruction.op(), &shapes, first);
        rule(&list, operands, &shapes, first, self.devices).map_err(cannot)
    }
}

/// Returns the shape that a value of a global shape has on each device.
pub(super) fn local_shape(shape: &Shape, places: &[Place]) -> Shape {
    let leaves = shape.leaves().into_iter().zip(places).map(|((_, leaf), place)| match (leaf, place.split()) {
        (Shape::Array(array), Some(split)) => Shape::Array(split.tiles.grid.part_of(array)),
        _ => leaf.clone(),
    });
    regrouped(std::slice::from_ref(shape), &leaves.collect::<Vec<_>>()).remove(0)
}

/// Adapts the attributes of an operation that contain sizes of dimensions to the part of the first operand.
fn on_part(op: &mut Op, shape: Option<&ArrayShape>, rule: &Rule) {
    let (Some(shape), Some(split)) = (shape, rule.operands.first()) else { return };
    let sizes = shape.dims().iter().zip(&split.tiles.grid.dims).enumerate();
    for (d, (&size, &parts)) in sizes.filter(|(_, (_, parts))| **parts > 1) {
        match op {
            Op::Slice(op) => op.ranges[d].limit = size / parts,
            Op::DynamicSlice(op) => op.sizes[d] = size / parts,
            // Only one element of a batching dimension is read at a time.
            Op::Gather(op) if op.slice_sizes[d] == size => op.slice_sizes[d] = size / parts,
            _ => {}
        }
    }
}

/// Computes the splits of an operation with these factors.
fn rule(
    factors: &[Factor],
    operands: &[Value],
    shapes: &[&ArrayShape],
    result: &ArrayShape,
    devices: usize,
) -> std::result::Result<Rule, Refused> {
    let along = along(factors, operands)?;
    let known: Vec<&Rc<Split>> =
        operands.iter().flat_map(|operand| operand.places.iter()).filter_map(Place::split).collect();
    let mut of_result = vec![None; result.rank()];
    for (factor, along) in factors.iter().zip(&along).filter_map(|(factor, along)| Some((factor, along.as_ref()?))) {
        let (d, parts) = (factor.result, along.count);
        if !result.dims()[d].is_multiple_of(parts) {
            return Err(format!("returns dimension {d}, which does not have {parts} equal parts"));
        }
        of_result[d] = Some(along.clone());
    }
    let mut of_operands = Vec::with_capacity(operands.len());
    for (i, (operand, shape)) in operands.iter().zip(shapes).enumerate() {
        let mut dims = vec![None; shape.rank()];
        for (factor, along) in factors.iter().zip(&along) {
            if let Some(d) = factor.operands[i] {
                dims[d].clone_from(along);
            }
        }
        let wanted = Split::of_dims(&dims, devices, &known);
        let own = operand.places.first().and_then(Place::split).filter(|own| !own.is_replicated());
        match wanted.filter(|wanted| own.is_none_or(|own| own == wanted)) {
            Some(wanted) => of_operands.push(wanted),
            None => return Err("takes operands that are split in different ways".to_string()),
        }
    }
    let result = Split::of_dims(&of_result, devices, &known)
        .ok_or_else(|| "returns dimensions that are split over the same devices".to_string())?;
    Ok(Rule { operands: of_operands, result })
}

/// Returns the split along each factor, if an operand is split along it.
fn along(factors: &[Factor], operands: &[Value]) -> std::result::Result<Vec<Option<Along>>, Refused> {
    let mut along: Vec<Option<Along>> = vec![None; factors.len()];
    for (i, operand) in operands.iter().enumerate() {
        let split = match &operand.places[..] {
            [Place::Same] => continue,
            [Place::Part(split)] if split.is_unreduced() => {
                return Err("takes partial values that are not yet reduced".to_string());
            }
            [Place::Part(split)] => split,
            _ => return Err("takes values of a manual computation and global values".to_string()),
        };
        for (d, own) in (0..split.tiles.grid.dims.len()).filter_map(|d| Some((d, split.along(d)?))) {
            let number = factors.iter().position(|factor| factor.operands[i] == Some(d));
            let number = number.ok_or_else(|| format!("takes operand {i} split along dimension {d}"))?;
            if along[number].as_ref().is_some_and(|other| *other != own) {
                return Err("takes operands that are split in different ways".to_string());
            }
            along[number] = Some(own);
        }
    }
    Ok(along)
}
