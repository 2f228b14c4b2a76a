//! Dots as matmuls with strides and outer loops. Depends on shapes only, not on LLVM or a library.

use std::ops::Range;

use xla_hlo::ops::DotDims;
use xla_hlo::{ArrayShape, strides};

use crate::plans::chunks::Chunks;

/// Dimension with its strides in elements; the stride is 0 in an array without the dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Number of steps.
    pub extent: usize,
    /// Stride in the left operand.
    pub lhs: usize,
    /// Stride in the right operand.
    pub rhs: usize,
    /// Stride in the result; 0 for a contracted axis.
    pub out: usize,
}

/// `out[b, m, n] = Σ_k lhs[b, m, k] · rhs[b, k, n]`, with loops over the `outer` axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotPlan {
    /// Batch axes, and free axes that do not merge; each step is a separate matmul.
    pub outer: Vec<Axis>,
    /// Contracted axes that do not merge; the matmuls of their steps are summed.
    pub accumulated: Vec<Axis>,
    /// Rows of the matmul.
    pub m: Axis,
    /// Columns of the matmul.
    pub n: Axis,
    /// Contracted axis.
    pub k: Axis,
}

impl DotPlan {
    /// Creates the plan of a dot between arrays in their layouts.
    pub fn new(dims: &DotDims, lhs: &ArrayShape, rhs: &ArrayShape, out: &ArrayShape) -> DotPlan {
        let [lhs_strides, rhs_strides, out_strides] = [lhs, rhs, out].map(|s| strides(s.dims(), &s.minor_to_major()));
        let [left, right] = dims.operands([lhs.rank(), rhs.rank()]);
        let batch = left.batch.iter().zip(right.batch).enumerate().map(|(i, (&l, &r))| Axis {
            extent: lhs.dims()[l],
            lhs: lhs_strides[l],
            rhs: rhs_strides[r],
            out: out_strides[i],
        });
        let first_row = left.batch.len();
        let rows = left.free.iter().enumerate().map(|(i, &l)| Axis {
            extent: lhs.dims()[l],
            lhs: lhs_strides[l],
            rhs: 0,
            out: out_strides[first_row + i],
        });
        let first_column = first_row + left.free.len();
        let columns = right.free.iter().enumerate().map(|(i, &r)| Axis {
            extent: rhs.dims()[r],
            lhs: 0,
            rhs: rhs_strides[r],
            out: out_strides[first_column + i],
        });
        let contracted = left.contracting.iter().zip(right.contracting).map(|(&l, &r)| Axis {
            extent: lhs.dims()[l],
            lhs: lhs_strides[l],
            rhs: rhs_strides[r],
            out: 0,
        });
        let mut outer = merged(batch.collect());
        let (m, rest) = longest(merged(rows.collect()));
        outer.extend(rest);
        let (n, rest) = longest(merged(columns.collect()));
        outer.extend(rest);
        let (k, accumulated) = longest(merged(contracted.collect()));
        DotPlan { outer, accumulated, m, n, k }
    }

    /// Returns the total number of matmuls.
    pub fn matmuls(&self) -> usize {
        self.outer.iter().map(|a| a.extent).product()
    }

    /// Returns the total cost in multiplications: arithmetic and memory traffic.
    fn work(&self) -> f64 {
        let [m, n, k] = [self.m, self.n, self.k].map(|a| a.extent as f64);
        self.multiplications() + self.matmuls() as f64 * ELEMENT_WORK * (m * k + k * n + m * n)
    }

    /// Returns the total number of multiplications.
    pub fn multiplications(&self) -> f64 {
        let sum = self.accumulated.iter().map(|a| a.extent as f64).product::<f64>();
        self.matmuls() as f64 * sum * self.m.extent as f64 * self.n.extent as f64 * self.k.extent as f64
    }
}

