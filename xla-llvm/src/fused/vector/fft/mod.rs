//! Fourier transforms as one kernel for CPUs: loops over passes, with tables of roots of unity.
//!
//! ```text
//! radices       radices of the passes of a length, by cost
//! complex       complex lanes
//! butterfly     small transforms in registers
//! pass          one pass over the elements of a block: a Stockham stage
//! complex_line  passes of a complex transform; convolutions for lengths with large prime factors
//! line          real transforms, by complex ones of half the length
//! lines         lines along the last dimension, one by one or in blocks
//! columns       lines along other dimensions, in blocks
//! code          loops over rows and accesses to them
//! numbers       element type and vectors of a target
//! ```
//!
//! Passes read and write two buffers in scratch memory in turn, with real and imaginary parts in separate arrays. The
//! first pass reads the operand, and the last one writes the result. An inverse transform exchanges real and imaginary
//! parts of operand and result, so that both directions use the same tables.

mod butterfly;
pub(crate) mod code;
mod columns;
mod complex;
mod complex_line;
mod line;
mod lines;
mod numbers;
mod pass;
pub(crate) mod radices;

use std::fmt;

use inkwell::values::PointerValue;
use xla_hlo::ops::{Fft, FftType, Op};
use xla_hlo::{ElementType, Error, Result};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::kernel::Launch;
use crate::fused::loops::frame::{Frame, WorkItems};
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::fft::MAX_LENGTH;
use crate::lanes::Lanes;
use code::Along;
use columns::{Columns, ColumnsCode};
use lines::{Lines, LinesCode};
use numbers::Numbers;

/// Whether the lengths of a transform are short enough for a kernel, which contains tables for each length. A real
/// transform back of several dimensions also needs scratch memory of their size, in which positions have 32 bits.
pub fn has_fft_kernel(op: &Fft) -> bool {
    let numbers = |count: usize, &n: &usize| count.saturating_mul(n);
    let is_short = op.fft_length.iter().all(|&n| n <= MAX_LENGTH);
    let is_small = || u32::try_from(op.fft_length.iter().fold(2, numbers)).is_ok();
    is_short && (op.fft_type != FftType::Irfft || op.fft_length.len() == 1 || is_small())
}

/// Strategy of transforms. A work item is a block of lines, or all transformed dimensions if there are several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Transform {
    kind: FftType,
    batch: u64,
    /// Sizes of the transformed dimensions, on the real side, without those of length 1 that need no transform.
    lengths: Vec<u64>,
    numbers: Numbers,
    /// Transforms along all dimensions but the last one, in order.
    columns: Vec<Columns>,
    lines: Lines,
}

impl Transform {
    fn new(op: &Fft, batch: u64, numbers: Numbers) -> Transform {
        let is_real = matches!(op.fft_type, FftType::Rfft | FftType::Irfft);
        // One element is its own transform, but a real transform changes the type of the last dimension.
        let (rank, all) = (op.fft_length.len(), op.fft_length.iter().enumerate());
        let transformed = all.filter(|&(d, &n)| n != 1 || (is_real && d + 1 == rank));
        let lengths: Vec<u64> = transformed.map(|(_, &n)| n as u64).collect();
        let (last, others) = last_and_others(&lengths);
        let is_inverse = matches!(op.fft_type, FftType::Ifft | FftType::Irfft);
        let inner = if is_real { Fft::half_size(last as usize) as u64 } else { last };
        let column = |d: usize| {
            let outer = others[..d].iter().product();
            let inner = others[d + 1..].iter().product::<u64>() * inner;
            let kind = if is_inverse { FftType::Ifft } else { FftType::Fft };
            Columns::new(kind, [outer, others[d], inner], numbers)
        };
        let columns = (0..others.len()).map(column).collect();
        let count = others.iter().product::<u64>() * if others.is_empty() { batch } else { 1 };
        let lines = Lines::new(op.fft_type, last as usize, count, numbers);
        Transform { kind: op.fft_type, batch, lengths, numbers, columns, lines }
    }

