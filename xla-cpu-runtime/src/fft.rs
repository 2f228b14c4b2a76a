//! Fourier transforms with `rustfft` and `realfft`, applied to each dimension in sequence.
//!
//! Lines of the last dimension are contiguous in memory and transformed directly. For the other dimensions, a few lines
//! at a time are gathered into scratch memory, transformed there, and scattered back.
#![expect(unsafe_code, reason = "transforms work on raw buffers of generated code, by columns of an array")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft as ComplexFft, FftDirection, FftNum, FftPlanner};
use xla_hlo::ops::{Fft, FftType};
use xla_hlo::{ArrayShape, ElementType};

use crate::kernel::KernelFn;
use crate::pool;

/// Size in bytes of adjacent columns that are transformed together: two cache lines.
const COLUMN_BYTES: usize = 128;
/// Minimum number of elements of a transform that is distributed over threads.
const PARALLEL_ELEMENTS: usize = 1 << 14;
/// Average number of chunks for each thread.
const CHUNKS_A_THREAD: usize = 4;
/// Maximum number of cached plans.
const MOST_PLANS: usize = 256;

/// Encodes a transform as numbers that generated code can carry: the kind, whether it is in double precision, the
/// number of transforms, and the sizes of the transformed dimensions.
pub(crate) fn fft_descriptor(op: &Fft, operand: &ArrayShape) -> Vec<i64> {
    let double = matches!(operand.element_type(), ElementType::F64 | ElementType::C128);
    let batch: usize = operand.dims()[..operand.rank() - op.fft_length.len()].iter().product();
    let mut numbers = vec![KINDS.iter().position(|&kind| kind == op.fft_type).unwrap_or(0) as i64];
    numbers.extend([i64::from(double), batch as i64]);
    numbers.extend(op.fft_length.iter().map(|&n| n as i64));
    numbers
}

/// Kinds by their number in a descriptor.
const KINDS: [FftType; 4] = [FftType::Fft, FftType::Ifft, FftType::Rfft, FftType::Irfft];

/// Computes the transform that `length` numbers at `descriptor` describe; `buffers` are operand and result.
pub(super) unsafe extern "C" fn xla_cpu_fft(
    buffers: *const *mut u8,
    _: *const KernelFn,
    descriptor: *const i64,
    length: i64,
    threads: i64,
) {
    // SAFETY: the generated caller passes a constant of `length` numbers made by `fft_descriptor`.
    let numbers = unsafe { std::slice::from_raw_parts(descriptor, length as usize) };
    let transform = Transform {
        kind: KINDS[numbers[0] as usize],
        batch: numbers[2] as usize,
        lengths: numbers[3..].iter().map(|&n| n as usize).collect(),
        threads: threads as usize,
    };
    // SAFETY: the generated caller passes two buffers that hold the shapes that the descriptor was made from. No other
    // code accesses them during the call.
    unsafe {
        let (operand, result) = (*buffers, *buffers.add(1));
        match numbers[1] {
            0 => transform.run::<f32>(operand, result),
            _ => transform.run::<f64>(operand, result),
        }
    }
}

/// Decoded descriptor of a transform, with the number of threads.
struct Transform {
    kind: FftType,
    batch: usize,
    /// Sizes of the transformed dimensions, on the real side.
    lengths: Vec<usize>,
    threads: usize,
}

impl Transform {
    /// # Safety
    /// Both pointers must point to arrays of this transform's sizes with elements made of `T`. They must not overlap,
    /// and no other code may access them during the call.
    unsafe fn run<T: Real>(&self, operand: *const u8, result: *mut u8) {
        let Some((&last, others)) = self.lengths.split_last() else { return };
        let lines = self.batch * others.iter().product::<usize>();
        let (reals, halves) = (lines * last, lines * Fft::half_size(last));
        if reals == 0 {
            return;
        }
        let scale = T::one() / T::from_usize(self.lengths.iter().product()).unwrap_or_else(T::one);
        // SAFETY: guaranteed by the caller; the sizes are the sizes of operand and result, and both are non-empty.
        unsafe {
            match self.kind {
                FftType::Fft | FftType::Ifft => {
                    let input: &[Complex<T>] = slice(operand, reals);
                    let output: &mut [Complex<T>] = slice_mut(result, reals);
                    let is_inverse = self.kind == FftType::Ifft;
                    self.complex_lines(input, output, is_inverse.then_some(scale));
                    self.columns(output, last, is_inverse);
                }
                FftType::Rfft => {
                    let output: &mut [Complex<T>] = slice_mut(result, halves);
                    self.real_to_complex(slice(operand, reals), output);
                    self.columns(output, Fft::half_size(last), false);
                }
                FftType::Irfft => {
                    let input: &[Complex<T>] = slice(operand, halves);
                    let output: &mut [T] = slice_mut(result, reals);
                    if others.is_empty() {
                        return self.complex_to_real(input, output, scale);
                    }
                    let mut half = input.to_vec();
                    self.columns(&mut half, Fft::half_size(last), true);
                    self.complex_to_real(&half, output, scale);
                }
            }
        }
    }