/// Dot that is split into chunks for threads: groups of matmuls, or blocks of the rows and columns of each matmul.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotChunks {
    matmuls: Chunks,
    rows: Chunks,
    columns: Chunks,
}

/// Minimum work of a chunk in multiplications: about twenty microseconds.
const CHUNK_WORK: f64 = (1 << 20) as f64;
/// Cost of reading or writing an element outside the cache, in multiplications.
const ELEMENT_WORK: f64 = 8.0;
/// Average number of chunks for each thread, for load balancing.
const CHUNKS_A_THREAD: usize = 4;
/// Alignment of column splits: the width of the library's micro-kernel.
const COLUMN_STEP: usize = 64;
/// Alignment of row splits.
const ROW_STEP: usize = 24;

impl DotChunks {
    /// Splits a dot for `threads` threads.
    ///
    /// Columns are split first: then only one thread packs each block of the right operand.
    pub fn new(plan: &DotPlan, threads: usize) -> DotChunks {
        DotChunks::with_chunks_a_thread(plan, threads, CHUNKS_A_THREAD)
    }

    /// Splits a dot for `threads` threads, with another average number of chunks for each thread.
    pub fn with_chunks_a_thread(plan: &DotPlan, threads: usize, chunks_a_thread: usize) -> DotChunks {
        let (matmuls, rows, columns) = (plan.matmuls(), plan.m.extent, plan.n.extent);
        let worth = (plan.work() / CHUNK_WORK) as usize;
        let wanted = if threads < 2 || worth < 2 { 1 } else { worth.min(threads * chunks_a_thread) };
        let groups = wanted.min(matmuls).max(1);
        let wanted = wanted.div_ceil(groups);
        let columns = Chunks::new(columns, wanted, COLUMN_STEP);
        let rows = Chunks::new(rows, wanted.div_ceil(columns.count().max(1)), ROW_STEP);
        DotChunks { matmuls: Chunks::new(matmuls, groups, 1), rows, columns }
    }

    /// Returns the total number of chunks.
    pub fn count(&self) -> usize {
        self.matmuls.count() * self.rows.count() * self.columns.count()
    }

    /// Returns the matmuls, rows and columns of a chunk.
    pub fn get(&self, chunk: usize) -> (Range<usize>, Range<usize>, Range<usize>) {
        let (rest, column) = (chunk / self.columns.count(), chunk % self.columns.count());
        let (matmul, row) = (rest / self.rows.count(), rest % self.rows.count());
        (self.matmuls.get(matmul), self.rows.get(row), self.columns.get(column))
    }
}

/// Returns the axes of more than one step, outermost first. Adjacent axes are merged if their strides permit it in
/// every array.
fn merged(mut axes: Vec<Axis>) -> Vec<Axis> {
    axes.retain(|a| a.extent != 1);
    // The order of axes is arbitrary, because their steps are independent (or summed): sort mergeable ones next to each
    // other.
    axes.sort_by_key(|a| std::cmp::Reverse((a.lhs.max(a.rhs), a.out)));
    let mut out: Vec<Axis> = Vec::new();
    for axis in axes {
        match out.last_mut() {
            Some(last)
                if last.lhs == axis.lhs * axis.extent
                    && last.rhs == axis.rhs * axis.extent
                    && last.out == axis.out * axis.extent =>
            {
                *last = Axis { extent: last.extent * axis.extent, ..axis };
            }
            _ => out.push(axis),
        }
    }
    out
}

