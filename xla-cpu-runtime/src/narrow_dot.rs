//! Matrix multiplication of narrow floats: panels that fit the cache are converted to `f32` and multiplied by the
//! `gemm` crate. Sums are rounded to the result's type once.
#![expect(unsafe_code, reason = "matmuls work on raw buffers of generated code")]

use std::cell::RefCell;
use std::ops::Range;

use gemm::Parallelism;
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use xla_hlo::{ElementType, Scalar};

use crate::dot::{Operands, offsets, operands, read_plan};
use crate::kernel::KernelFn;
use crate::plans::dot::{DotChunks, DotPlan};
use crate::pool;

/// Maximum numbers of rows, columns and contracted elements of a panel: two panels of `f32` fit into a megabyte of
/// cache.
const ROWS: usize = 256;
const COLUMNS: usize = 256;
const DEPTH: usize = 384;
/// Number of rows whose sums are kept while one panel of the right operand is multiplied by several panels of the left
/// one.
const TALL: usize = 4 * ROWS;

/// Conversion of an operand's elements to `f32`.
enum Reader {
    F32,
    BF16,
    F16,
    /// Table of the values of all 256 patterns of an 8-bit type.
    Table(Box<[f32; 256]>),
}

impl Reader {
    fn new(ty: ElementType) -> Option<Reader> {
        match ty {
            ElementType::F32 => Some(Reader::F32),
            ElementType::BF16 => Some(Reader::BF16),
            ElementType::F16 => Some(Reader::F16),
            _ if ty.is_float() && ty.bit_width() == 8 => {
                let value = |pattern: usize| match Scalar::from_bits(ty, pattern as u64) {
                    Scalar::Float(v) => v as f32,
                    Scalar::Pred(_) | Scalar::Signed(_) | Scalar::Unsigned(_) | Scalar::Complex(..) => f32::NAN,
                };
                Some(Reader::Table(Box::new(std::array::from_fn(value))))
            }
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Reader::F32 => 4,
            Reader::BF16 | Reader::F16 => 2,
            Reader::Table(_) => 1,
        }
    }

    /// Converts `to.len()` elements with stride `stride`.
    ///
    /// # Safety
    /// The elements must exist.
    unsafe fn read(&self, from: *const u8, stride: usize, to: &mut [f32]) {
        // SAFETY: guaranteed by the caller; generated code aligns arrays of these types to their elements.
        unsafe {
            match self {
                Reader::F32 => each(from.cast::<f32>(), stride, to, |x| x),
                Reader::BF16 => each(from.cast::<u16>(), stride, to, |x| f32::from_bits(u32::from(x) << 16)),
                Reader::F16 if stride == 1 => {
                    let halves = std::slice::from_raw_parts(from.cast::<u16>(), to.len());
                    halves.reinterpret_cast::<f16>().convert_to_f32_slice(to);
                }
                Reader::F16 => each(from.cast::<u16>(), stride, to, |x| f16::from_bits(x).to_f32()),
                Reader::Table(values) => each(from, stride, to, |x| values[usize::from(x)]),
            }
        }
    }
}

/// Converts elements with stride `stride`.
///
/// # Safety
/// The elements must exist.
unsafe fn each<T: Copy>(from: *const T, stride: usize, to: &mut [f32], convert: impl Fn(T) -> f32) {
    if stride == 1 {
        // SAFETY: guaranteed by the caller.
        let from = unsafe { std::slice::from_raw_parts(from, to.len()) };
        to.iter_mut().zip(from).for_each(|(to, &x)| *to = convert(x));
        return;
    }
    for (i, to) in to.iter_mut().enumerate() {
        // SAFETY: guaranteed by the caller.
        *to = convert(unsafe { *from.add(i * stride) });
    }
}

/// Conversion of `f32` sums to an element type.
#[derive(Clone, Copy)]
enum WriterOf {
    F32,
    BF16,
    F16,
}

impl WriterOf {
    fn new(ty: ElementType) -> Option<WriterOf> {
        match ty {
            ElementType::F32 => Some(WriterOf::F32),
            ElementType::BF16 => Some(WriterOf::BF16),
            ElementType::F16 => Some(WriterOf::F16),
            _ => None,
        }
    }

