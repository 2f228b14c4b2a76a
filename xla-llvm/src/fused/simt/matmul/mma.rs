//! Tiles of matmuls on tensor cores (`mma.sync`): two rows of four warps.
//!
//! The tensor core does not depend on the order of rows, columns and steps of K, as long as all threads use the same
//! permutation. Each thread therefore takes adjacent elements, which one access loads. If an operand is contiguous
//! along its rows (or columns), these are the elements at the same position in all of the warp's matrices; otherwise
//! they are consecutive steps of K. With TF32, a thread takes two consecutive steps, while the numbers of its two steps
//! on the tensor core differ by 4. The accesses of a warp have no bank conflicts.

use xla_hlo::{ElementType, Result};

use crate::elemental::Value;
use crate::fused::contraction::matmul::{Along, MatmulSide};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::simt::matmul::tile::{Part, Tile};
use crate::fused::simt::matmul::tiling::{THREADS, Tiling};
use crate::lanes::{Lanes, Scalar};
use crate::mma::{COLUMNS, OperandType, ROWS};
use crate::simt::WARP;

/// Number of warps per block along the columns (`WARPS_ACROSS`) and along the rows (`WARPS_DOWN`).
const WARPS_ACROSS: u64 = 4;
const WARPS_DOWN: u64 = THREADS / WARP as u64 / WARPS_ACROSS;

/// Position in the tile of a thread's fragments.
pub(crate) struct WarpPlace {
    /// First row and first column of the warp's sums.
    pub row: AffineExpr,
    pub column: AffineExpr,
    /// `g` and `t` of the thread, as defined in `crate::mma`.
    group: AffineExpr,
    member: AffineExpr,
}

impl WarpPlace {
    pub fn new(s: &mut FusedEmitter<'_, '_, '_>, tiling: Tiling, thread: &AffineExpr) -> Result<WarpPlace> {
        let (warp, lane) = s.divide(thread, i64::from(WARP))?;
        let (down, across) = s.divide(&warp, WARPS_ACROSS as i64)?;
        let (group, member) = s.divide(&lane, 4)?;
        Ok(WarpPlace {
            row: down.scaled((matrices(tiling, MatmulSide::Left) * ROWS) as i64),
            column: across.scaled((matrices(tiling, MatmulSide::Right) * COLUMNS) as i64),
            group,
            member,
        })
    }
}

/// Returns the number of a warp's matrices along a side.
fn matrices(tiling: Tiling, side: MatmulSide) -> u64 {
    let size = tiling.size(side);
    match side {
        MatmulSide::Left => size / (ROWS * WARPS_DOWN),
        MatmulSide::Right => size / (COLUMNS * WARPS_ACROSS),
    }
}

/// Strides in the tile of the rows (or columns) of a warp's matrices: between consecutive groups, between consecutive
/// matrices, and from the upper half of a matrix to the lower one.
struct Spread {
    group: u64,
    matrix: u64,
    half: u64,
}

impl<'e, 'ctx, 'm> Tile<'e, 'ctx, '_, 'm> {
    /// Returns the number of a thread's accumulator vectors and their width: one vector of two lanes for each half of
    /// each matrix.
    pub fn warp_vectors(&self) -> (u64, u64) {
        (matrices(self.tiling, MatmulSide::Left) * matrices(self.tiling, MatmulSide::Right) * 2, 2)
    }

    /// Returns a thread's accumulators as vectors along a row, each with its row and first column.
    pub fn warp_results(&self, place: &WarpPlace, sums: &[Value<'e, 'ctx>]) -> Vec<([AffineExpr; 2], Value<'e, 'ctx>)> {
        let [left, right] = &self.parts;
        let (down, across) = (left.spread(self.tiling), right.spread(self.tiling));
        let row = left.first.clone().plus(&place.row).plus(&place.group.clone().scaled(down.group as i64));
        let column = place.member.clone().scaled(2 * across.group as i64);
        let column = right.first.clone().plus(&place.column).plus(&column);
        let count = matrices(self.tiling, MatmulSide::Right);
        let mut results = Vec::new();
        for (number, of_row) in (0..).zip(sums.chunks_exact(2 * count as usize)) {
            for half in 0..2 {
                let row = row.clone().shifted((number * down.matrix + half * down.half) as i64);
                let vectors = of_row.iter().skip(half as usize).step_by(2).map(Value::lanes).collect();
                let (vectors, apart) = match right.along {
                    Along::K => (vectors, across.matrix),
                    Along::Free => (transposed(vectors), across.group),
                };
                for (vector, lanes) in (0..).zip(vectors) {
                    let column = column.clone().shifted((vector * apart) as i64);
                    results.push(([row.clone(), column], Value::new(ElementType::F32, lanes)));
                }
            }
        }
        results
    }

    /// Returns the positions in shared memory of the thread's first fragments of each operand.
    pub fn fragments(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, place: &WarpPlace) -> Result<[Lanes<'e, 'ctx>; 2]> {
        let mut at = |part: &Part<'e, 'ctx>, first: &AffineExpr| {
            let group = place.group.clone().scaled(part.spread(self.tiling).group as i64);
            let free = first.clone().plus(&group).scaled(part.stride.0 as i64);
            let number = s.number_of(&free.plus(&place.member.clone().scaled(2 * part.stride.1 as i64)))?;
            Ok(s.lanes_of(number))
        };
        Ok([at(&self.parts[0], &place.row)?, at(&self.parts[1], &place.column)?])
    }

    /// Adds the products of the steps of K in one buffer of shared memory. `fragments` are the positions of the
    /// thread's fragments in a buffer, `halves` the offsets of the buffer in each operand's array.
    pub fn multiply_by_warps(
        &self,
        s: &FusedEmitter<'e, 'ctx, 'm>,
        operand_type: OperandType,
        (fragments, halves): ([Lanes<'e, 'ctx>; 2], [Lanes<'e, 'ctx>; 2]),
        sums: &mut [Value<'e, 'ctx>],
    ) -> Result<()> {
        let [left, right] = &self.parts;
        let lower = (left.spread(self.tiling).half * left.stride.0) as i64;
        let at = [halves[0] + fragments[0], halves[1] + fragments[1]];
        for step in (0..self.tiling.depth).step_by(operand_type.depth() as usize) {
            let taken = |part: &Part<'e, 'ctx>, at| part.taken(s, self.tiling, operand_type, (at, step));
            let lefts = taken(left, at[0]).into_iter().zip(taken(left, at[0] + lower));
            let lefts: Vec<_> = lefts.map(|(upper, lower)| [upper[0], lower[0], upper[1], lower[1]]).collect();
            let rights = taken(right, at[1]);
            for (number, sums) in sums.chunks_exact_mut(2).enumerate() {
                let (row, column) = (number / rights.len(), number % rights.len());
                let before = [0, 1, 2, 3].map(|i| sums[i / 2].slice(i as u32 % 2, 1).lanes());
                let [a, b, c, d] = s.emitter.multiply_matrices(operand_type, lefts[row], rights[column], before)?;
                for (sum, both) in sums.iter_mut().zip([a.interleave(b), c.interleave(d)]) {
                    *sum = Value::new(ElementType::F32, both);
                }
            }
        }
        Ok(())
    }
}

