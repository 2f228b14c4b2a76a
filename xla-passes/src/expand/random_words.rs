//! Words of block generators over arrays: halves, counters, and conversion to elements.

use xla_hlo::ops::{BinaryOp, CompareDirection, Gather};
use xla_hlo::{ArrayShape, ElementKind, ElementType, InstrId, Literal, Result, Scalar};

use super::expand_bitcast_converts::{from_pattern, pattern_type};
use crate::rewrite::builder::Inserter;

/// Splits `u64` elements into `u32` halves, the low one first.
pub(super) fn halves(at: &mut Inserter<'_>, x: InstrId) -> Result<[InstrId; 2]> {
    let low = at.convert(x, ElementType::U32)?;
    let high = at.binary_with(BinaryOp::ShiftRightLogical, x, Scalar::Unsigned(32))?;
    Ok([low, at.convert(high, ElementType::U32)?])
}

/// Emits `low | high << 32` of `u32` elements.
pub(super) fn joined(at: &mut Inserter<'_>, low: InstrId, high: InstrId) -> Result<InstrId> {
    let (low, high) = (at.convert(low, ElementType::U64)?, at.convert(high, ElementType::U64)?);
    let high = at.binary_with(BinaryOp::ShiftLeft, high, Scalar::Unsigned(32))?;
    at.binary(BinaryOp::Or, low, high)
}

/// Advances a counter of scalar `u64` words, low word first, by a number. It wraps around.
pub(super) fn advanced(at: &mut Inserter<'_>, counter: &[InstrId], by: usize) -> Result<Vec<InstrId>> {
    let mut next: Vec<InstrId> = Vec::new();
    let mut carry = None;
    for &word in counter {
        let sum = match carry {
            None => at.binary_with(BinaryOp::Add, word, Scalar::Unsigned(by as u64))?,
            Some(carry) => at.binary(BinaryOp::Add, word, carry)?,
        };
        let overflows = at.compare(CompareDirection::Lt, sum, word)?;
        carry = Some(at.convert(overflows, ElementType::U64)?);
        next.push(sum);
    }
    Ok(next)
}

/// Returns the counter of scalar `u32` limbs plus the block number for each of `blocks` blocks: arrays of `u32`, low
/// limb first.
pub(super) fn counters(at: &mut Inserter<'_>, counter: &[InstrId], blocks: usize) -> Result<Vec<InstrId>> {
    // Block numbers of 32 bits suffice for all but the largest arrays, and take half the work.
    let number = if u32::try_from(blocks).is_ok() {
        vec![at.iota(ElementType::U32, &[blocks], 0)?]
    } else {
        let number = at.iota(ElementType::U64, &[blocks], 0)?;
        halves(at, number)?.to_vec()
    };
    let mut sums: Vec<InstrId> = Vec::new();
    let mut carry: Option<InstrId> = None;
    for (i, &limb) in counter.iter().enumerate() {
        let limb = at.broadcast(limb, &[blocks], &[])?;
        let mut overflows = Vec::new();
        let mut sum = limb;
        for term in number.get(i).copied().into_iter().chain(carry) {
            sum = at.binary(BinaryOp::Add, sum, term)?;
            let overflow = at.compare(CompareDirection::Lt, sum, term)?;
            overflows.push(at.convert(overflow, ElementType::U32)?);
        }
        // At most one of the two additions overflows.
        carry = overflows.into_iter().map(Ok).reduce(|a, b| at.binary(BinaryOp::Or, a?, b?)).transpose()?;
        sums.push(sum);
    }
    Ok(sums)
}

/// Interleaves arrays of words along `dimension`: stacks them along a new dimension after it, then merges both
/// dimensions.
pub(super) fn interleaved(at: &mut Inserter<'_>, words: &[InstrId], dimension: usize) -> Result<InstrId> {
    let mut dims = at.dims(words[0]);
    let mut single = dims.clone();
    single.insert(dimension + 1, 1);
    dims[dimension] *= words.len();
    let words = words.iter().map(|&word| at.reshape(word, &single)).collect::<Result<Vec<_>>>()?;
    let stacked = at.concatenate(&words, dimension + 1)?;
    at.reshape(stacked, &dims)
}

/// Reinterprets the low bits of words as elements of a type.
pub(super) fn elements(at: &mut Inserter<'_>, words: InstrId, to: ElementType) -> Result<InstrId> {
    if let Some(pattern) = pattern_type(to).filter(|_| to.kind() != ElementKind::Pred) {
        let bits = at.convert(words, pattern)?;
        return from_pattern(at, bits, to);
    }
    // There is no six-bit integer type, so that the elements are read from a table of all patterns.
    let count = 1 << to.bit_width();
    let table = Literal::from_fn(&ArrayShape::new(to, [count]), |i| Scalar::from_bits(to, i as u64))?;
    let table = at.literal(table)?;
    let pattern = at.binary_with(BinaryOp::And, words, Scalar::Unsigned(count as u64 - 1))?;
    let index_vector_dim = at.dims(pattern).len();
    let lookup = Gather {
        offset_dims: Vec::new(),
        collapsed_slice_dims: vec![0],
        start_index_map: vec![0],
        operand_batching_dims: Vec::new(),
        start_indices_batching_dims: Vec::new(),
        index_vector_dim,
        slice_sizes: vec![1],
        indices_are_sorted: false,
    };
    at.add(lookup, [table, pattern])
}