    /// Returns the number of lines of `n` elements in a chunk; there are `lines` lines in total.
    fn lines_a_chunk(&self, lines: usize, n: usize) -> usize {
        if lines * n < PARALLEL_ELEMENTS {
            return lines.max(1);
        }
        lines.div_ceil(self.threads.max(1) * CHUNKS_A_THREAD).max(1)
    }

    fn complex_lines<T: Real>(&self, input: &[Complex<T>], output: &mut [Complex<T>], scale: Option<T>) {
        let n = self.last();
        let fft = T::plans().complex(n, direction(scale.is_some()));
        let chunk = self.lines_a_chunk(output.len() / n, n) * n;
        pool::parallel_chunks(self.threads, output, chunk, &|i, output| {
            let mut scratch = zeros(fft.get_immutable_scratch_len());
            let input = &input[i * chunk..i * chunk + output.len()];
            for (from, to) in input.chunks_exact(n).zip(output.chunks_exact_mut(n)) {
                fft.process_immutable_with_scratch(from, to, &mut scratch);
                if let Some(scale) = scale {
                    to.iter_mut().for_each(|x| *x = *x * scale);
                }
            }
        });
    }

    fn real_to_complex<T: Real>(&self, input: &[T], output: &mut [Complex<T>]) {
        let n = self.last();
        let half = Fft::half_size(n);
        let fft = T::plans().real_to_complex(n);
        let lines = self.lines_a_chunk(output.len() / half, n);
        pool::parallel_chunks(self.threads, output, lines * half, &|i, output| {
            let (mut line, mut scratch) = (vec![T::zero(); n], zeros(fft.get_scratch_len()));
            let input = input[i * lines * n..].chunks_exact(n);
            for (from, to) in input.zip(output.chunks_exact_mut(half)) {
                line.copy_from_slice(from);
                // Only wrong lengths are errors, and these lengths are right.
                drop(fft.process_with_scratch(&mut line, to, &mut scratch));
            }
        });
    }

    fn complex_to_real<T: Real>(&self, input: &[Complex<T>], output: &mut [T], scale: T) {
        let n = self.last();
        let half = Fft::half_size(n);
        let fft = T::plans().complex_to_real(n);
        let lines = self.lines_a_chunk(output.len() / n, n);
        pool::parallel_chunks(self.threads, output, lines * n, &|i, output| {
            let (mut line, mut scratch) = (zeros(half), zeros(fft.get_scratch_len()));
            let input = input[i * lines * half..].chunks_exact(half);
            for (from, to) in input.zip(output.chunks_exact_mut(n)) {
                line.iter_mut().zip(from).for_each(|(line, &x)| *line = x * scale);
                line[0].im = T::zero();
                if n.is_multiple_of(2) {
                    line[half - 1].im = T::zero();
                }
                drop(fft.process_with_scratch(&mut line, to, &mut scratch));
            }
        });
    }

    /// Transforms all dimensions but the last one, whose size in this array is `last`.
    fn columns<T: Real>(&self, data: &mut [Complex<T>], last: usize, is_inverse: bool) {
        let mut inner = last;
        for &n in self.lengths[..self.lengths.len() - 1].iter().rev() {
            if n > 1 {
                let fft = T::plans().complex(n, direction(is_inverse));
                self.columns_of(data, n, inner, &*fft);
            }
            inner *= n;
        }
    }

    /// Transforms an array `[outer, n, inner]` along `n`.
    fn columns_of<T: Real>(&self, data: &mut [Complex<T>], n: usize, inner: usize, fft: &dyn ComplexFft<T>) {
        let width = (COLUMN_BYTES / size_of::<Complex<T>>()).min(inner);
        let blocks_a_row = inner.div_ceil(width);
        let blocks = data.len() / (n * inner) * blocks_a_row;
        let size = self.lines_a_chunk(blocks, n * width);
        let shared = Shared(data.as_mut_ptr());
        pool::parallel_for(self.threads, blocks.div_ceil(size), &|chunk| {
            let (mut lines, mut scratch) = (zeros(n * width), zeros(fft.get_inplace_scratch_len()));
            for block in chunk * size..((chunk + 1) * size).min(blocks) {
                let column = block % blocks_a_row * width;
                let width = width.min(inner - column);
                let lines = &mut lines[..n * width];
                // SAFETY: blocks are disjoint: each consists of `width` columns from `column` on of the rows `outer * n
                // ..`, which have `inner` elements each. The last block is inside `data`, which is borrowed until all
                // chunks are done.
                unsafe {
                    let first = shared.pointer().add(block / blocks_a_row * n * inner + column);
                    gather(first, inner, width, lines);
                    fft.process_with_scratch(lines, &mut scratch);
                    scatter(lines, first, inner, width);
                }
            }
        });
    }