    fn bytes(self) -> usize {
        match self {
            WriterOf::F32 => 4,
            WriterOf::BF16 | WriterOf::F16 => 2,
        }
    }

    /// Rounds sums to elements with stride `stride`.
    ///
    /// # Safety
    /// `to` must have space for them.
    unsafe fn write(self, sums: &[f32], to: *mut u8, stride: usize) {
        // SAFETY: guaranteed by the caller; generated code aligns arrays of these types to their elements.
        unsafe {
            match self {
                WriterOf::F32 => put(sums, to.cast::<f32>(), stride, |sum| sum),
                WriterOf::BF16 => put(sums, to.cast::<u16>(), stride, bf16_bits),
                WriterOf::F16 if stride == 1 => {
                    let halves = std::slice::from_raw_parts_mut(to.cast::<u16>(), sums.len());
                    halves.reinterpret_cast_mut::<f16>().convert_from_f32_slice(sums);
                }
                WriterOf::F16 => put(sums, to.cast::<f16>(), stride, f16::from_f32),
            }
        }
    }
}

/// Converts elements and writes them with stride `stride`.
///
/// # Safety
/// `to` must have space for them.
unsafe fn put<T>(sums: &[f32], to: *mut T, stride: usize, convert: impl Fn(f32) -> T) {
    if stride == 1 {
        // SAFETY: guaranteed by the caller.
        let to = unsafe { std::slice::from_raw_parts_mut(to, sums.len()) };
        to.iter_mut().zip(sums).for_each(|(to, &sum)| *to = convert(sum));
        return;
    }
    for (i, &sum) in sums.iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe { *to.add(i * stride) = convert(sum) };
    }
}

/// Returns the upper half of an `f32`, rounded to nearest even. Has no branch, so that it vectorizes.
fn bf16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    // Keep a NaN even if its payload is in the lower half.
    let nan = bits | 0x0040_0000;
    ((if x.is_nan() { nan } else { rounded }) >> 16) as u16
}

/// Element types of left operand, right operand and result of a dot that this file supports: floats of 8, 16 and 32
/// bits, with a result of 16 or 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NarrowTypes([ElementType; 3]);

impl NarrowTypes {
    pub(crate) fn of(types: [ElementType; 3]) -> Option<NarrowTypes> {
        let [lhs, rhs, out] = types;
        let known = Reader::new(lhs).is_some() && Reader::new(rhs).is_some() && WriterOf::new(out).is_some();
        known.then_some(NarrowTypes(types))
    }

    /// Encodes the types as one number that generated code can carry.
    pub(crate) fn to_number(self) -> i64 {
        let place = |ty: ElementType| ElementType::ALL.iter().position(|&t| t == ty).unwrap_or(0) as i64;
        self.0.iter().fold(0, |number, &ty| number << 8 | place(ty))
    }

    /// Decodes a number of [`NarrowTypes::to_number`].
    fn from_number(number: i64) -> Option<NarrowTypes> {
        let at = |i: i64| ElementType::ALL.get((number >> (8 * i) & 0xff) as usize).copied();
        NarrowTypes::of([at(2)?, at(1)?, at(0)?])
    }
}

/// Computes the dot that `length` numbers at `descriptor` describe; `buffers` are left operand, right operand and
/// result.
pub(super) unsafe extern "C" fn xla_cpu_narrow_dot(
    buffers: *const *mut u8,
    _: *const KernelFn,
    descriptor: *const i64,
    length: i64,
    threads: i64,
) {
    // SAFETY: the generated caller passes a constant of `length` numbers made by `dot_descriptor` of `NarrowTypes`, and
    // three buffers that hold the shapes the plan was made from.
    unsafe {
        let numbers = std::slice::from_raw_parts(descriptor, length as usize);
        if let Some(types) = NarrowTypes::from_number(numbers[0]) {
            matmuls(types, &read_plan(numbers), threads as usize, operands(buffers));
        }
    }
}

