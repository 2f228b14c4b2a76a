//! Lowering of a collective instruction to an operation of the engine.

use std::sync::Arc;

use xla_hlo::ops::Collective;
use xla_hlo::ops::collective::{AllGather, AllReduce, CollectivePermute, Meeting, SentSlice, slices_of_pair};
use xla_hlo::{ArrayShape, CompId, strides};

use super::arguments::{ArgumentSource, SlicePlace};
use super::gathering::Gathering;
use super::instruction::{Arrays, Instruction};
use crate::collective::{CollectiveSpec, Operation, Part, Reduction, SlicePair};

/// Operation of the engine that executes a collective instruction.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub spec: Arc<CollectiveSpec>,
    /// Number of operand arrays that the engine reads. The others have the values of the arguments.
    pub data: usize,
    pub arguments: ArgumentSource,
}

/// Derives the operation of the engine for a group.
///
/// These gather instead: reductions by a combiner that is not a single associative operation, which may be any
/// computation that the run can cancel; arrays of dynamic size; operands and results whose elements have different
/// orders in memory; shapes that do not fit the group and devices in no group, whose results or errors the evaluator
/// defines.
pub(super) fn lower(cx: &Instruction<'_>, meeting: &Meeting, arrays: &Arrays) -> Result<Lowered, Gathering> {
    let all = || arrays.operands.iter().chain(&arrays.results);
    if !all().all(ArrayShape::is_static) {
        return Err(Gathering::DynamicSize);
    }
    if all().any(|shape| shape.padded_byte_size() != shape.byte_size()) {
        return Err(Gathering::Layouts);
    }
    // A device that no pair of a collective-permute names receives zeros.
    if !meeting.is_group && !matches!(cx.op, Collective::CollectivePermute(_)) {
        return Err(Gathering::NoGroup);
    }
    let cx = &Lowering { cx, members: &meeting.members, operands: &arrays.operands, results: &arrays.results };
    match cx.cx.op {
        Collective::AllReduce(AllReduce { computation, .. }) => {
            cx.whole(Operation::AllReduce(cx.reduction(*computation)?), ArgumentSource::None)
        }
        // The result is undefined on all members but the root.
        Collective::CollectiveReduce { computation, has_dynamic_root, .. } => {
            let arguments = if *has_dynamic_root { ArgumentSource::Root } else { ArgumentSource::None };
            cx.whole(Operation::AllReduce(cx.reduction(*computation)?), arguments)
        }
        Collective::CollectiveBroadcast { has_dynamic_root, .. } => {
            let arguments = if *has_dynamic_root { ArgumentSource::Root } else { ArgumentSource::FirstRoot };
            cx.whole(Operation::Broadcast, arguments)
        }
        Collective::ReduceScatter { computation, dimension, .. } => {
            cx.cut(Operation::ReduceScatter(cx.reduction(*computation)?), *dimension, (cx.count(), 1))
        }
        Collective::AllGather(AllGather { dimension, .. }) => cx.cut(Operation::AllGather, *dimension, (1, cx.count())),
        Collective::AllToAll { dimension: Some(dimension), .. } => {
            cx.cut(Operation::AllToAll, *dimension, (cx.count(), cx.count()))
        }
        Collective::AllToAll { dimension: None, .. } => {
            // Operands are sent to results of other numbers.
            let is_same = |shape: &ArrayShape| have_same_form(shape, &cx.operands[0]);
            match cx.operands.len() == cx.count() && cx.operands.iter().all(is_same) {
                true => cx.whole(Operation::AllToAllTuple, ArgumentSource::None),
                false => Err(Gathering::Shapes),
            }
        }
        Collective::CollectivePermute(op) => cx.permute(op),
        Collective::RaggedAllToAll(_) => cx.ragged(),
        Collective::Done(_) | Collective::ReplicaId | Collective::PartitionId => Err(Gathering::Shapes),
    }
}

