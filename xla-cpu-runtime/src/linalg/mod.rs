//! Decompositions and triangular solves, with recursive blocking: most of the work is matrix multiplication.
#![expect(unsafe_code, reason = "linear algebra works on raw buffers of generated code")]

mod cholesky;
mod number;
mod triangular;
mod view;

use gemm::{c32, c64};
use xla_hlo::ArrayShape;
use xla_hlo::ops::{Cholesky, TransposeKind, TriangularSolve};

use crate::dot::DotElement;
use crate::kernel::KernelFn;
use crate::pool;
use number::Number;
use triangular::Triangle;
use view::{BLOCK, PARALLEL_WORK, View};

/// Encodes a Cholesky decomposition as numbers that generated code can carry: the element type, the triangle, the
/// number of matrices, and their size. `None` for element types that the library does not support.
pub(crate) fn cholesky_descriptor(op: &Cholesky, a: &ArrayShape) -> Option<Vec<i64>> {
    let (batch, n, _) = matrices(a)?;
    let element = DotElement::of(a.element_type())?;
    Some([element as usize, usize::from(op.lower), batch, n].map(|n| n as i64).to_vec())
}

/// Encodes a triangular solve as numbers: the element type, the operation's attributes, the number of systems, and the
/// sizes of the right-hand side. `None` as for [`cholesky_descriptor`].
pub(crate) fn triangular_solve_descriptor(op: &TriangularSolve, b: &ArrayShape) -> Option<Vec<i64>> {
    let (batch, rows, columns) = matrices(b)?;
    let element = DotElement::of(b.element_type())?;
    let [left, lower, unit] = [op.left_side, op.lower, op.unit_diagonal].map(usize::from);
    let kind = match op.transpose_a {
        TransposeKind::NoTranspose => 0,
        TransposeKind::Transpose => 1,
        TransposeKind::Adjoint => 2,
    };
    Some([element as usize, left, lower, unit, kind, batch, rows, columns].map(|n| n as i64).to_vec())
}

/// Returns the number of matrices of an array, and their rows and columns.
fn matrices(shape: &ArrayShape) -> Option<(usize, usize, usize)> {
    let &[ref batch @ .., rows, columns] = shape.dims() else { return None };
    Some((batch.iter().product(), rows, columns))
}

/// Returns the numbers of a descriptor.
///
/// # Safety
/// `descriptor` must point to `length` numbers.
unsafe fn numbers<'a>(descriptor: *const i64, length: i64) -> &'a [i64] {
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(descriptor, length as usize) }
}

/// Decomposes matrices as the descriptor states; `buffers` are operand and result.
pub(super) unsafe extern "C" fn xla_cpu_cholesky(
    buffers: *const *mut u8,
    _: *const KernelFn,
    descriptor: *const i64,
    length: i64,
    threads: i64,
) {
    // SAFETY: the generated caller passes a constant of `length` numbers made by `cholesky_descriptor`, and two buffers
    // that hold the shape it was made from and do not overlap. No other code accesses them during the call.
    unsafe {
        let numbers = numbers(descriptor, length);
        let run = match numbers[0] {
            0 => decompose::<f32>,
            1 => decompose::<f64>,
            2 => decompose::<c32>,
            _ => decompose::<c64>,
        };
        run(numbers, *buffers, *buffers.add(1), threads as usize);
    }
}

/// # Safety
/// `numbers` must be a result of [`cholesky_descriptor`]. Both buffers must hold the array that it describes, with
/// elements `T`. They must not overlap, and no other code may access them during the call.
unsafe fn decompose<T: Number>(numbers: &[i64], operand: *const u8, result: *mut u8, threads: usize) {
    let (lower, batch, n) = (numbers[1] != 0, numbers[2] as usize, numbers[3] as usize);
    let result: *mut T = result.cast();
    // SAFETY: both hold `batch` matrices of `n * n` elements.
    unsafe { std::ptr::copy_nonoverlapping(operand.cast(), result, batch * n * n) };
    let result = Shared(result);
    each_matrix(batch, n.saturating_mul(n).saturating_mul(n) / 3, threads, &|matrix, threads| {
        // SAFETY: there are `batch` matrices of that size, and each is processed once.
        let matrix = unsafe { View::row_major(result.pointer().add(matrix * n * n), n, n) };
        // The upper factor is the transpose of the lower factor of the transpose.
        cholesky::decompose(if lower { matrix } else { matrix.transposed() }, threads);
    });
}

