//! Transforms of lines of every kind, by transforms of complex lines. A real line of even length is computed as a
//! complex line of half the length, whose elements are its pairs of elements.

use std::fmt;

use xla_hlo::Result;
use xla_hlo::ops::{Fft, FftType};

use super::code::{Along, Code, RowTable, Rows};
use super::complex::Complex;
use super::complex_line::{Buffers, ComplexCode, ComplexLine, Direction, End};
use super::radices::Vectors;
use crate::lanes::Lanes;

/// Transform of lines of `n` elements, on the real side.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    kind: LineKind,
    n: usize,
    complex: ComplexLine,
}

/// Kind of a line, by the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    Complex { inverse: bool },
    FromPairs,
    FromReals,
    ToPairs,
    ToReals,
}

/// Elements of a line as rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineRows {
    pub count: usize,
    pub is_real: bool,
}

impl LineRows {
    /// Returns the number of real numbers in a line.
    pub fn numbers(self) -> u64 {
        self.count as u64 * if self.is_real { 1 } else { 2 }
    }
}

impl Line {
    pub fn new(kind: FftType, n: usize, vectors: Vectors) -> Line {
        let is_even = n.is_multiple_of(2);
        let (kind, length) = match kind {
            FftType::Fft => (LineKind::Complex { inverse: false }, n),
            FftType::Ifft => (LineKind::Complex { inverse: true }, n),
            FftType::Rfft if is_even => (LineKind::FromPairs, n / 2),
            FftType::Irfft if is_even => (LineKind::ToPairs, n / 2),
            FftType::Rfft => (LineKind::FromReals, n),
            FftType::Irfft => (LineKind::ToReals, n),
        };
        Line { kind, n, complex: ComplexLine::new(length, vectors) }
    }

    /// Returns the rows of a line of the operand.
    pub fn operand(&self) -> LineRows {
        match self.kind {
            LineKind::Complex { .. } | LineKind::FromPairs => LineRows { count: self.complex.n, is_real: false },
            LineKind::FromReals => LineRows { count: self.n, is_real: true },
            LineKind::ToPairs | LineKind::ToReals => LineRows { count: Fft::half_size(self.n), is_real: false },
        }
    }

    /// Returns the rows of a line of the result.
    pub fn result(&self) -> LineRows {
        match self.kind {
            LineKind::Complex { .. } | LineKind::ToPairs => LineRows { count: self.complex.n, is_real: false },
            LineKind::ToReals => LineRows { count: self.n, is_real: true },
            LineKind::FromPairs | LineKind::FromReals => LineRows { count: Fft::half_size(self.n), is_real: false },
        }
    }

    /// Returns the number of rows of a buffer.
    pub fn buffer_rows(&self) -> usize {
        self.complex.length().max(self.complex.n + 1)
    }

    /// Returns the cost of a block in vector instructions.
    pub fn cost(&self) -> f64 {
        self.complex.cost()
    }
}

/// Prints the radices.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.complex.fmt(f)
    }
}

/// Emitter of transforms of lines, with its tables.
pub(super) struct LineCode<'e, 'ctx> {
    pub code: Code<'e, 'ctx>,
    pub buffers: Buffers<'e, 'ctx>,
    kind: LineKind,
    n: usize,
    complex: ComplexCode<'e, 'ctx>,
    /// Factors of the differences of elements `k` and `n / 2 - k`, if elements are pairs.
    factors: Option<RowTable<'ctx>>,
    divisor: f64,
}

impl<'e, 'ctx> LineCode<'e, 'ctx> {
    /// Adds the tables and allocates the buffers of a transform, whose results are divided by `divisor`.
    pub fn new(code: Code<'e, 'ctx>, line: &Line, divisor: f64) -> Result<Self> {
        let buffers = Buffers::new(&code, line.buffer_rows())?;
        let complex = ComplexCode::new(code, &line.complex, buffers)?;
        let (n, half) = (line.n, line.n / 2);
        // `-i exp(-2 pi i k / n) / 2`, and its conjugate times two for the inverse.
        let factors: Vec<(f64, f64)> = match line.kind {
            LineKind::FromPairs => (0..=half).map(|k| Fft::root(k, n)).map(|(re, im)| (im / 2.0, -re / 2.0)).collect(),
            LineKind::ToPairs => (0..half).map(|k| Fft::root(k, n)).map(|(re, im)| (im, re)).collect(),
            LineKind::Complex { .. } | LineKind::FromReals | LineKind::ToReals => Vec::new(),
        };
        let factors = if factors.is_empty() { None } else { Some(code.row_table(&factors)?) };
        Ok(LineCode { code, buffers, kind: line.kind, n, complex, factors, divisor })
    }

