//! Evaluator of the random family, which returns the same bits as XLA.
//!
//! The generators are from J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). The mapping of their
//! words to the elements of a shape is specific to XLA.

use super::*;
use crate::{ArrayShape, Scalar, multi_index};

pub(super) fn rng_bit_generator(
    op: &RngBitGenerator,
    _: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let mut state =
        operands.into_iter().next().ok_or_else(|| Error::internal("the state of rng-bit-generator is missing"))?;
    let Some([_, Shape::Array(shape)]) = shape.as_tuple() else {
        return Err(Error::internal("the result of rng-bit-generator is not a pair of state and bits"));
    };
    let words: Vec<u64> = (0..state.array_shape().element_count()).map(|i| word(&state, i)).collect();
    let (counter, bits) = match op.algorithm {
        RngAlgorithm::ThreeFry => threefry_bits(words[0], words[1], shape)?,
        RngAlgorithm::Philox | RngAlgorithm::Default => {
            // A two-word state contains the key, which is also the upper half of the counter, and the lower half of the
            // counter.
            let high = *words.get(2).unwrap_or(&words[0]);
            philox_bits(words[0], u128::from(words[1]) | u128::from(high) << 64, shape)?
        }
    };
    state.set(1, Scalar::Unsigned(counter as u64));
    if words.len() == 3 {
        state.set(2, Scalar::Unsigned((counter >> 64) as u64));
    }
    Ok(Literal::tuple(vec![state, bits]))
}

fn word(state: &Literal, i: usize) -> u64 {
    match state.get(i) {
        Scalar::Unsigned(v) => v,
        _ => 0,
    }
}

/// Returns the next counter and the bits. The words of consecutive blocks are assigned to elements in row-major order:
/// two elements for each block if they are wider than 32 bits, otherwise four.
pub(super) fn philox_bits(key: u64, counter: u128, shape: &ArrayShape) -> Result<(u128, Literal)> {
    let ty = shape.element_type();
    let per_block = if ty.bit_width() > 32 { 2 } else { 4 };
    let mut block = [0; 4];
    let bits = Literal::from_fn(shape, |i| {
        let (at, place) = (i / per_block, i % per_block);
        if place == 0 {
            block = philox(key, counter.wrapping_add(at as u128));
        }
        let raw = match per_block {
            2 => join(block[2 * place], block[2 * place + 1]),
            _ => u64::from(block[place]),
        };
        Scalar::from_bits(ty, raw)
    })?;
    let blocks = shape.element_count().div_ceil(per_block);
    Ok((counter.wrapping_add(blocks as u128), bits))
}

/// Returns the next counter and the bits. Each element of 64 bits takes a block. For narrower elements, one dimension
/// is split in halves, and a block yields the elements 2i and 2i + 1 along it.
fn threefry_bits(key: u64, counter: u64, shape: &ArrayShape) -> Result<(u128, Literal)> {
    let ty = shape.element_type();
    let at = |i: usize| threefry(key, counter.wrapping_add(i as u64));
    if ty.bit_width() > 32 {
        let bits = Literal::from_fn(shape, |i| {
            let [low, high] = at(i);
            Scalar::from_bits(ty, join(low, high))
        })?;
        return Ok((u128::from(counter.wrapping_add(shape.element_count() as u64)), bits));
    }
    // A scalar is split like an array of one element.
    let dims = if shape.is_scalar() { &[1][..] } else { shape.dims() };
    let cut = cut_dimension(dims);
    let mut half = dims.to_vec();
    half[cut] = half[cut].div_ceil(2);
    let bits = Literal::from_fn(shape, |i| {
        let mut index = multi_index(dims, i);
        let place = index[cut] % 2;
        index[cut] /= 2;
        Scalar::from_bits(ty, u64::from(at(crate::linear_index(&half, &index))[place]))
    })?;
    let blocks: usize = half.iter().product();
    Ok((u128::from(counter.wrapping_add(blocks as u64)), bits))
}

/// Returns the first even dimension or, if all dimensions are odd, the first of the largest.
fn cut_dimension(dims: &[usize]) -> usize {
    let largest = dims.iter().copied().max().unwrap_or(0);
    let even = dims.iter().position(|size| size % 2 == 0);
    even.or_else(|| dims.iter().position(|&size| size == largest)).unwrap_or(0)
}

fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// Computes one block of Philox 4x32-10.
fn philox(key: u64, counter: u128) -> [u32; 4] {
    let (mut k0, mut k1) = halves(key);
    let ((mut x0, mut x1), (mut x2, mut x3)) = (halves(counter as u64), halves((counter >> 64) as u64));
    for _ in 0..10 {
        let (low0, high0) = halves(u64::from(x0) * 0xD251_1F53);
        let (low1, high1) = halves(u64::from(x2) * 0xCD9E_8D57);
        (x0, x1, x2, x3) = (high1 ^ x1 ^ k0, low1, high0 ^ x3 ^ k1, low0);
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    [x0, x1, x2, x3]
}

/// Computes one block of Threefry 2x32-20.
fn threefry(key: u64, counter: u64) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let (k0, k1) = halves(key);
    let keys = [k0, k1, k0 ^ k1 ^ 0x1BD1_1BDA];
    let (low, high) = halves(counter);
    let (mut x0, mut x1) = (low.wrapping_add(k0), high.wrapping_add(k1));
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            x0 = x0.wrapping_add(x1);
            x1 = x1.rotate_left(rotation) ^ x0;
        }
        x0 = x0.wrapping_add(keys[(group + 1) % 3]);
        x1 = x1.wrapping_add(keys[(group + 2) % 3]).wrapping_add(group as u32 + 1);
    }
    [x0, x1]
}
