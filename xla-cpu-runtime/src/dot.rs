//! Matrix multiplication with the `gemm` crate, for the element types that it supports.
#![expect(unsafe_code, reason = "matmuls work on raw buffers of generated code")]

use std::ops::Add;

use gemm::{Parallelism, c32, c64};
use xla_hlo::ElementType;

use crate::kernel::KernelFn;
use crate::plans::dot::{Axis, DotChunks, DotPlan};
use crate::pool;

/// Element types that the library multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub(crate) enum DotElement {
    F32 = 0,
    F64 = 1,
    C64 = 2,
    C128 = 3,
}

impl DotElement {
    /// Returns the library's type for an element type, if there is one.
    pub(crate) fn of(ty: ElementType) -> Option<DotElement> {
        match ty {
            ElementType::F32 => Some(DotElement::F32),
            ElementType::F64 => Some(DotElement::F64),
            ElementType::C64 => Some(DotElement::C64),
            ElementType::C128 => Some(DotElement::C128),
            _ => None,
        }
    }
}

/// Encodes a plan as numbers that generated code can carry: the element type, the numbers of outer and accumulated
/// axes, then `(extent, lhs, rhs, out)` of m, n, k, the outer and the accumulated axes.
pub(crate) fn dot_descriptor(elements: i64, plan: &DotPlan) -> Vec<i64> {
    let mut numbers = vec![elements, plan.outer.len() as i64, plan.accumulated.len() as i64];
    for axis in [&plan.m, &plan.n, &plan.k].into_iter().chain(&plan.outer).chain(&plan.accumulated) {
        numbers.extend([axis.extent, axis.lhs, axis.rhs, axis.out].map(|n| n as i64));
    }
    numbers
}

fn read_axis(numbers: &[i64]) -> Axis {
    let at = |i: usize| numbers.get(i).map_or(0, |&n| n as usize);
    Axis { extent: at(0), lhs: at(1), rhs: at(2), out: at(3) }
}

/// Decodes the numbers of [`dot_descriptor`].
pub(super) fn read_plan(numbers: &[i64]) -> DotPlan {
    let mut axes = numbers[3..].chunks_exact(4).map(read_axis);
    let none = Axis { extent: 1, lhs: 0, rhs: 0, out: 0 };
    let mut next = || axes.next().unwrap_or(none);
    let (m, n, k) = (next(), next(), next());
    let outer = (0..numbers[1]).map(|_| next()).collect();
    let accumulated = (0..numbers[2]).map(|_| next()).collect();
    DotPlan { outer, accumulated, m, n, k }
}

/// Computes the dot that `length` numbers at `descriptor` describe; `buffers` are left operand, right operand and
/// result.
pub(super) unsafe extern "C" fn xla_cpu_dot(
    buffers: *const *mut u8,
    _: *const KernelFn,
    descriptor: *const i64,
    length: i64,
    threads: i64,
) {
    let threads = threads as usize;
    // SAFETY: the generated caller passes a constant of `length` numbers made by `dot_descriptor`, and three buffers
    // that hold the shapes the plan was made from.
    unsafe {
        let numbers = std::slice::from_raw_parts(descriptor, length as usize);
        let plan = read_plan(numbers);
        match numbers[0] {
            0 => matmuls::<f32>(&plan, threads, operands(buffers)),
            1 => matmuls::<f64>(&plan, threads, operands(buffers)),
            2 => matmuls::<c32>(&plan, threads, operands(buffers)),
            _ => matmuls::<c64>(&plan, threads, operands(buffers)),
        }
    }
}

/// Returns the three pointers at `buffers`.
///
/// # Safety
/// `buffers` must point to three pointers.
pub(super) unsafe fn operands<T>(buffers: *const *mut u8) -> Operands<T> {
    // SAFETY: guaranteed by the caller.
    let [lhs, rhs, out] = [0, 1, 2].map(|i| unsafe { *buffers.add(i) });
    Operands { lhs: lhs.cast(), rhs: rhs.cast(), out: out.cast() }
}

/// Pointers to the first elements of a matmul's arrays.
#[derive(Clone, Copy)]
pub(super) struct Operands<T> {
    pub lhs: *const T,
    pub rhs: *const T,
    pub out: *mut T,
}

// SAFETY: the pointers are into buffers that live until the dot is done; its chunks write to disjoint results.
unsafe impl<T> Sync for Operands<T> {}