    /// Emits the transform of a block. Returns the number of the buffer with the results, if they are in one.
    pub fn emit(&self, from: End<'e, 'ctx>, to: Option<Rows<'e, 'ctx>>) -> usize {
        let direction = |inverse| Direction { inverse, divisor: self.divisor };
        match (self.kind, &self.factors) {
            (LineKind::FromPairs, Some(factors)) => self.separate(from, to, factors),
            (LineKind::ToPairs, Some(factors)) => self.complex.emit(self.combine(from, factors), to, direction(true)),
            (LineKind::ToReals, _) => self.complex.emit(self.whole(from), to, direction(true)),
            (LineKind::FromReals, _) => {
                let number = self.complex.emit(from, None, direction(false));
                if let Some(to) = to {
                    self.copy_half(&self.buffers.rows(number), &to);
                }
                number
            }
            (LineKind::Complex { inverse }, _) => self.complex.emit(from, to, direction(inverse)),
            (LineKind::FromPairs | LineKind::ToPairs, None) => 0,
        }
    }

    /// Computes the transforms of real lines from the transforms `z` of their pairs. With `z[n / 2] = z[0]`, the
    /// transforms of the even and odd elements are the conjugate-symmetric and antisymmetric parts of `z[k]` and
    /// `z[n / 2 - k]`.
    fn separate(&self, from: End<'e, 'ctx>, to: Option<Rows<'e, 'ctx>>, factors: &RowTable<'ctx>) -> usize {
        let (code, half) = (&self.code, self.n as u64 / 2);
        let number = self.complex.emit(from, None, Direction { inverse: false, divisor: 1.0 });
        let z = self.buffers.rows(number);
        let first = code.load(&z, code.number(0), code.fitting(1));
        code.store(&z, code.number(half), first);
        let target = self.buffers.of(to.map_or(End::Buffer(1 - number), End::Array));
        code.each_row(half + 1, |k, width| {
            let (x, y) = (code.load(&z, k, width), code.load_down(&z, -k + half as i64, width).conjugate());
            let odd = code.product(x - y, code.factors(factors, k, width));
            code.store(&target, k, code.divided(x + y, 2.0) + odd);
        });
        1 - number
    }

    /// Computes the transforms of pairs, times two, from the transforms of real lines.
    fn combine(&self, from: End<'e, 'ctx>, factors: &RowTable<'ctx>) -> End<'e, 'ctx> {
        let (code, half, pairs) = (&self.code, self.n as u64 / 2, End::Buffer(from.other()));
        let (source, target) = (self.buffers.of(from), self.buffers.of(pairs));
        code.each_row(half, |k, width| {
            let x = self.load_half(&source, k, width);
            let y = code.load_down(&source, -k + half as i64, width);
            // The last element is its own mirror image, like the first one.
            let y = Complex { im: self.is_first(k, width).select(y.im.constant(0.0), y.im), ..y }.conjugate();
            let odd = code.product(x - y, code.factors(factors, k, width));
            code.store(&target, k, x + y + odd);
        });
        pairs
    }

    /// Computes whole lines from their first halves.
    fn whole(&self, from: End<'e, 'ctx>) -> End<'e, 'ctx> {
        let (code, half, whole) = (&self.code, Fft::half_size(self.n) as u64, End::Buffer(from.other()));
        let (source, target) = (self.buffers.of(from), self.buffers.of(whole));
        code.each_row(half, |k, width| code.store(&target, k, self.load_half(&source, k, width)));
        if half > 1 {
            code.each_row(half - 1, |k, width| {
                let x = code.load(&source, k + 1, width).conjugate();
                code.store_down(&target, -k + (self.n as i64 - 1), x);
            });
        }
        whole
    }

    /// Loads rows of the first half of a symmetric line, whose element 0 is real.
    fn load_half(&self, rows: &Rows<'e, 'ctx>, k: Lanes<'e, 'ctx>, width: u32) -> Complex<'e, 'ctx> {
        let x = self.code.load(rows, k, width);
        Complex { im: self.is_first(k, width).select(x.im.constant(0.0), x.im), ..x }
    }

    /// Returns a mask of row 0 among rows from `row` on.
    fn is_first(&self, row: Lanes<'e, 'ctx>, width: u32) -> Lanes<'e, 'ctx> {
        match self.code.along {
            Along::Columns => row.eq(0),
            Along::Rows => (row.splat(width) + self.code.e.lane_numbers(64, width)).eq(0),
        }
    }

    fn copy_half(&self, from: &Rows<'e, 'ctx>, to: &Rows<'e, 'ctx>) {
        let half = Fft::half_size(self.n) as u64;
        self.code.each_row(half, |k, width| self.code.store(to, k, self.code.load(from, k, width)));
    }
}
