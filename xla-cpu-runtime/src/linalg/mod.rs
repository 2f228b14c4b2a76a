//! Decompositions and triangular systems: recursive in blocks, so that most of the work is products of matrices.
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

/// A decomposition as numbers that generated code can carry: element, triangle, how many matrices, and their size.
/// `None` for element types that there is no library for.
pub(crate) fn cholesky_descriptor(op: &Cholesky, a: &ArrayShape) -> Option<Vec<i64>> {
    let (batch, n, _) = matrices(a)?;
    let element = DotElement::of(a.element_type())?;
    Some([element as usize, usize::from(op.lower), batch, n].map(|n| n as i64).to_vec())
}

/// A system of equations as numbers: element, the operation's attributes, how many systems, and the sizes of the right
/// side. `None` as for [`cholesky_descriptor`].
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

/// Number of matrices of an array, and their rows and columns.
fn matrices(shape: &ArrayShape) -> Option<(usize, usize, usize)> {
    let &[ref batch @ .., rows, columns] = shape.dims() else { return None };
    Some((batch.iter().product(), rows, columns))
}

/// The numbers of a descriptor.
///
/// # Safety
/// `descriptor` points to `length` numbers.
unsafe fn numbers<'a>(descriptor: *const i64, length: i64) -> &'a [i64] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(descriptor, length as usize) }
}

/// Decomposes as the descriptor says; `buffers` are operand and result.
pub(super) unsafe extern "C" fn xla_cpu_cholesky(
    buffers: *const *mut u8,
    _: *const KernelFn,
    descriptor: *const i64,
    length: i64,
    threads: i64,
) {
    // SAFETY: the generated caller passes a constant of `length` numbers made by `cholesky_descriptor`, and two buffers
    // that hold the shape it was made from, do not overlap, and are used by nobody else.
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
/// The numbers are those of [`cholesky_descriptor`]; both buffers hold the array they describe, of elements `T`. They
/// do not overlap, and nobody else uses them.
unsafe fn decompose<T: Number>(numbers: &[i64], operand: *const u8, result: *mut u8, threads: usize) {
    let (lower, batch, n) = (numbers[1] != 0, numbers[2] as usize, numbers[3] as usize);
    let result: *mut T = result.cast();
    // SAFETY: both hold `batch` matrices of `n * n` elements.
    unsafe { std::ptr::copy_nonoverlapping(operand.cast(), result, batch * n * n) };
    let result = Shared(result);
    each_matrix(batch, n.saturating_mul(n).saturating_mul(n) / 3, threads, &|matrix, threads| {
        // SAFETY: there are `batch` matrices of that size, and each is worked on once.
        let matrix = unsafe { View::row_major(result.pointer().add(matrix * n * n), n, n) };
        // The upper factor is the transpose of the lower one of the transpose.
        cholesky::decompose(if lower { matrix } else { matrix.transposed() }, threads);
    });
}

/// Solves as the descriptor says; `buffers` are the matrices, the right sides, and the result.
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
/// The numbers are those of [`triangular_solve_descriptor`]; the operands and the result hold the arrays they describe,
/// of elements `T`. The result overlaps no operand, and nobody else uses it.
unsafe fn solve<T: Number>(numbers: &[i64], [a, b]: [*mut u8; 2], result: *mut u8, threads: usize) {
    let &[_, left, lower, unit, kind, batch, rows, columns] = numbers else { return };
    let (left, batch, rows, columns) = (left != 0, batch as usize, rows as usize, columns as usize);
    let (n, sides) = if left { (rows, columns) } else { (columns, rows) };
    let result: *mut T = result.cast();
    // SAFETY: both hold `batch` matrices of `rows * columns` elements.
    unsafe { std::ptr::copy_nonoverlapping(b.cast(), result, batch * n * sides) };
    let (a, x) = (Shared(a.cast::<T>()), Shared(result));
    each_matrix(batch, n.saturating_mul(n).saturating_mul(sides) / 2, threads, &|system, threads| {
        // SAFETY: there are `batch` systems of those sizes. Each right side is worked on once; the matrices are read
        // only.
        let (mut a, mut x) = unsafe {
            let x = View::row_major(x.pointer().add(system * n * sides), rows, columns);
            (View::row_major(a.pointer().add(system * n * n), n, n), x)
        };
        // `x op(a) = b` is `op(a)^T x^T = b^T`.
        let is_transposed = (kind != 0) == left;
        if is_transposed {
            a = a.transposed();
        }
        if !left {
            x = x.transposed();
        }
        // Read from the end, an upper triangle is a lower one.
        if (lower != 0) == is_transposed {
            (a, x) = (a.reversed().transposed().reversed().transposed(), x.reversed());
        }
        let triangle = Triangle { lower: a, is_conjugated: kind == 2, has_unit_diagonal: unit != 0 };
        triangular::solve_on_threads(triangle, x, threads);
    });
}

/// Calls `f` with the number of each matrix and the threads that it may use. One takes about `work` multiplications.
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

/// The first element of an array whose matrices several threads work on.
struct Shared<T>(*mut T);

// SAFETY: each matrix that is written is one thread's (`each_matrix`).
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn pointer(&self) -> *mut T {
        self.0
    }
}
