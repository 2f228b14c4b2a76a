//! Philox 4x32 random bit generator with 10 rounds, over arrays.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{ArrayShape, ElementType, InstrId, Result, Scalar};

use super::random_words::{advanced, counters, elements, halves, interleaved, joined};
use crate::rewrite::builder::Inserter;

const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [u64; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// Emits bits in that shape, and the next counter. Key and counter words are `u64` scalars.
pub(super) fn bits(
    at: &mut Inserter<'_>,
    key: InstrId,
    counter: [InstrId; 2],
    shape: &ArrayShape,
) -> Result<(InstrId, Vec<InstrId>)> {
    let ty = shape.element_type();
    let per_block = if ty.bit_width() > 32 { 2 } else { 4 };
    let count = shape.element_count();
    let blocks = count.div_ceil(per_block);
    let [low, high] = [halves(at, counter[0])?, halves(at, counter[1])?];
    let limbs = counters(at, &[low, high].concat(), blocks)?;
    let key = halves(at, key)?;
    let words = rounds(at, key, [limbs[0], limbs[1], limbs[2], limbs[3]])?;
    let words = match per_block {
        2 => vec![joined(at, words[0], words[1])?, joined(at, words[2], words[3])?],
        _ => words.to_vec(),
    };
    let all = interleaved(at, &words, 0)?;
    let all = at.slice(all, 0, 0, count)?;
    let all = elements(at, all, ty)?;
    let bits = at.reshape(all, shape.dims())?;
    Ok((bits, advanced(at, &counter, blocks)?))
}

fn rounds(at: &mut Inserter<'_>, key: [InstrId; 2], counter: [InstrId; 4]) -> Result<[InstrId; 4]> {
    let shape = ArrayShape::new(ElementType::U32, at.dims(counter[0]));
    let multipliers =
        [at.splat(&shape, Scalar::Unsigned(MULTIPLIERS[0]))?, at.splat(&shape, Scalar::Unsigned(MULTIPLIERS[1]))?];
    let (mut key, mut x) = (key, counter);
    for round in 0..ROUNDS {
        if round > 0 {
            for (half, step) in key.iter_mut().zip(KEY_STEPS) {
                *half = at.binary_with(BinaryOp::Add, *half, Scalar::Unsigned(step))?;
            }
        }
        let mut product = |i: usize, j: usize| -> Result<[InstrId; 2]> {
            let low = at.binary(BinaryOp::Multiply, x[i], multipliers[j])?;
            Ok([low, at.binary(BinaryOp::Mulhi, x[i], multipliers[j])?])
        };
        let ([low0, high0], [low1, high1]) = (product(0, 0)?, product(2, 1)?);
        let mut mixed = |high: InstrId, word: InstrId, key: InstrId| -> Result<InstrId> {
            let key = at.broadcast(key, shape.dims(), &[])?;
            let keyed = at.binary(BinaryOp::Xor, word, key)?;
            at.binary(BinaryOp::Xor, high, keyed)
        };
        x = [mixed(high1, x[1], key[0])?, low1, mixed(high0, x[3], key[1])?, low0];
    }
    Ok(x)
}
