//! Evaluator of collectives on one device.

use super::super::checks::{self, ensure};
use super::{AllGather, AllReduce, Collective, CollectiveDone, CollectivePermute, Participants};
use crate::eval::Evaluator;
use crate::ops::OpRules as _;
use crate::shape::{IndexIter, linear_index};
use crate::{ElementType, Error, Literal, Module, Result, Scalar, Shape};

/// Result of a collective that runs on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnOneDevice {
    /// The result is the first n operands, unchanged.
    PassedOn(usize),
    /// The result is zeros in the shapes of the first n operands: no device sends to this one.
    Zeros(usize),
    /// The result is operand 1, overwritten by these slices of operand 0; none if the device does not send to itself.
    Slices(Vec<SentSlice>),
    /// The result is operand 1, overwritten by rows of operand 0.
    Rows,
    /// The result is element 1 of operand 0, which is the result of the start operation.
    Done,
    /// The result is the number 0.
    Number,
}

impl Collective {
    /// Returns how the operation computes its result from operands of these shapes, in a module that runs on one
    /// device.
    ///
    /// Fails with [`Error::Unimplemented`] if the module declares more than one device, and with
    /// [`Error::InvalidArgument`] if the operation needs devices that the module does not declare.
    pub fn on_one_device(&self, module: &Module, operands: &[&Shape]) -> Result<OnOneDevice> {
        module.expect_one_device(self.opcode().name())?;
        let count = operands.len();
        match self {
            Collective::AllReduce(AllReduce { participants, .. })
            | Collective::AllGather(AllGather { participants, .. })
            | Collective::ReduceScatter { participants, .. }
            | Collective::AllToAll { participants, .. } => {
                self.expect_alone(participants)?;
                Ok(OnOneDevice::PassedOn(count))
            }
            Collective::CollectiveBroadcast { participants, has_dynamic_root } => {
                let data = count.saturating_sub(usize::from(*has_dynamic_root));
                let is_member = self.expect_alone(participants)?;
                Ok(if is_member { OnOneDevice::PassedOn(data) } else { OnOneDevice::Zeros(data) })
            }
            Collective::CollectiveReduce { participants, has_dynamic_root, .. } => {
                self.expect_alone(participants)?;
                Ok(OnOneDevice::PassedOn(count.saturating_sub(usize::from(*has_dynamic_root))))
            }
            Collective::RaggedAllToAll(participants) => {
                self.expect_alone(participants)?;
                Ok(OnOneDevice::Rows)
            }
            Collective::CollectivePermute(op) => {
                let (own, others): (Vec<&Vec<i64>>, _) =
                    op.pairs.iter().filter(|pair| pair.contains(&0)).partition(|pair| pair[..] == [0, 0]);
                let is_sent = !own.is_empty();
                if is_sent && !others.is_empty() {
                    let message = "collective-permute of slices is not implemented for pairs that copy to this device and to others";
                    return Err(Error::unimplemented(message));
                }
                match (operands, is_sent) {
                    ([input, _, places, _], true) if op.is_in_place() => {
                        Ok(OnOneDevice::Slices(sent_slices(op, input, places)?))
                    }
                    (_, false) if op.is_in_place() => Ok(OnOneDevice::Slices(Vec::new())),
                    (_, true) => Ok(OnOneDevice::PassedOn(count)),
                    (_, false) => Ok(OnOneDevice::Zeros(count)),
                }
            }
            Collective::Done(CollectiveDone::AllReduce) => Ok(OnOneDevice::PassedOn(count)),
            Collective::Done(CollectiveDone::AllGather | CollectiveDone::CollectivePermute) => Ok(OnOneDevice::Done),
            Collective::ReplicaId | Collective::PartitionId => Ok(OnOneDevice::Number),
        }
    }

    /// Checks that no other device is in a group with device 0. Returns whether device 0 is in a group at all.
    fn expect_alone(&self, participants: &Participants) -> Result<bool> {
        if participants.groups.is_everyone() {
            return Ok(true);
        }
        let groups = participants.groups.listed()?;
        let group = groups.iter().find(|group| group.contains(&0));
        if group.is_some_and(|group| group.len() > 1) {
            return Err(Error::invalid_argument(format!(
                "{} has a group of {} devices, but the module runs on one (its header names no replica_count or \
                 num_partitions above 1)",
                self.opcode(),
                group.map_or(0, Vec::len)
            )));
        }
        Ok(group.is_some())
    }