    fn last(&self) -> usize {
        self.lengths.last().copied().unwrap_or(1)
    }
}

fn direction(is_inverse: bool) -> FftDirection {
    if is_inverse { FftDirection::Inverse } else { FftDirection::Forward }
}

fn zeros<T: FftNum>(length: usize) -> Vec<Complex<T>> {
    vec![Complex::new(T::zero(), T::zero()); length]
}

/// Array whose disjoint blocks are processed by several threads.
struct Shared<T>(*mut Complex<T>);

// SAFETY: the pointer is only used for blocks, and blocks do not overlap (`columns_of`).
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn pointer(&self) -> *mut Complex<T> {
        self.0
    }
}

/// Transposes columns into lines.
///
/// # Safety
/// `first` must point to the first of `width` columns in `lines.len() / width` rows with stride `step`.
unsafe fn gather<T: Copy>(first: *const Complex<T>, step: usize, width: usize, lines: &mut [Complex<T>]) {
    let n = lines.len() / width;
    for row in 0..n {
        // SAFETY: guaranteed by the caller.
        let columns = unsafe { std::slice::from_raw_parts(first.add(row * step), width) };
        columns.iter().enumerate().for_each(|(c, &x)| lines[c * n + row] = x);
    }
}

/// Transposes lines back into columns.
///
/// # Safety
/// The requirements of [`gather`]; no other code may access the columns during the call.
unsafe fn scatter<T: Copy>(lines: &[Complex<T>], first: *mut Complex<T>, step: usize, width: usize) {
    let n = lines.len() / width;
    for row in 0..n {
        // SAFETY: guaranteed by the caller.
        let columns = unsafe { std::slice::from_raw_parts_mut(first.add(row * step), width) };
        columns.iter_mut().enumerate().for_each(|(c, x)| *x = lines[c * n + row]);
    }
}

/// # Safety
/// `count` initialized and aligned elements must exist at the pointer as long as the slice is used.
unsafe fn slice<'a, T>(pointer: *const u8, count: usize) -> &'a [T] {
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(pointer.cast(), count) }
}

/// # Safety
/// The requirements of [`slice`]; no other code may access the elements.
unsafe fn slice_mut<'a, T>(pointer: *mut u8, count: usize) -> &'a mut [T] {
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts_mut(pointer.cast(), count) }
}

/// Precision of transforms, with its cache of plans.
trait Real: FftNum {
    fn plans() -> &'static Plans<Self>;
}

macro_rules! precisions {
    ($($ty:ty),*) => {
        $(impl Real for $ty {
            fn plans() -> &'static Plans<$ty> {
                static PLANS: OnceLock<Plans<$ty>> = OnceLock::new();
                PLANS.get_or_init(Plans::default)
            }
        })*
    };
}

precisions!(f32, f64);

/// Cached plans by length; planning takes longer than most transforms.
#[derive(Default)]
struct Plans<T> {
    complex: Kept<(usize, bool), dyn ComplexFft<T>>,
    forward: Kept<usize, dyn RealToComplex<T>>,
    backward: Kept<usize, dyn ComplexToReal<T>>,
}

impl<T: FftNum> Plans<T> {
    fn complex(&self, n: usize, direction: FftDirection) -> Arc<dyn ComplexFft<T>> {
        let key = (n, direction == FftDirection::Inverse);
        self.complex.get_or_make(key, || FftPlanner::new().plan_fft(n, direction))
    }

    fn real_to_complex(&self, n: usize) -> Arc<dyn RealToComplex<T>> {
        self.forward.get_or_make(n, || RealFftPlanner::new().plan_fft_forward(n))
    }

    fn complex_to_real(&self, n: usize) -> Arc<dyn ComplexToReal<T>> {
        self.backward.get_or_make(n, || RealFftPlanner::new().plan_fft_inverse(n))
    }
}

/// Cache of values by key, cleared at [`MOST_PLANS`] entries.
struct Kept<K, V: ?Sized>(Mutex<HashMap<K, Arc<V>>>);

impl<K, V: ?Sized> Default for Kept<K, V> {
    fn default() -> Self {
        Kept(Mutex::new(HashMap::new()))
    }
}

impl<K: std::hash::Hash + Eq, V: ?Sized> Kept<K, V> {
    fn get_or_make(&self, key: K, make: impl FnOnce() -> Arc<V>) -> Arc<V> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_PLANS && !kept.contains_key(&key) {
            kept.clear();
        }
        kept.entry(key).or_insert_with(make).clone()
    }
}