/// Computes all matmuls of a plan, distributed over threads.
///
/// # Safety
/// The pointers must point to arrays of those types that contain every position that the plan's axes reach. No other
/// code may access the array at `out` during the call.
unsafe fn matmuls(types: NarrowTypes, plan: &DotPlan, threads: usize, at: Operands<u8>) {
    let [lhs, rhs, out] = types.0;
    let (Some(lhs), Some(rhs), Some(out)) = (Reader::new(lhs), Reader::new(rhs), WriterOf::new(out)) else { return };
    let matmul = Matmul { plan, lhs, rhs, out, at };
    // Each chunk of columns converts the left operand again.
    let chunks = DotChunks::with_chunks_a_thread(plan, threads, 2);
    pool::parallel_for(threads, chunks.count(), &|chunk| {
        let (matmuls, rows, columns) = chunks.get(chunk);
        SCRATCH.with_borrow_mut(|scratch| {
            for number in matmuls {
                for columns in blocks(columns.clone(), COLUMNS) {
                    for rows in blocks(rows.clone(), TALL) {
                        // SAFETY: the matmul's number, rows and columns are inside the plan; chunks are disjoint.
                        unsafe { matmul.block(number, rows, columns.clone(), scratch) };
                    }
                }
            }
        });
    });
}

/// Splits a range into blocks of at most `size`.
fn blocks(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(size).map(move |start| start..(start + size).min(end))
}

/// Panels and sums of a thread.
#[derive(Default)]
struct Scratch {
    lhs: Vec<f32>,
    rhs: Vec<f32>,
    sums: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

struct Matmul<'a> {
    plan: &'a DotPlan,
    lhs: Reader,
    rhs: Reader,
    out: WriterOf,
    at: Operands<u8>,
}

impl Matmul<'_> {
    /// Computes a block of one matmul's rows and columns, summed over all contracted axes.
    ///
    /// # Safety
    /// The requirements of [`matmuls`].
    unsafe fn block(&self, number: usize, rows: Range<usize>, columns: Range<usize>, scratch: &mut Scratch) {
        let plan = self.plan;
        let (m, n, k) = (plan.m, plan.n, plan.k);
        let (l, r, o) = offsets(&plan.outer, number);
        let (l, r) = (l + rows.start * m.lhs, r + columns.start * n.rhs);
        let o = o + rows.start * m.out + columns.start * n.out;
        scratch.sums.clear();
        scratch.sums.resize(rows.len() * columns.len(), 0.0);
        let steps: usize = plan.accumulated.iter().map(|a| a.extent).product();
        for step in 0..steps {
            let (dl, dr, _) = offsets(&plan.accumulated, step);
            for depth in blocks(0..k.extent, DEPTH) {
                let (l, r) = (l + dl + depth.start * k.lhs, r + dr + depth.start * k.rhs);
                // SAFETY: all offsets are along the plan's axes, below their extents.
                let right = unsafe {
                    let rhs = self.at.rhs.add(r * self.rhs.bytes());
                    panel(&self.rhs, rhs, (columns.len(), n.rhs), (depth.len(), k.rhs), &mut scratch.rhs)
                };
                for part in blocks(0..rows.len(), ROWS) {
                    // SAFETY: as above.
                    let left = unsafe {
                        let lhs = self.at.lhs.add((l + part.start * m.lhs) * self.lhs.bytes());
                        panel(&self.lhs, lhs, (part.len(), m.lhs), (depth.len(), k.lhs), &mut scratch.lhs)
                    };
                    multiply(
                        (part.len(), columns.len(), depth.len()),
                        (&scratch.lhs, left),
                        (&scratch.rhs, right),
                        &mut scratch.sums[part.start * columns.len()..],
                    );
                }
            }
        }
        for (i, sums) in scratch.sums.chunks_exact(columns.len().max(1)).enumerate() {
            // SAFETY: as above.
            unsafe {
                let to = self.at.out.add((o + i * m.out) * self.out.bytes());
                self.out.write(sums, to, n.out);
            }
        }
    }
}