    /// Whether the result is a tuple even if there is only one array.
    pub fn returns_tuple(&self) -> bool {
        matches!(self, Collective::AllToAll { dimension: None, .. })
    }

    /// Whether the result is `(operands, results, state...)`, as for a start operation.
    pub fn returns_operands(&self) -> bool {
        match self {
            Collective::AllGather(op) => op.is_start,
            Collective::CollectivePermute(op) => op.is_start,
            Collective::AllReduce(_)
            | Collective::ReduceScatter { .. }
            | Collective::AllToAll { .. }
            | Collective::CollectiveBroadcast { .. }
            | Collective::CollectiveReduce { .. }
            | Collective::RaggedAllToAll(_)
            | Collective::Done(_)
            | Collective::ReplicaId
            | Collective::PartitionId => false,
        }
    }
}

pub(super) fn evaluate(
    op: &Collective,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let (sent, result) =
        match op.on_one_device(ev.module(), &operands.iter().map(Literal::shape).collect::<Vec<_>>())? {
            OnOneDevice::Number => return Ok(Literal::scalar(ElementType::U32, Scalar::Unsigned(0))),
            OnOneDevice::Done => return done(operands),
            OnOneDevice::PassedOn(count) => {
                let data = together(op, operands[..count].to_vec());
                (data.clone(), data)
            }
            OnOneDevice::Zeros(count) => {
                let data = together(op, operands[..count].to_vec());
                let zeros = Literal::zeros_of(data.shape())?;
                (data, zeros)
            }
            OnOneDevice::Slices(slices) => {
                let result = place_slices(&slices, &operands)?;
                (operands[0].clone(), result)
            }
            OnOneDevice::Rows => {
                let result = exchange_rows(&operands)?;
                (operands[0].clone(), result)
            }
        };
    check_size(op, &result, shape)?;
    if !op.returns_operands() {
        return Ok(result);
    }
    let mut elements = vec![sent, result];
    for state in shape.as_tuple().and_then(|elements| elements.get(2..)).unwrap_or_default() {
        elements.push(Literal::zeros_of(state)?);
    }
    Ok(Literal::tuple(elements))
}

/// Checks the result shape, since a program that declares no devices may have shapes meant for several.
fn check_size(op: &Collective, result: &Literal, shape: &Shape) -> Result<()> {
    let expected = if op.returns_operands() { shape.subshape(&[1]) } else { Some(shape) };
    if expected.is_some_and(|expected| expected.compatible(result.shape())) {
        return Ok(());
    }
    let said = shape.without_layout();
    Err(Error::invalid_argument(format!("{} has shape {} on one device, not {said}", op.opcode(), result.shape())))
}

/// Returns a single array as it is, unless the operation always returns a tuple; otherwise a tuple of the arrays.
fn together(op: &Collective, mut arrays: Vec<Literal>) -> Literal {
    if arrays.len() == 1 && !op.returns_tuple() { arrays.remove(0) } else { Literal::tuple(arrays) }
}

/// Returns element 1 of the start operation, which is its result.
fn done(operands: Vec<Literal>) -> Result<Literal> {
    let start = operands.into_iter().next().ok_or_else(checks::missing_operand)?;
    start.into_elements().into_iter().nth(1).ok_or_else(|| Error::internal("the start operation has no result"))
}

/// Copies slices of operand 0 over operand 1. Start indices are clamped so that each slice is in bounds.
fn place_slices(slices: &[SentSlice], operands: &[Literal]) -> Result<Literal> {
    let [input, output, inputs_at, outputs_at] = operands else { return Err(checks::missing_operand()) };
    let is_tuple = matches!(output.shape(), Shape::Tuple(_));
    let from: Vec<&Literal> = input.leaves();
    let mut to: Vec<Literal> = output.leaves().into_iter().cloned().collect();
    let (inputs_at, outputs_at) = (inputs_at.leaves(), outputs_at.leaves());
    for sent in slices {
        let (source, target) = (from[sent.array], &mut to[sent.array]);
        let place = |at: &[&Literal], dims: &[usize]| -> Vec<usize> {
            let coordinates = at[sent.first_place..].iter().zip(dims).zip(&sent.sizes);
            let clamped = coordinates.map(|((at, &dim), &size)| {
                at.get(0).as_i128().unwrap_or_default().clamp(0, dim.saturating_sub(size) as i128) as usize
            });
            clamped.collect()
        };
        let read_at = place(&inputs_at, source.array_shape().dims());
        let write_at = place(&outputs_at, target.array_shape().dims());
        let (from_dims, to_dims) = (source.array_shape().dims().to_vec(), target.array_shape().dims().to_vec());
        let mut offsets = IndexIter::new(&sent.sizes);
        while let Some(offset) = offsets.next_index() {
            let at = |base: &[usize]| -> Vec<usize> { base.iter().zip(offset).map(|(b, o)| b + o).collect() };
            let value = source.get(linear_index(&from_dims, &at(&read_at)));
            target.set(linear_index(&to_dims, &at(&write_at)), value);
        }
    }
    Ok(if is_tuple { Literal::tuple(to) } else { to.remove(0) })
}

