//! Matrix products of tiles on tensor cores: scores of rows and columns, and functions of scores times values.

use xla_hlo::{ElementType, Error, Result, Scalar as Element};

use super::operand::{Fragments, Operand};
use crate::elemental::{self, Value};
use crate::fused::contraction::matmul::MatmulSide;
use crate::fused::core::convolution::converted;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::lanes::{Lanes, Scalar};
use crate::mma::{COLUMNS, OperandType};

/// Four accumulators of a thread per matrix: two adjacent ones of a row, and two of the row eight below.
pub(super) type Sums<'e, 'ctx> = [Lanes<'e, 'ctx>; 4];

/// Tile of one side of a product, and a thread's fragments of it.
pub(super) type Side<'a, 'e, 'ctx> = (&'a Operand<'e, 'ctx>, &'a Fragments<'e, 'ctx>);

/// Row and column of a thread's result, and the adjacent elements of the row that start there.
pub(super) type Placed<'e, 'ctx> = ([AffineExpr; 2], Value<'e, 'ctx>);

/// Returns zero accumulators for rows of `elements` elements.
pub(super) fn zeros<'e, 'ctx>(s: &FusedEmitter<'e, 'ctx, '_>, elements: u64) -> Vec<Sums<'e, 'ctx>> {
    let zero = elemental::constant(s.emitter, ElementType::F32, Element::Float(0.0)).lanes();
    vec![[zero; 4]; (elements / COLUMNS) as usize]
}

/// Returns the fragments of the values, the right operand of the products with functions of scores.
pub(super) fn of_values<'e, 'ctx>(
    unit: OperandType,
    values: &Operand<'e, 'ctx>,
    lane: Lanes<'e, 'ctx>,
) -> Vec<Fragments<'e, 'ctx>> {
    match unit {
        OperandType::F16 | OperandType::Bf16 => vec![values.transposed(lane)],
        OperandType::Tf32 => values.columns(lane).into(),
    }
}

/// Computes the scores of the warp's rows and a tile of `columns` columns; `head` is the length of their dot products.
pub(super) fn scores<'e, 'ctx>(
    s: &FusedEmitter<'e, 'ctx, '_>,
    unit: OperandType,
    [(left, of_left), (right, of_right)]: [Side<'_, 'e, 'ctx>; 2],
    (columns, head): (u64, u64),
) -> Result<Vec<Sums<'e, 'ctx>>> {
    let mut scores = zeros(s, columns);
    for step in 0..head / unit.depth() {
        let rows = rounded(s, unit, left.load(s, of_left, (0, step), false)?)?;
        for (group, pair) in scores.chunks_exact_mut(2).enumerate() {
            let keys = right.load(s, of_right, (group as u64, step), false)?;
            let [a, b, c, d] = rounded(s, unit, keys)?;
            pair[0] = s.emitter.multiply_matrices(unit, rows, [a, b], pair[0])?;
            pair[1] = s.emitter.multiply_matrices(unit, rows, [c, d], pair[1])?;
        }
    }
    Ok(scores)
}

/// Returns the fragments in the operand type of the tensor core: f32 is rounded to TF32 here.
fn rounded<'e, 'ctx, const N: usize>(
    s: &FusedEmitter<'e, 'ctx, '_>,
    unit: OperandType,
    mut fragments: [Lanes<'e, 'ctx>; N],
) -> Result<[Lanes<'e, 'ctx>; N]> {
    if unit == OperandType::Tf32 {
        for word in &mut fragments {
            *word = s.emitter.round_to_tf32(word.cast_bits(Scalar::F32))?.cast_bits(Scalar::Int(32));
        }
    }
    Ok(fragments)
}

/// Adds the products of a tile's values with the thread's elements of the tile's `columns`, in its two rows.
pub(super) fn multiply<'e, 'ctx>(
    s: &FusedEmitter<'e, 'ctx, '_>,
    (unit, columns): (OperandType, u64),
    rows: [&[Lanes<'e, 'ctx>]; 2],
    (values, of_values): (&Operand<'e, 'ctx>, &[Fragments<'e, 'ctx>]),
    results: &mut [Sums<'e, 'ctx>],
) -> Result<()> {
    for step in 0..columns / unit.depth() {
        let rows = left_fragments(s, unit, rows, step)?;
        match of_values {
            [even, odd] => {
                for (matrix, sums) in (0..).zip(results.iter_mut()) {
                    let values = [even, odd].map(|part| values.load_element(s, part, (step, matrix)));
                    *sums = s.emitter.multiply_matrices(unit, rows, rounded(s, unit, values)?, *sums)?;
                }
            }
            of_values => {
                for (group, pair) in (0..).zip(results.chunks_exact_mut(2)) {
                    let [a, b, c, d] = values.load(s, &of_values[0], (step, group), true)?;
                    pair[0] = s.emitter.multiply_matrices(unit, rows, [a, b], pair[0])?;
                    pair[1] = s.emitter.multiply_matrices(unit, rows, [c, d], pair[1])?;
                }
            }
        }
    }
    Ok(())
}

/// Converts one step's columns to fragments of the left operand. A thread's accumulators of the scores are at the
/// positions of its fragments, so that no data moves between threads. With TF32, a thread has two consecutive steps of
/// K, while the numbers of its two steps on the tensor core differ by four; the fragments of the values use the same
/// permutation.
pub(super) fn left_fragments<'e, 'ctx>(
    s: &FusedEmitter<'e, 'ctx, '_>,
    unit: OperandType,
    [upper, lower]: [&[Lanes<'e, 'ctx>]; 2],
    step: u64,
) -> Result<Sums<'e, 'ctx>> {
    if unit == OperandType::Tf32 {
        let at = 2 * step as usize;
        let words = [upper[at], lower[at], upper[at + 1], lower[at + 1]];
        return rounded(s, unit, words.map(|word| word.cast_bits(Scalar::Int(32))));
    }
    let at = 4 * step as usize;
    let ty = unit.element_type();
    let pair = |row: &[Lanes<'e, 'ctx>], at: usize| {
        let both = Value::new(ElementType::F32, row[at].concat(row[at + 1]));
        let [low, high] = converted(s.emitter, both, ty)?.stored_lanes().deinterleave();
        let [low, high] = [low, high].map(|half| half.cast_bits(Scalar::Int(16)).zext(32));
        Ok::<_, Error>((high << 16) | low)
    };
    Ok([pair(upper, at)?, pair(lower, at)?, pair(upper, at + 2)?, pair(lower, at + 2)?])
}

/// Returns a thread's results as adjacent elements of rows, with their positions; `values` is the side of the values in
/// the second dot, and `member` the index of the thread among those with the same two rows.
pub(super) fn placed<'e, 'ctx>(
    results: &[Sums<'e, 'ctx>],
    rows: &[AffineExpr; 2],
    member: &AffineExpr,
    values: MatmulSide,
) -> Vec<Placed<'e, 'ctx>> {
    let mut places = Vec::new();
    for (matrix, sums) in (0..).zip(results) {
        let column = member.clone().scaled(2).shifted(matrix * COLUMNS as i64);
        for (row, both) in rows.iter().zip(sums.chunks_exact(2)) {
            match values {
                MatmulSide::Right => {
                    let value = Value::new(ElementType::F32, both[0].concat(both[1]));
                    places.push(([row.clone(), column.clone()], value));
                }
                MatmulSide::Left => {
                    for (number, &lanes) in (0..).zip(both) {
                        let at = [column.clone().shifted(number), row.clone()];
                        places.push((at, Value::new(ElementType::F32, lanes)));
                    }
                }
            }
        }
    }
    places
}
