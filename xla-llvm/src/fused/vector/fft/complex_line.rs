//! Transforms of complex lines: passes, or a convolution with a chirp (L. Bluestein, 1970).

use std::fmt;

use xla_hlo::Result;
use xla_hlo::ops::Fft;

use super::code::{Code, Elements, RowTable, Rows};
use super::complex::Complex;
use super::pass::{Pass, Transfer};
use super::radices::{Radices, Vectors, is_smooth};

/// Method of the transform of `n` complex elements.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ComplexLine {
    pub n: usize,
    /// Length of the convolution, if it is one.
    convolution: Option<usize>,
    radices: Radices,
}

impl ComplexLine {
    /// Chooses the method.
    pub fn new(n: usize, vectors: Vectors) -> ComplexLine {
        if is_smooth(n) {
            return ComplexLine { n, convolution: None, radices: Radices::new(n, vectors) };
        }
        let (length, radices) = Radices::of_convolution(2 * n - 1, vectors);
        ComplexLine { n, convolution: Some(length), radices }
    }

    /// Returns the number of elements of the passes.
    pub fn length(&self) -> usize {
        self.convolution.unwrap_or(self.n)
    }

    /// Returns the cost of a block in vector instructions.
    pub fn cost(&self) -> f64 {
        let one_way = self.radices.cost;
        if self.convolution.is_some() { 2.0 * one_way } else { one_way }
    }
}

/// Prints the radices: `8 x 8 x 4`, or `16 x 16 convolution`.
impl fmt::Display for ComplexLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let radices: Vec<String> = self.radices.radices.iter().map(usize::to_string).collect();
        f.write_str(&radices.join(" x "))?;
        f.write_str(if self.convolution.is_some() { " convolution" } else { "" })
    }
}

/// Two arrays of rows in scratch memory, which passes read and write in direction.
#[derive(Clone, Copy)]
pub(super) struct Buffers<'e, 'ctx>([Rows<'e, 'ctx>; 2]);

impl<'e, 'ctx> Buffers<'e, 'ctx> {
    /// Allocates buffers of `count` rows.
    pub fn new(code: &Code<'e, 'ctx>, count: usize) -> Result<Self> {
        let lanes = code.lines();
        let array = || code.e.scratch_array(code.scalar, count as u64 * lanes);
        let rows = |parts| Rows { elements: Elements::Planar(parts), stride: code.number(lanes), swapped: false };
        Ok(Buffers([rows([array()?, array()?]), rows([array()?, array()?])]))
    }

    /// Returns the rows at an end of a transform.
    pub fn of(&self, end: End<'e, 'ctx>) -> Rows<'e, 'ctx> {
        match end {
            End::Buffer(number) => self.0[number],
            End::Array(rows) => rows,
        }
    }

    /// Returns a buffer.
    pub fn rows(&self, number: usize) -> Rows<'e, 'ctx> {
        self.0[number]
    }
}

/// Place of the elements of a transform.
#[derive(Clone, Copy)]
pub(super) enum End<'e, 'ctx> {
    /// Number of a buffer.
    Buffer(usize),
    Array(Rows<'e, 'ctx>),
}

impl End<'_, '_> {
    /// Returns the number of a buffer that does not contain the elements.
    pub fn other(self) -> usize {
        match self {
            End::Buffer(number) => 1 - number,
            End::Array(_) => 0,
        }
    }
}

/// Direction of a transform, and the divisor of its results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Direction {
    pub inverse: bool,
    pub divisor: f64,
}

/// Emitter of transforms of complex lines, with its tables.
pub(super) struct ComplexCode<'e, 'ctx> {
    code: Code<'e, 'ctx>,
    buffers: Buffers<'e, 'ctx>,
    n: usize,
    passes: Vec<Pass<'ctx>>,
    convolution: Option<Convolution<'ctx>>,
}

struct Convolution<'ctx> {
    length: usize,
    chirp: RowTable<'ctx>,
    kernel: RowTable<'ctx>,
}