/// Copies rows of operand 0 over operand 1, in the order of the list entries. Rows out of bounds of either array are
/// skipped.
fn exchange_rows(operands: &[Literal]) -> Result<Literal> {
    let [input, output, read_at, sizes, write_at, _] = operands else { return Err(checks::missing_operand()) };
    let mut result = output.clone();
    let rows = |literal: &Literal| literal.array_shape().dims()[0] as i128;
    let (from_rows, to_rows) = (rows(input), rows(output));
    if from_rows == 0 || to_rows == 0 {
        return Ok(result);
    }
    let row_bytes = input.bytes().len() / from_rows as usize;
    let number = |literal: &Literal, i: usize| literal.get(i).as_i128().unwrap_or_default();
    for entry in 0..sizes.array_shape().element_count() {
        let (read_at, write_at) = (number(read_at, entry), number(write_at, entry));
        // Only these rows are in bounds of both arrays, however large the numbers are.
        let first = 0.max(-read_at).max(-write_at);
        let end = number(sizes, entry).min(from_rows - read_at).min(to_rows - write_at);
        for row in first..end {
            let (from, to) = ((read_at + row) as usize * row_bytes, (write_at + row) as usize * row_bytes);
            let bytes = input.bytes()[from..from + row_bytes].to_vec();
            result.bytes_mut()[to..to + row_bytes].copy_from_slice(&bytes);
        }
    }
    Ok(result)
}

/// A slice sent by a collective-permute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentSlice {
    /// Leaf index of the array, in both operand 0 and operand 1.
    pub array: usize,
    /// Index of the slice's first start index among the leaves of operands 2 and 3, which hold one scalar for each
    /// dimension.
    pub first_place: usize,
    /// Size of the slice along each dimension.
    pub sizes: Vec<usize>,
}

/// Returns the slices that an in-place permute reads from or writes to `arrays`. `places` holds their start indices:
/// scalars for one array and one slice, otherwise tuples of them.
pub(super) fn sent_slices(op: &CollectivePermute, arrays: &Shape, places: &Shape) -> Result<Vec<SentSlice>> {
    let leaves = arrays.leaves();
    let groups: Vec<&Shape> = match (arrays, places) {
        (Shape::Tuple(_), Shape::Tuple(elements)) => elements.iter().collect(),
        _ => vec![places],
    };
    ensure!(groups.len() == leaves.len(), "{places} must have indices for each array of {arrays}");
    let mut slices: Vec<SentSlice> = Vec::new();
    let mut first_place = 0;
    for (array, ((_, leaf), group)) in leaves.iter().zip(groups).enumerate() {
        let dims = leaf.expect_array()?.dims();
        let scalars = group.leaves();
        for (_, scalar) in &scalars {
            let fits = scalar.as_array().is_some_and(|a| a.is_scalar() && a.element_type().is_integer());
            ensure!(fits, "slice indices must be integers, one is {scalar}");
        }
        let count = if dims.is_empty() { 0 } else { scalars.len() / dims.len() };
        ensure!(count > 0 && count * dims.len() == scalars.len(), "{group} must have indices into {leaf}");
        for _ in 0..count {
            let sizes = op.slice_sizes.get(slices.len()).map(Vec::as_slice).unwrap_or_default();
            let sizes: Vec<usize> = sizes.iter().filter_map(|&s| usize::try_from(s).ok()).collect();
            let fits = sizes.len() == dims.len() && sizes.iter().zip(dims).all(|(size, dim)| size <= dim);
            ensure!(fits, "slice_sizes must have a size that fits {leaf} for each of its slices");
            slices.push(SentSlice { array, first_place, sizes });
            first_place += dims.len();
        }
    }
    ensure!(
        slices.len() == op.slice_sizes.len(),
        "there are {} slice_sizes for {} slices",
        op.slice_sizes.len(),
        slices.len()
    );
    Ok(slices)
}