/// Whether two arrays have the same type, dimensions and order of elements in memory.
fn have_same_form(a: &ArrayShape, b: &ArrayShape) -> bool {
    a.element_type() == b.element_type() && a.same_dims(b) && a.minor_to_major() == b.minor_to_major()
}

/// Collective instruction whose arrays the engine supports.
struct Lowering<'a> {
    cx: &'a Instruction<'a>,
    members: &'a [usize],
    operands: &'a [ArrayShape],
    results: &'a [ArrayShape],
}

impl Lowering<'_> {
    fn count(&self) -> usize {
        self.members.len()
    }

    fn reduction(&self, computation: CompId) -> Result<Reduction, Gathering> {
        Reduction::single(&self.cx.module[computation]).ok_or(Gathering::Combiner)
    }

    fn lowered(&self, operation: Operation, parts: Vec<Part>, arguments: ArgumentSource) -> Result<Lowered, Gathering> {
        let data = parts.len();
        let spec = CollectiveSpec::new(operation, parts, self.count()).map_err(|_| Gathering::Sizes)?;
        Ok(Lowered { spec: Arc::new(spec), data, arguments })
    }

    /// Lowers an operation on arrays that are not cut: result `k` has the form of operand `k`.
    fn whole(&self, operation: Operation, arguments: ArgumentSource) -> Result<Lowered, Gathering> {
        let count = self.results.len();
        let data = self.operands.get(..count).ok_or(Gathering::Shapes)?;
        self.expect_form(data)?;
        self.lowered(operation, data.iter().map(whole).collect(), arguments)
    }

    /// Lowers an operation on arrays that are cut along a dimension, operands and results into these numbers of parts.
    fn cut(
        &self,
        operation: Operation,
        dimension: usize,
        (operand_parts, result_parts): (usize, usize),
    ) -> Result<Lowered, Gathering> {
        if self.operands.len() != self.results.len() {
            return Err(Gathering::Shapes);
        }
        let part = |(operand, result): (&ArrayShape, &ArrayShape)| {
            if operand.minor_to_major() != result.minor_to_major() {
                return Err(Gathering::Layouts);
            }
            let own = part(operand, dimension, operand_parts)?;
            match part(result, dimension, result_parts)? == own && has_same_part(operand, result, dimension) {
                true => Ok(own),
                false => Err(Gathering::Shapes),
            }
        };
        let parts = self.operands.iter().zip(self.results).map(part).collect::<Result<_, _>>()?;
        self.lowered(operation, parts, ArgumentSource::None)
    }

    fn permute(&self, op: &CollectivePermute) -> Result<Lowered, Gathering> {
        let pairs = op.pairs_among(self.cx.module.attributes(), self.members).map_err(|_| Gathering::Shapes)?;
        if !op.is_in_place() {
            return self.whole(Operation::Permute(pairs), ArgumentSource::None);
        }
        let (&[input, _, places, _], arrays) = (self.cx.operands, self.results.len()) else {
            return Err(Gathering::Shapes);
        };
        let slices = op.sent_slices(input, places).map_err(|_| Gathering::Shapes)?;
        let data = self.operands.get(..2 * arrays).ok_or(Gathering::Shapes)?;
        let (inputs, outputs) = data.split_at(arrays);
        self.expect_form(outputs)?;
        if inputs.iter().zip(outputs).any(|(input, output)| input.element_type() != output.element_type()) {
            return Err(Gathering::Shapes);
        }
        let place = |slice: usize| SlicePlace::new(&slices[slice], inputs, outputs);
        let pair = |i: usize| {
            let (from, to) = pairs[i];
            slices_of_pair(&pairs, i, &slices).map(move |slice| (from, to, slice))
        };
        let pair_of_slice = |(from, to, slice): (usize, usize, usize)| {
            let (sent, place) = (&slices[slice], place(slice));
            SlicePair {
                from,
                to,
                array: sent.array,
                slice,
                sizes: sent.sizes.clone(),
                read_strides: place.read_strides,
                write_strides: place.write_strides,
            }
        };
        let sent = (0..pairs.len()).flat_map(pair).map(pair_of_slice).collect();
        let places = (0..slices.len()).map(place).collect();
        self.lowered(Operation::PermuteSlices(sent), data.iter().map(whole).collect(), ArgumentSource::Slices(places))
    }

    fn ragged(&self) -> Result<Lowered, Gathering> {
        let ([input, output, ..], [_]) = (self.operands, self.results) else { return Err(Gathering::Shapes) };
        self.expect_form(std::slice::from_ref(output))?;
        let is_by_rows = |shape: &ArrayShape| shape.minor_to_major().last() == Some(&0);
        if input.minor_to_major() != output.minor_to_major() || !is_by_rows(input) {
            return Err(Gathering::Layouts);
        }
        let rows = |shape: &ArrayShape| {
            let inner = product(shape, 1..shape.rank())?;
            Ok(Part { element_type: shape.element_type(), outer: shape.dims()[0], inner })
        };
        self.lowered(Operation::RaggedAllToAll, vec![rows(input)?, rows(output)?], ArgumentSource::Rows)
    }

    /// Checks that the results have the forms of these operands.
    fn expect_form(&self, operands: &[ArrayShape]) -> Result<(), Gathering> {
        let pairs = || operands.iter().zip(self.results);
        let is_same = |(operand, result): (&ArrayShape, &ArrayShape)| {
            operand.element_type() == result.element_type() && operand.same_dims(result)
        };
        if operands.len() != self.results.len() || !pairs().all(is_same) {
            return Err(Gathering::Shapes);
        }
        match pairs().all(|(operand, result)| have_same_form(operand, result)) {
            true => Ok(()),
            false => Err(Gathering::Layouts),
        }
    }
}