/// Removes the longest axis and returns it with the others; returns an axis of a single step if there are none.
fn longest(mut axes: Vec<Axis>) -> (Axis, Vec<Axis>) {
    match axes.iter().enumerate().max_by_key(|(_, a)| a.extent) {
        Some((i, _)) => {
            let axis = axes.remove(i);
            (axis, axes)
        }
        None => (Axis { extent: 1, lhs: 0, rhs: 0, out: 0 }, axes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xla_hlo::ElementType::F32;

    fn dims(lb: &[usize], rb: &[usize], lc: &[usize], rc: &[usize]) -> DotDims {
        let [lhs_batch, rhs_batch, lhs_contracting, rhs_contracting] = [lb, rb, lc, rc].map(<[usize]>::to_vec);
        DotDims { lhs_batch, rhs_batch, lhs_contracting, rhs_contracting }
    }

    #[test]
    fn rows_of_several_dimensions_merge() {
        let [x, w, y] = [&[4, 128, 768][..], &[768, 2304], &[4, 128, 2304]].map(|d| ArrayShape::new(F32, d));
        let plan = DotPlan::new(&dims(&[], &[], &[2], &[0]), &x, &w, &y);
        assert_eq!(plan.outer, vec![]);
        assert_eq!(plan.m, Axis { extent: 512, lhs: 768, rhs: 0, out: 2304 });
        assert_eq!(plan.n, Axis { extent: 2304, lhs: 0, rhs: 1, out: 1 });
        assert_eq!(plan.k, Axis { extent: 768, lhs: 1, rhs: 2304, out: 0 });
    }

    #[test]
    fn attention_heads_are_batches_by_stride() {
        let [q, k, s] = [&[4, 128, 12, 64][..], &[4, 128, 12, 64], &[4, 12, 128, 128]].map(|d| ArrayShape::new(F32, d));
        let plan = DotPlan::new(&dims(&[0, 2], &[0, 2], &[3], &[3]), &q, &k, &s);
        assert_eq!(plan.matmuls(), 48);
        assert_eq!(plan.m, Axis { extent: 128, lhs: 768, rhs: 0, out: 128 });
        assert_eq!(plan.n, Axis { extent: 128, lhs: 0, rhs: 768, out: 1 });
    }

    fn matrices(batch: usize, m: usize, k: usize, n: usize) -> DotPlan {
        let [x, y, z] = [[batch, m, k], [batch, k, n], [batch, m, n]].map(|d| ArrayShape::new(F32, d));
        DotPlan::new(&dims(&[0], &[0], &[2], &[1]), &x, &y, &z)
    }

    #[test]
    fn chunks_cover_everything_once() {
        for (batch, m, k, n) in [(1, 1, 1, 1), (1, 500, 300, 700), (96, 128, 64, 128), (3, 1000, 70, 10), (1, 0, 5, 9)]
        {
            for threads in [1, 2, 7] {
                let chunks = DotChunks::new(&matrices(batch, m, k, n), threads);
                let mut seen = vec![0; batch * m * n];
                for chunk in 0..chunks.count() {
                    let (matmuls, rows, columns) = chunks.get(chunk);
                    for p in matmuls {
                        for r in rows.clone() {
                            columns.clone().for_each(|c| seen[(p * m + r) * n + c] += 1);
                        }
                    }
                }
                assert!(seen.iter().all(|&times| times == 1), "{batch} {m} {k} {n} on {threads}: {chunks:?}");
            }
        }
    }

    #[test]
    fn chunks_follow_the_work() {
        let count = |batch, m, k, n| DotChunks::new(&matrices(batch, m, k, n), 2).count();
        assert_eq!(count(1, 32, 32, 32), 1);
        assert_eq!(count(1, 128, 128, 128), 2);
        assert_eq!(count(1, 1024, 1024, 1024), 8);
        assert_eq!(count(96, 128, 64, 128), 8);
        assert_eq!(count(1, 1, 768, 3072), 8);
        assert_eq!(count(1, 50_000, 768, 1), 8);
    }

    #[test]
    fn a_scalar_product_has_no_axes() {
        let [x, y] = [&[1][..], &[]].map(|d| ArrayShape::new(F32, d));
        let plan = DotPlan::new(&dims(&[], &[], &[0], &[0]), &x, &x, &y);
        assert_eq!((plan.m.extent, plan.n.extent, plan.k.extent), (1, 1, 1));
    }
}
