//! Dimensions along which operations can be split without communication: [`factors`].

use xla_hlo::ops::{Convolution, Dot, Family, Gather, Scatter, SparsityConfig};
use xla_hlo::{ArrayShape, Op};

use crate::simplify::simplify_algebra::dims;

/// Dimension of the result, and the dimensions of the operands that are split with it: a part of the result along this
/// dimension is the operation applied to the parts of these operands and to the other operands as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Factor {
    /// Dimension of each array of the result.
    pub result: usize,
    /// Dimension of each operand; `None` if the operand does not have it.
    pub operands: Vec<Option<usize>>,
}

impl Factor {
    /// Creates the factor of an operation whose operands after the first are not split with the result.
    fn of_first(result: usize, first: usize, operands: usize) -> Factor {
        let rest = std::iter::repeat_n(None, operands.saturating_sub(1));
        Factor { result, operands: std::iter::once(Some(first)).chain(rest).collect() }
    }

    /// Creates the factor of a dimension that the result has in common with all operands.
    fn of_all(dimension: usize, operands: usize) -> Factor {
        Factor { result: dimension, operands: vec![Some(dimension); operands] }
    }
}

/// Returns the factors of an operation on arrays. If it has several results, they have the same factors, and `result`
/// is the first of them.
///
/// Dimensions without a factor cannot be split: contracted, reduced and sliced ones, and all dimensions of operations
/// that are not listed here.
pub(crate) fn factors(op: &Op, operands: &[&ArrayShape], result: &ArrayShape) -> Vec<Factor> {
    let Some(first) = operands.first().map(|operand| operand.dims()) else { return Vec::new() };
    let count = operands.len();
    // Factors of the dimensions `is_kept` at equal positions of the first operand and the result.
    let of_first = |is_kept: &dyn Fn(usize) -> bool| -> Vec<Factor> {
        (0..first.len()).filter(|&d| is_kept(d)).map(|d| Factor::of_first(d, d, count)).collect()
    };
    let of_all = |is_kept: &dyn Fn(usize) -> bool| -> Vec<Factor> {
        (0..first.len()).filter(|&d| is_kept(d)).map(|d| Factor::of_all(d, count)).collect()
    };
    match op {
        op if op.opcode().family() == Family::Elementwise || matches!(op, Op::Copy(_) | Op::Map(_)) => {
            elementwise(operands, result)
        }
        Op::Broadcast(op) => {
            op.dimensions.iter().enumerate().map(|(from, &to)| Factor::of_first(to, from, count)).collect()
        }
        Op::Transpose(op) => {
            op.permutation.iter().enumerate().map(|(to, &from)| Factor::of_first(to, from, count)).collect()
        }
        Op::Reshape(_) => reshape(first, result.dims()),
        Op::Slice(op) => {
            let is_whole = |d: usize| {
                let range = &op.ranges[d];
                (range.start, range.limit, range.stride) == (0, first[d], 1)
            };
            of_first(&is_whole)
        }
        Op::Pad(op) => of_first(&|d| {
            let dim = &op.dims[d];
            dim.low == 0 && dim.high == 0 && dim.interior == 0
        }),
        // A slice of a whole dimension starts at 0, whatever the index is.
        Op::DynamicSlice(op) => of_first(&|d| op.sizes[d] == first[d]),
        Op::DynamicUpdateSlice(_) => {
            let whole = (0..first.len()).filter(|&d| operands[1].dims()[d] == first[d]);
            let factor = |d| Factor { result: d, operands: (0..count).map(|i| (i < 2).then_some(d)).collect() };
            whole.map(factor).collect()
        }
        Op::Concatenate(op) => of_all(&|d| d != op.dimension),
        Op::Reverse(op) => of_first(&|d| !op.dimensions.contains(&d)),
        Op::Sort(op) => of_all(&|d| d != op.dimension),
        Op::TopK(_) => of_first(&|d| d + 1 < first.len()),
        Op::Reduce(op) => {
            let kept = (0..first.len()).filter(|d| !op.dimensions.contains(d)).enumerate();
            kept.map(|(to, from)| inputs(to, from, count / 2, count)).collect()
        }
        Op::ReduceWindow(op) => {
            let windows = op.window.dims_for(first.len()).unwrap_or_default();
            let kept = windows.iter().enumerate().filter(|(_, window)| window.is_unit());
            kept.map(|(d, _)| inputs(d, d, count / 2, count)).collect()
        }
        Op::Dot(op) => dot(op, operands),
        Op::Convolution(op) => convolution(op),
        Op::Gather(op) => gather(op, operands, result),
        Op::Scatter(op) => scatter(op, operands),
        Op::Fft(op) => of_first(&|d| d + op.fft_length.len() < first.len()),
        Op::Cholesky(_) => of_first(&|d| d + 2 < first.len()),
        Op::TriangularSolve(_) => of_all(&|d| d + 2 < first.len()),
        _ => Vec::new(),
    }
}

/// Creates the factor of an operation with initial or padding values after its `inputs`.
fn inputs(result: usize, dimension: usize, inputs: usize, operands: usize) -> Factor {
    Factor { result, operands: (0..operands).map(|i| (i < inputs).then_some(dimension)).collect() }
}