impl<'e, 'ctx> ComplexCode<'e, 'ctx> {
    /// Adds the tables of a transform.
    pub fn new(code: Code<'e, 'ctx>, line: &ComplexLine, buffers: Buffers<'e, 'ctx>) -> Result<Self> {
        let passes = Pass::all(&code, &line.radices.radices)?;
        let convolution = line.convolution.map(|length| Convolution::new(&code, line.n, length)).transpose()?;
        Ok(ComplexCode { code, buffers, n: line.n, passes, convolution })
    }

    /// Emits a transform. Returns the number of the buffer with the results, if they are in one.
    pub fn emit(&self, from: End<'e, 'ctx>, to: Option<Rows<'e, 'ctx>>, direction: Direction) -> usize {
        match &self.convolution {
            None => self.passes(from, to, direction),
            Some(convolution) => self.convolve(convolution, from, to, direction),
        }
    }

    fn passes(&self, from: End<'e, 'ctx>, to: Option<Rows<'e, 'ctx>>, direction: Direction) -> usize {
        let (mut at, mut number) = (from, 0);
        for (i, pass) in self.passes.iter().enumerate() {
            let is_last = i + 1 == self.passes.len();
            number = at.other();
            let target = to.filter(|_| is_last).map_or(End::Buffer(number), End::Array);
            let (source, target) =
                (self.rows(at, i == 0 && direction.inverse), self.rows(target, is_last && direction.inverse));
            let divisor = if is_last { direction.divisor } else { 1.0 };
            pass.emit(&self.code, Transfer { from: &source, to: &target, divisor });
            at = End::Buffer(number);
        }
        number
    }

    /// Computes a transform as a convolution between two products with the [chirp](Fft::chirp).
    fn convolve(
        &self,
        by: &Convolution<'ctx>,
        from: End<'e, 'ctx>,
        to: Option<Rows<'e, 'ctx>>,
        direction: Direction,
    ) -> usize {
        let (code, n) = (&self.code, self.n as u64);
        let first = from.other();
        let (source, padded) = (self.rows(from, direction.inverse), self.buffers.rows(first));
        code.each_row(n, |row, width| {
            let x = code.product(code.load(&source, row, width), code.factors(&by.chirp, row, width));
            code.store(&padded, row, x);
        });
        code.each_row(by.length as u64 - n, |row, width| {
            let zero = code.number(0).signed_to_float(code.scalar).splat(width);
            code.store(&padded, row + n as i64, Complex { re: zero, im: zero });
        });
        let second = self.passes(End::Buffer(first), None, Direction { inverse: false, divisor: 1.0 });
        let spectrum = self.buffers.rows(second);
        // The number of rows is a multiple of the number of lanes, so no row is multiplied twice.
        code.each_row(by.length as u64, |row, width| {
            let x = code.product(code.load(&spectrum, row, width), code.factors(&by.kernel, row, width));
            code.store(&spectrum, row, x);
        });
        let third = self.passes(End::Buffer(second), None, Direction { inverse: true, divisor: 1.0 });
        let (convolved, target) = (self.buffers.rows(third), to.map_or(End::Buffer(1 - third), End::Array));
        let target = self.rows(target, direction.inverse);
        code.each_row(n, |row, width| {
            let x = code.product(code.load(&convolved, row, width), code.factors(&by.chirp, row, width));
            code.store(&target, row, code.divided(x, direction.divisor));
        });
        1 - third
    }

    /// Returns rows whose accesses exchange real and imaginary parts, if `swapped`.
    fn rows(&self, end: End<'e, 'ctx>, swapped: bool) -> Rows<'e, 'ctx> {
        Rows { swapped, ..self.buffers.of(end) }
    }
}

impl<'ctx> Convolution<'ctx> {
    /// Adds the tables of the convolution of `length` elements for a transform of `n`.
    fn new(code: &Code<'_, 'ctx>, n: usize, length: usize) -> Result<Convolution<'ctx>> {
        let chirp = Fft::chirp(n);
        let kernel = code.row_table(&Fft::chirp_kernel(&chirp, length))?;
        Ok(Convolution { length, chirp: code.row_table(&chirp)?, kernel })
    }
}