fn whole(shape: &ArrayShape) -> Part {
    Part::whole(shape.element_type(), shape.element_count())
}

/// Returns the share of one of `parts` members in an array that is cut along a dimension.
fn part(shape: &ArrayShape, dimension: usize, parts: usize) -> Result<Part, Gathering> {
    let order = shape.minor_to_major();
    let place = order.iter().position(|&d| d == dimension).ok_or(Gathering::Shapes)?;
    if !shape.dims()[dimension].is_multiple_of(parts) {
        return Err(Gathering::Shapes);
    }
    let (inner, outer) = order.split_at(place + 1);
    let inner = product(shape, inner.iter().copied())? / parts;
    Ok(Part { element_type: shape.element_type(), outer: product(shape, outer.iter().copied())?, inner })
}

/// Returns the product of the sizes of some dimensions. It may exceed the address space if another dimension is empty.
fn product(shape: &ArrayShape, mut dimensions: impl Iterator<Item = usize>) -> Result<usize, Gathering> {
    dimensions.try_fold(1, |product: usize, d| product.checked_mul(shape.dims()[d])).ok_or(Gathering::Sizes)
}

/// Whether two arrays have equal sizes, except along a dimension.
fn has_same_part(a: &ArrayShape, b: &ArrayShape, dimension: usize) -> bool {
    let has_same_size = |(d, (a, b)): (usize, (&usize, &usize))| d == dimension || a == b;
    a.rank() == b.rank() && a.dims().iter().zip(b.dims()).enumerate().all(has_same_size)
}

impl SlicePlace {
    fn new(slice: &SentSlice, inputs: &[ArrayShape], outputs: &[ArrayShape]) -> SlicePlace {
        let [input, output] = [&inputs[slice.array], &outputs[slice.array]];
        let last = |shape: &ArrayShape| -> Vec<usize> {
            shape.dims().iter().zip(&slice.sizes).map(|(dim, size)| dim.saturating_sub(*size)).collect()
        };
        let strides = |shape: &ArrayShape| strides(shape.dims(), &shape.minor_to_major());
        SlicePlace {
            first_place: slice.first_place,
            last_read: last(input),
            last_write: last(output),
            read_strides: strides(input),
            write_strides: strides(output),
        }
    }
}
