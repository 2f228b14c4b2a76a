//! Threefry 2x32 random bit generator with 20 rounds, over arrays.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{ArrayShape, InstrId, Result, Scalar};

use super::random_words::{advanced, counters, elements, halves, interleaved, joined};
use crate::rewrite::builder::Inserter;

const ROTATIONS: [[u64; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
const PARITY: u64 = 0x1BD1_1BDA;

/// Emits bits in that shape, and the next counter. Key and counter are `u64` scalars.
///
/// An element of 64 bits takes one block. For narrower elements, the shape is halved along one dimension: a block
/// yields the elements 2i and 2i + 1 along it.
pub(super) fn bits(
    at: &mut Inserter<'_>,
    key: InstrId,
    counter: InstrId,
    shape: &ArrayShape,
) -> Result<(InstrId, Vec<InstrId>)> {
    let ty = shape.element_type();
    let wide = ty.bit_width() > 32;
    // A scalar is treated like an array of one element.
    let dims = if shape.is_scalar() { vec![1] } else { shape.dims().to_vec() };
    let cut = cut_dimension(&dims);
    let mut half = dims.clone();
    if !wide {
        half[cut] = half[cut].div_ceil(2);
    }
    let blocks = half.iter().product();
    let limbs = halves(at, counter)?;
    let limbs = counters(at, &limbs, blocks)?;
    let key = halves(at, key)?;
    let words = rounds(at, key, [limbs[0], limbs[1]])?;
    let all = if wide {
        joined(at, words[0], words[1])?
    } else {
        let words = [at.reshape(words[0], &half)?, at.reshape(words[1], &half)?];
        let all = interleaved(at, &words, cut)?;
        at.slice(all, cut, 0, dims[cut])?
    };
    let all = elements(at, all, ty)?;
    let bits = at.reshape(all, shape.dims())?;
    Ok((bits, advanced(at, &[counter], blocks)?))
}

/// Returns the first even dimension, or the first of the largest dimensions if all are odd.
fn cut_dimension(dims: &[usize]) -> usize {
    let largest = dims.iter().copied().max().unwrap_or(0);
    let even = dims.iter().position(|size| size % 2 == 0);
    even.or_else(|| dims.iter().position(|&size| size == largest)).unwrap_or(0)
}

fn rounds(at: &mut Inserter<'_>, key: [InstrId; 2], counter: [InstrId; 2]) -> Result<[InstrId; 2]> {
    let third = at.binary(BinaryOp::Xor, key[0], key[1])?;
    let third = at.binary_with(BinaryOp::Xor, third, Scalar::Unsigned(PARITY))?;
    let keys = [key[0], key[1], third];
    let dims = at.dims(counter[0]);
    let added = |at: &mut Inserter<'_>, x: InstrId, scalar: InstrId| {
        let all = at.broadcast(scalar, &dims, &[])?;
        at.binary(BinaryOp::Add, x, all)
    };
    let mut x = [added(at, counter[0], keys[0])?, added(at, counter[1], keys[1])?];
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            x[0] = at.binary(BinaryOp::Add, x[0], x[1])?;
            let rotated = rotated(at, x[1], rotation)?;
            x[1] = at.binary(BinaryOp::Xor, rotated, x[0])?;
        }
        x[0] = added(at, x[0], keys[(group + 1) % 3])?;
        let second = at.binary_with(BinaryOp::Add, keys[(group + 2) % 3], Scalar::Unsigned(group as u64 + 1))?;
        x[1] = added(at, x[1], second)?;
    }
    Ok(x)
}

/// Rotates `u32` elements left.
fn rotated(at: &mut Inserter<'_>, x: InstrId, by: u64) -> Result<InstrId> {
    let left = at.binary_with(BinaryOp::ShiftLeft, x, Scalar::Unsigned(by))?;
    let right = at.binary_with(BinaryOp::ShiftRightLogical, x, Scalar::Unsigned(32 - by))?;
    at.binary(BinaryOp::Or, left, right)
}