/// Strides of a converted panel.
#[derive(Clone, Copy)]
struct PanelStrides {
    across: usize,
    depth: usize,
}

/// Converts a panel of `across` by `depth` elements, each given as a count and a stride, into `to`. Runs follow the
/// dimension with the smaller stride.
///
/// # Safety
/// The elements must exist.
unsafe fn panel(
    reader: &Reader,
    from: *const u8,
    across: (usize, usize),
    depth: (usize, usize),
    to: &mut Vec<f32>,
) -> PanelStrides {
    let along_depth = depth.1 <= across.1;
    let (outer, inner) = if along_depth { (across, depth) } else { (depth, across) };
    to.resize(outer.0 * inner.0, 0.0);
    for (i, run) in to.chunks_exact_mut(inner.0.max(1)).enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe { reader.read(from.add(i * outer.1 * reader.bytes()), inner.1, run) };
    }
    if along_depth { PanelStrides { across: inner.0, depth: 1 } } else { PanelStrides { across: 1, depth: inner.0 } }
}

/// Adds the product of two panels, `rows x depth` and `depth x columns`, to row-major sums.
fn multiply(
    (rows, columns, depth): (usize, usize, usize),
    (lhs, l): (&[f32], PanelStrides),
    (rhs, r): (&[f32], PanelStrides),
    sums: &mut [f32],
) {
    assert!(lhs.len() >= rows * depth && rhs.len() >= columns * depth && sums.len() >= rows * columns);
    // SAFETY: the panels are dense in both dimensions; their sizes are checked above.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            depth,
            sums.as_mut_ptr(),
            1,
            columns as isize,
            true,
            lhs.as_ptr(),
            l.depth as isize,
            l.across as isize,
            rhs.as_ptr(),
            r.across as isize,
            r.depth as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ElementType::{BF16, F8E4M3FN, F16, F32, F64, S8};

    #[test]
    fn types_survive_the_descriptor() {
        for types in [[BF16, BF16, BF16], [F16, F8E4M3FN, F32], [F32, F32, BF16]] {
            let types = NarrowTypes::of(types).unwrap();
            assert_eq!(NarrowTypes::from_number(types.to_number()), Some(types));
        }
        for types in [[F64, F32, F32], [F32, S8, F32], [BF16, BF16, F8E4M3FN]] {
            assert_eq!(NarrowTypes::of(types), None);
        }
    }

    #[test]
    fn panels_are_converted_in_either_order() {
        let table = Reader::new(F8E4M3FN).unwrap();
        let bytes: Vec<u8> = (0..24).collect();
        let mut to = Vec::new();
        // Three columns of four elements, once with contiguous columns and once with contiguous rows.
        for (across, depth) in [((3, 4), (4, 1)), ((3, 1), (4, 6))] {
            // SAFETY: the last element is number 20 at most.
            let strides = unsafe { panel(&table, bytes.as_ptr(), across, depth, &mut to) };
            for i in 0..3 {
                for j in 0..4 {
                    let pattern = (i * across.1 + j * depth.1) as u64;
                    let Scalar::Float(expected) = Scalar::from_bits(F8E4M3FN, pattern) else { panic!() };
                    assert_eq!(f64::from(to[i * strides.across + j * strides.depth]), expected);
                }
            }
        }
    }

    #[test]
    fn sums_round_to_nearest_even() {
        for (x, expected) in [
            (1.0, 0x3f80),
            (1.0 + 1.0 / 256.0, 0x3f80),
            (1.0 + 3.0 / 256.0, 0x3f82),
            (1.004, 0x3f81),
            (-0.0, 0x8000),
            (f32::MAX, 0x7f80),
            (f32::NEG_INFINITY, 0xff80),
            (f32::from_bits(0x7f80_0001), 0x7fc0),
        ] {
            assert_eq!(bf16_bits(x), expected, "{x}");
        }
    }

    #[test]
    fn nothing_has_no_blocks() {
        assert_eq!(blocks(3..3, 4).count(), 0);
        assert_eq!(blocks(3..12, 4).collect::<Vec<_>>(), [3..7, 7..11, 11..12]);
    }
}
