//! Slices that a collective-permute sends in place.

use super::super::checks::{self, ensure};
use super::CollectivePermute;
use crate::shape::{IndexIter, linear_index};
use crate::{Literal, Result, Shape};

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

impl CollectivePermute {
    /// Returns the slices that an in-place permute sends from operand 0, whose shape is `arrays`. `places` is the shape
    /// of operand 2. Fails if they do not fit together.
    pub fn sent_slices(&self, arrays: &Shape, places: &Shape) -> Result<Vec<SentSlice>> {
        sent_slices(self, arrays, places)
    }
}

/// Returns the indices of the slices that an in-place permute sends along pair `i` of sender and receiver. Slices take
/// effect in the order of the pairs.
///
/// A sender with one pair sends all slices to its target. A sender with a pair for each slice of an array sends slice
/// `k` of each array along its pair `k`.
pub fn slices_of_pair<'s>(
    pairs: &[(usize, usize)],
    i: usize,
    slices: &'s [SentSlice],
) -> impl Iterator<Item = usize> + use<'s> {
    let of_sender = |others: &[(usize, usize)]| others.iter().filter(|other| other.0 == pairs[i].0).count();
    let (count, number) = (of_sender(pairs), of_sender(&pairs[..i]));
    let number_in_array = |slice: usize| slices[..slice].iter().filter(|s| s.array == slices[slice].array).count();
    (0..slices.len()).filter(move |&slice| count == 1 || number_in_array(slice) == number)
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

/// Copies slices of the sender's operand 0 over the receiver's operand 1. Start indices are clamped so that each slice
/// is in bounds.
pub(super) fn place_slices(slices: &[SentSlice], sender: &[Literal], receiver: &[Literal]) -> Result<Literal> {
    let ([input, _, inputs_at, _], [_, output, _, outputs_at]) = (sender, receiver) else {
        return Err(checks::missing_operand());
    };
    let is_tuple = output.shape().as_tuple().is_some();
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