    /// Returns how many real numbers the transformed dimensions of operand and result have.
    fn sizes(&self) -> [u64; 2] {
        let (last, others) = last_and_others(&self.lengths);
        let half = 2 * Fft::half_size(last as usize) as u64;
        let sizes = match self.kind {
            FftType::Fft | FftType::Ifft => [2 * last; 2],
            FftType::Rfft => [last, half],
            FftType::Irfft => [half, last],
        };
        sizes.map(|size| size * others.iter().product::<u64>())
    }

    /// Returns the divisor of the results.
    fn divisor(&self) -> f64 {
        match self.kind {
            FftType::Fft | FftType::Rfft => 1.0,
            FftType::Ifft | FftType::Irfft => self.lengths.iter().map(|&n| n as f64).product(),
        }
    }

    /// Emits the transforms of several dimensions, in order.
    fn emit_dimensions<'ctx>(
        &self,
        e: &Emitter<'ctx>,
        [begin, end]: [Lanes<'_, 'ctx>; 2],
        [operand, result]: [PointerValue<'ctx>; 2],
    ) -> Result<()> {
        let code = self.numbers.code(e, Along::Rows);
        let sizes = self.sizes();
        // Columns are transformed in the result, or in memory of their own if the result is real.
        let own = match self.kind {
            FftType::Irfft if !self.columns.is_empty() => Some(e.scratch_array(code.scalar, sizes[0])?),
            _ => None,
        };
        let lines = e.with_scratch(|| LinesCode::new(e, &self.lines, self.divisor()))?;
        let column = |columns| e.with_scratch(|| ColumnsCode::new(e, columns));
        let columns = self.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        e.each([begin, end], 1, |item| {
            let at = |array, size: u64| code.address(array, item * size as i64);
            let [operand, result] = [at(operand, sizes[0]), at(result, sizes[1])];
            let all_lines = |arrays| code.vectors(self.lines.blocks(), 1, |block| lines.emit(block, arrays));
            let middle = own.unwrap_or(result);
            let mut from = operand;
            if self.kind == FftType::Rfft {
                all_lines([operand, result]);
                from = result;
            }
            for columns in &columns {
                columns.emit([from, middle]);
                from = middle;
            }
            if self.kind != FftType::Rfft {
                all_lines([from, result]);
            }
        });
        Ok(())
    }
}

/// Splits the sizes of dimensions; the last one is 1 if there are none.
fn last_and_others(lengths: &[u64]) -> (u64, &[u64]) {
    lengths.split_last().map_or((1, &[]), |(&last, others)| (last, others))
}

impl Strategy for Transform {
    fn names() -> &'static [&'static str] {
        &["fft"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<Transform>> {
        let Op::Fft(op) = choice.root() else { return Ok(None) };
        let (graph, root) = (choice.kernel.graph(), choice.kernel.source.root);
        let operand = graph[graph[root].operand(0)].shape().expect_array()?;
        let is_double = matches!(operand.element_type(), ElementType::F64 | ElementType::C128);
        let batch = operand.dims()[..operand.rank() - op.fft_length.len()].iter().map(|&n| n as u64).product();
        Ok(Some(Transform::new(op, batch, Numbers::new(is_double, choice.target()))))
    }

    fn emit<'ctx>(&self, _: &FusedKernel<'_, '_>, emitter: &Emitter<'ctx>, frame: Frame<'_, 'ctx>) -> Result<Launch> {
        let (&[operand, result], WorkItems::Range { begin, end }) = (&frame.pointers[..], frame.work_items) else {
            return Err(Error::internal("fft is emitted for a target with threads"));
        };
        if self.lengths.len() > 1 {
            self.emit_dimensions(emitter, [begin, end], [operand, result])?;
            return Ok(Launch::alone(self.batch));
        }
        let lines = LinesCode::new(emitter, &self.lines, self.divisor())?;
        emitter.each([begin, end], 1, |block| lines.emit(block, [operand, result]));
        Ok(Launch::alone(self.lines.blocks()))
    }
}

/// Prints kind, number of transforms and lengths, and the radices along each dimension: `IFFT 3 x [64, 100]: 16 x 4,
/// blocks of 8; 4 x 5 x 5`.
impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = format!("{:?}", self.kind).to_uppercase();
        write!(f, "{kind} {} x {:?}: ", self.batch, self.lengths)?;
        self.columns.iter().try_for_each(|columns| write!(f, "{columns}; "))?;
        self.lines.fmt(f)
    }
}