/// Solves systems as the descriptor states; `buffers` are the matrices, the right-hand sides and the result.
pub(super) unsafe extern "C" fn xla_cpu_triangular_solve(
    buffers: *const *mut u8,
    _: *const KernelFn,
    descriptor: *const i64,
    length: i64,
    threads: i64,
) {
    // SAFETY: as for `xla_cpu_cholesky`, with `triangular_solve_descriptor` and three buffers.
    unsafe {
        let numbers = numbers(descriptor, length);
        let run = match numbers[0] {
            0 => solve::<f32>,
            1 => solve::<f64>,
            2 => solve::<c32>,
            _ => solve::<c64>,
        };
        run(numbers, [*buffers, *buffers.add(1)], *buffers.add(2), threads as usize);
    }
}

/// # Safety
/// `numbers` must be a result of [`triangular_solve_descriptor`]. The operands and the result must hold the arrays that
/// it describes, with elements `T`. The result must not overlap an operand, and no other code may access it during the
/// call.
unsafe fn solve<T: Number>(numbers: &[i64], [a, b]: [*mut u8; 2], result: *mut u8, threads: usize) {
    let &[_, left, lower, unit, kind, batch, rows, columns] = numbers else { return };
    let (left, batch, rows, columns) = (left != 0, batch as usize, rows as usize, columns as usize);
    let (n, sides) = if left { (rows, columns) } else { (columns, rows) };
    let result: *mut T = result.cast();
    // SAFETY: both hold `batch` matrices of `rows * columns` elements.
    unsafe { std::ptr::copy_nonoverlapping(b.cast(), result, batch * n * sides) };
    let (a, x) = (Shared(a.cast::<T>()), Shared(result));
    each_matrix(batch, n.saturating_mul(n).saturating_mul(sides) / 2, threads, &|system, threads| {
        // SAFETY: there are `batch` systems of those sizes. Each right-hand side is processed once; the matrices are
        // only read.
        let (mut a, mut x) = unsafe {
            let x = View::row_major(x.pointer().add(system * n * sides), rows, columns);
            (View::row_major(a.pointer().add(system * n * n), n, n), x)
        };
        // `x op(a) = b` is equivalent to `op(a)^T x^T = b^T`.
        let is_transposed = (kind != 0) == left;
        if is_transposed {
            a = a.transposed();
        }
        if !left {
            x = x.transposed();
        }
        // With rows and columns reversed, an upper triangle is a lower one.
        if (lower != 0) == is_transposed {
            (a, x) = (a.reversed().transposed().reversed().transposed(), x.reversed());
        }
        let triangle = Triangle { lower: a, is_conjugated: kind == 2, has_unit_diagonal: unit != 0 };
        triangular::solve_on_threads(triangle, x, threads);
    });
}

/// Calls `f` with the number of each matrix and the number of threads that it may use. One matrix takes about `work`
/// multiplications.
fn each_matrix(batch: usize, work: usize, threads: usize, f: &(dyn Fn(usize, usize) + Sync)) {
    let threads = if batch.saturating_mul(work) < PARALLEL_WORK { 1 } else { threads };
    if batch < threads {
        return (0..batch).for_each(|matrix| f(matrix, threads));
    }
    let chunks = batch.min(4 * threads);
    pool::parallel_for(threads, chunks, &|chunk| {
        (batch * chunk / chunks..batch * (chunk + 1) / chunks).for_each(|matrix| f(matrix, 1));
    });
}

/// Pointer to the first element of an array whose matrices are processed by several threads.
struct Shared<T>(*mut T);

// SAFETY: each matrix that is written is accessed by one thread only (`each_matrix`).
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn pointer(&self) -> *mut T {
        self.0
    }
}