impl<T> Operands<T> {
    /// Advances the pointers by those numbers of elements.
    ///
    /// # Safety
    /// The new positions must be inside the arrays.
    unsafe fn offset(&self, (lhs, rhs, out): (usize, usize, usize)) -> Operands<T> {
        // SAFETY: guaranteed by the caller.
        unsafe { Operands { lhs: self.lhs.add(lhs), rhs: self.rhs.add(rhs), out: self.out.add(out) } }
    }
}

/// Element type of matmuls in the `gemm` crate.
trait MatmulElement: Copy + Sync + Add<Output = Self> + 'static {
    const ZERO: Self;
    const ONE: Self;
    /// Whether a sum of products that is zero may be -0. The crate subtracts sums of products of complex numbers, and
    /// -0 - (0 - 0) is -0, but the sum of 0 and -0 is 0.
    const MAKES_NEGATIVE_ZEROS: bool;
}

macro_rules! matmul_element {
    ($ty:ty, $zero:expr, $one:expr, $makes_negative_zeros:literal) => {
        impl MatmulElement for $ty {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            const MAKES_NEGATIVE_ZEROS: bool = $makes_negative_zeros;
        }
    };
}

matmul_element!(f32, 0.0, 1.0, false);
matmul_element!(f64, 0.0, 1.0, false);
matmul_element!(c32, c32::new(0.0, 0.0), c32::new(1.0, 0.0), true);
matmul_element!(c64, c64::new(0.0, 0.0), c64::new(1.0, 0.0), true);

/// Computes all matmuls of a plan, distributed over threads.
///
/// # Safety
/// The pointers must point to arrays that contain every position that the plan's axes reach. No other code may access
/// the array at `out` during the call.
unsafe fn matmuls<T: MatmulElement>(plan: &DotPlan, threads: usize, at: Operands<T>) {
    let chunks = DotChunks::new(plan, threads);
    let at = &at;
    pool::parallel_for(threads, chunks.count(), &|chunk| {
        let (matmuls, rows, columns) = chunks.get(chunk);
        for number in matmuls {
            // SAFETY: `number` is below the number of matmuls, and rows and columns are inside m and n, so the offsets
            // stay inside the arrays; chunks are disjoint.
            unsafe {
                let at = at.offset(offsets(&plan.outer, number));
                let at = at.offset((rows.start * plan.m.lhs, 0, rows.start * plan.m.out));
                let at = at.offset((0, columns.start * plan.n.rhs, columns.start * plan.n.out));
                block(plan, at, rows.len(), columns.len());
            }
        }
    });
}

/// Computes a block of one matmul's rows and columns, summed over all contracted axes.
///
/// # Safety
/// The requirements of [`matmuls`].
unsafe fn block<T: MatmulElement>(plan: &DotPlan, at: Operands<T>, rows: usize, columns: usize) {
    let (m, n, k) = (plan.m, plan.n, plan.k);
    let steps: usize = plan.accumulated.iter().map(|a| a.extent).product();
    for step in 0..steps {
        let (l, r, _) = offsets(&plan.accumulated, step);
        // SAFETY: strides and extents come from the plan; the destination is read only after the first step has written
        // it.
        unsafe {
            gemm::gemm(
                rows,
                columns,
                k.extent,
                at.out,
                n.out as isize,
                m.out as isize,
                step > 0,
                at.lhs.add(l),
                k.lhs as isize,
                m.lhs as isize,
                at.rhs.add(r),
                n.rhs as isize,
                k.rhs as isize,
                if step > 0 { T::ONE } else { T::ZERO },
                T::ONE,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
    if T::MAKES_NEGATIVE_ZEROS && steps > 0 {
        for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
            // SAFETY: a result of the block, which was written above.
            unsafe {
                let result = at.out.add(i * m.out + j * n.out);
                result.write(*result + T::ZERO);
            }
        }
    }
}

/// Returns the offsets of step `number` of nested axes, in elements of left operand, right operand and result.
pub(super) fn offsets(axes: &[Axis], mut number: usize) -> (usize, usize, usize) {
    let mut at = (0, 0, 0);
    for axis in axes.iter().rev() {
        let i = number % axis.extent.max(1);
        number /= axis.extent.max(1);
        at = (at.0 + i * axis.lhs, at.1 + i * axis.rhs, at.2 + i * axis.out);
    }
    at
}