/// Scalars apply to all elements. A conversion of bits may add or remove the last dimension.
fn elementwise(operands: &[&ArrayShape], result: &ArrayShape) -> Vec<Factor> {
    let of = |d: usize| {
        let dimension = |operand: &&ArrayShape| match operand.dims().get(d) {
            _ if operand.is_scalar() => Some(None),
            Some(&size) if size == result.dims()[d] => Some(Some(d)),
            _ => None,
        };
        Some(Factor { result: d, operands: operands.iter().map(dimension).collect::<Option<_>>()? })
    };
    (0..result.rank()).filter_map(of).collect()
}

/// A reshape splits into runs of dimensions with equal numbers of elements. A part along the first dimension of a run
/// is contiguous in the run.
fn reshape(from: &[usize], to: &[usize]) -> Vec<Factor> {
    let runs = dims::factor(from, to).unwrap_or_default();
    let first = |dims: &[usize], sizes: &[usize]| dims.iter().copied().find(|&d| sizes[d] != 1);
    let factor = |(source, target): (Vec<usize>, Vec<usize>)| {
        Some(Factor::of_first(first(&target, to)?, first(&source, from)?, 1))
    };
    runs.into_iter().filter_map(factor).collect()
}

/// Batch dimensions, and free dimensions of one operand.
fn dot(op: &Dot, operands: &[&ArrayShape]) -> Vec<Factor> {
    let &[lhs, rhs] = operands else { return Vec::new() };
    let [lhs, rhs] = op.dims.operands([lhs.rank(), rhs.rank()]);
    let batch = lhs.batch.iter().zip(rhs.batch).map(|(&l, &r)| vec![Some(l), Some(r)]);
    let rows = lhs.free.iter().map(|&l| vec![Some(l), None]);
    let columns = rhs.free.iter().map(|&r| vec![None, Some(r)]);
    let all = batch.chain(rows).chain(columns).enumerate();
    all.map(|(result, operands)| Factor { result, operands }).collect()
}

/// The batch of the input, and the output features of the kernel.
fn convolution(op: &Convolution) -> Vec<Factor> {
    let mut factors = Vec::new();
    if op.batch_group_count == 1 && op.sparsity == SparsityConfig::default() {
        factors.push(Factor { result: op.dims.output_batch, operands: vec![Some(op.dims.input_batch), None] });
        if op.feature_group_count == 1 {
            let kernel = op.dims.kernel_output_feature;
            factors.push(Factor { result: op.dims.output_feature, operands: vec![None, Some(kernel)] });
        }
    }
    factors
}

/// Dimensions of the operand that a slice has whole, where it starts at 0, and dimensions of the indices.
fn gather(op: &Gather, operands: &[&ArrayShape], result: &ArrayShape) -> Vec<Factor> {
    let &[operand, indices] = operands else { return Vec::new() };
    let is_window = |d: &usize| !op.collapsed_slice_dims.contains(d) && !op.operand_batching_dims.contains(d);
    let windows = (0..operand.rank()).filter(is_window).zip(&op.offset_dims);
    let whole = windows.filter(|&(d, _)| op.slice_sizes[d] == operand.dims()[d]);
    let mut factors: Vec<Factor> = whole.map(|(d, &result)| Factor::of_first(result, d, 2)).collect();
    let batch = (0..result.rank()).filter(|d| !op.offset_dims.contains(d));
    for (index, result) in (0..indices.rank()).filter(|&d| d != op.index_vector_dim).zip(batch) {
        let place = op.start_indices_batching_dims.iter().position(|&d| d == index);
        let operand = place.map(|place| op.operand_batching_dims[place]);
        factors.push(Factor { result, operands: vec![operand, Some(index)] });
    }
    factors
}

/// Dimensions of the operands that an update has whole, where it starts at 0 or is skipped, and batching dimensions.
fn scatter(op: &Scatter, operands: &[&ArrayShape]) -> Vec<Factor> {
    let count = operands.len() / 2;
    let (Some(&target), Some(&indices), Some(&updates)) =
        (operands.first(), operands.get(count), operands.get(count + 1))
    else {
        return Vec::new();
    };
    let factor = |dimension: usize, index: Option<usize>, update: usize| {
        let of = |i: usize| match i {
            i if i < count => Some(dimension),
            i if i == count => index,
            _ => Some(update),
        };
        Factor { result: dimension, operands: (0..operands.len()).map(of).collect() }
    };
    let is_window = |d: &usize| !op.inserted_window_dims.contains(d) && !op.input_batching_dims.contains(d);
    let windows = (0..target.rank()).filter(is_window).zip(&op.update_window_dims);
    let whole = windows.filter(|&(d, &update)| updates.dims()[update] == target.dims()[d]);
    let mut factors: Vec<Factor> = whole.map(|(d, &update)| factor(d, None, update)).collect();
    let rows = (0..updates.rank()).filter(|d| !op.update_window_dims.contains(d));
    for (index, update) in (0..indices.rank()).filter(|&d| d != op.index_vector_dim).zip(rows) {
        if let Some(place) = op.scatter_indices_batching_dims.iter().position(|&d| d == index) {
            factors.push(factor(op.input_batching_dims[place], Some(index), update));
        }
    }
    factors
}