impl<'e, 'ctx> Part<'e, 'ctx> {
    fn spread(&self, tiling: Tiling) -> Spread {
        let count = matrices(tiling, self.side);
        match (self.along, self.side) {
            (Along::Free, _) => Spread { group: count, matrix: 1, half: ROWS / 2 * count },
            (Along::K, MatmulSide::Left) => Spread { group: 1, matrix: ROWS, half: ROWS / 2 },
            (Along::K, MatmulSide::Right) => Spread { group: 1, matrix: COLUMNS, half: 0 },
        }
    }

    /// Loads the thread's two fragments of each of the warp's matrices, for one half of the matrices' rows, at one
    /// instruction's steps of K.
    fn taken(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        tiling: Tiling,
        operand_type: OperandType,
        (at, step): (Lanes<'e, 'ctx>, u64),
    ) -> Vec<[Lanes<'e, 'ctx>; 2]> {
        let (array, count) = (self.arrays[0].0, matrices(tiling, self.side));
        let at = at + (step * self.stride.1) as i64;
        let word = Scalar::Int(32);
        // K offsets of the two pairs of 16-bit floats: 0 and half of the instruction's depth.
        let pairs = [0, operand_type.depth() / 2];
        match (self.along, operand_type) {
            (Along::K, operand_type) => {
                let starts = (0..count).map(|number| at + (number * self.spread(tiling).matrix * self.stride.0) as i64);
                let fragments = |at: Lanes<'e, 'ctx>| match operand_type {
                    OperandType::Tf32 => s.emitter.load_aligned_lanes(array, at, word, 2).deinterleave(),
                    OperandType::F16 | OperandType::Bf16 => {
                        pairs.map(|along| s.emitter.load_aligned_lanes(array, (at + along as i64).lshr(1), word, 1))
                    }
                };
                starts.map(fragments).collect()
            }
            (Along::Free, operand_type) => {
                let load = |along: u64, scalar| {
                    let at = at + (along * self.stride.1) as i64;
                    s.emitter.load_aligned_lanes(array, at, scalar, count as u32)
                };
                let [near, far] = match operand_type {
                    OperandType::Tf32 => [0, 1].map(|along| load(along, word)),
                    OperandType::F16 | OperandType::Bf16 => pairs.map(|along| {
                        let [low, high] = [along, along + 1].map(|along| load(along, Scalar::Int(16)).zext(32));
                        (high << 16) | low
                    }),
                };
                (0..count as u32).map(|number| [near.lane(number), far.lane(number)]).collect()
            }
        }
    }
}

/// Transposes vectors of two lanes into one vector of the first lanes and one of the second lanes. The number of
/// vectors must be a power of two.
fn transposed<'e, 'ctx>(mut vectors: Vec<Lanes<'e, 'ctx>>) -> Vec<Lanes<'e, 'ctx>> {
    while vectors.len() > 1 {
        vectors = vectors.chunks_exact(2).map(|pair| pair[0].concat(pair[1])).collect();
    }
    vectors.into_iter().flat_map(Lanes::deinterleave).collect()
}
