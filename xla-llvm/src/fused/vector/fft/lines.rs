//! Transforms along the last dimension, whose lines are contiguous: one by one with lanes along the line, or in blocks
//! with a line per lane.

use std::fmt;

use inkwell::values::PointerValue;
use xla_hlo::Result;
use xla_hlo::ops::FftType;

use super::code::{Along, Code, Elements, Rows};
use super::complex::Complex;
use super::complex_line::End;
use super::line::{Line, LineCode, LineRows};
use super::numbers::Numbers;
use crate::emitter::Emitter;
use crate::fused::tuning::fft::BLOCK_BYTES;
use crate::lanes::Lanes;

/// Transform of a number of lines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lines {
    line: Line,
    count: u64,
    numbers: Numbers,
    along: Along,
}

impl Lines {
    /// Chooses the direction of lanes by cost.
    pub fn new(kind: FftType, n: usize, count: u64, numbers: Numbers) -> Lines {
        let of = |along| Lines { line: Line::new(kind, n, numbers.vectors(along)), count, numbers, along };
        let (one, block) = (of(Along::Rows), of(Along::Columns));
        let width = u64::from(numbers.width);
        let moved = block.line.operand().count + block.line.result().count;
        let transposes = moved as f64 * (4.0 + 4.0 * f64::from(numbers.width.ilog2()));
        let in_blocks = count.div_ceil(width) as f64 * (block.line.cost() + transposes);
        let is_small = block.line.buffer_rows() as u64 * width * 4 * numbers.bytes() <= BLOCK_BYTES;
        if width > 1 && is_small && in_blocks < count as f64 * one.line.cost() { block } else { one }
    }

    /// Returns the number of lines that are transformed together.
    fn block(&self) -> u64 {
        match self.along {
            Along::Rows => 1,
            Along::Columns => self.numbers.width.into(),
        }
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u64 {
        self.count.div_ceil(self.block())
    }
}

/// Prints the radices, and the number of lines of a block.
impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.along {
            Along::Rows => self.line.fmt(f),
            Along::Columns => write!(f, "{}, blocks of {}", self.line, self.numbers.width),
        }
    }
}

/// Emitter of the transforms of lines.
pub(super) struct LinesCode<'a, 'e, 'ctx> {
    lines: &'a Lines,
    line: LineCode<'e, 'ctx>,
}

impl<'a, 'e, 'ctx> LinesCode<'a, 'e, 'ctx> {
    pub fn new(e: &'e Emitter<'ctx>, lines: &'a Lines, divisor: f64) -> Result<Self> {
        let line = LineCode::new(lines.numbers.code(e, lines.along), &lines.line, divisor)?;
        Ok(LinesCode { lines, line })
    }

    /// Emits the transform of a block of lines. The arrays are equal or do not overlap.
    pub fn emit(&self, block: Lanes<'e, 'ctx>, [operand, result]: [PointerValue<'ctx>; 2]) {
        let Lines { line, along, .. } = self.lines;
        if *along == Along::Rows {
            let rows = |array, rows| End::Array(self.rows(array, rows, block));
            let to = self.rows(result, line.result(), block);
            self.line.emit(rows(operand, line.operand()), Some(to));
            return;
        }
        self.load_block(operand, block);
        let number = self.line.emit(End::Buffer(0), None);
        self.store_block(result, block, number);
    }

    /// Returns the rows of a line in an array.
    fn rows(&self, array: PointerValue<'ctx>, rows: LineRows, line: Lanes<'e, 'ctx>) -> Rows<'e, 'ctx> {
        let code = &self.line.code;
        let base = code.address(array, line * rows.numbers() as i64);
        let elements = if rows.is_real { Elements::Real(base) } else { Elements::Complex(base) };
        Rows { elements, stride: code.number(1), swapped: false }
    }

    /// Returns the rows of `count` lines of a block from line `first` on. Lines after the last one are the last one.
    fn lines(
        &self,
        array: PointerValue<'ctx>,
        rows: LineRows,
        first: Lanes<'e, 'ctx>,
        count: u32,
    ) -> Vec<Rows<'e, 'ctx>> {
        let last = self.lines.count as i64 - 1;
        (0..count).map(|line| self.rows(array, rows, (first + i64::from(line)).umin(last))).collect()
    }

    /// Emits `body` for the groups of lines of a block that are transposed together: the number of the group's first
    /// lane, its lines, and the code with lanes along them.
    fn each_group(
        &self,
        block: Lanes<'e, 'ctx>,
        rows: LineRows,
        body: impl FnOnce(&Code<'e, 'ctx>, Lanes<'e, 'ctx>, Lanes<'e, 'ctx>, u32),
    ) {
        let code = Code { along: Along::Rows, ..self.line.code };
        let edge = code.fitting(rows.count as u64);
        code.vectors(code.width.into(), edge, |lane| body(&code, lane, block * i64::from(code.width) + lane, edge));
    }

    /// Transposes a block of the operand into buffer 0.
    fn load_block(&self, operand: PointerValue<'ctx>, block: Lanes<'e, 'ctx>) {
        let (rows, target) = (self.lines.line.operand(), self.line.buffers.rows(0));
        self.each_group(block, rows, |code, lane, first, edge| {
            let lines = self.lines(operand, rows, first, edge);
            code.vectors(rows.count as u64, edge, |row| {
                let loaded = lines.iter().map(|line| code.load(line, row, edge));
                for (i, row_of_lines) in (0..).zip(transposed(loaded)) {
                    code.store(&self.shifted(&target, lane), row + i, row_of_lines);
                }
            });
        });
    }

    /// Transposes a buffer into a block of the result.
    fn store_block(&self, result: PointerValue<'ctx>, block: Lanes<'e, 'ctx>, number: usize) {
        let (rows, source) = (self.lines.line.result(), self.line.buffers.rows(number));
        self.each_group(block, rows, |code, lane, first, edge| {
            let lines = self.lines(result, rows, first, edge);
            code.vectors(rows.count as u64, edge, |row| {
                let source = self.shifted(&source, lane);
                let loaded = (0..i64::from(edge)).map(|i| code.load(&source, row + i, edge));
                for (line, elements) in lines.iter().zip(transposed(loaded)) {
                    code.store(line, row, elements);
                }
            });
        });
    }

    /// Returns rows of a buffer from lane `lane` on.
    fn shifted(&self, rows: &Rows<'e, 'ctx>, lane: Lanes<'e, 'ctx>) -> Rows<'e, 'ctx> {
        let Elements::Planar(parts) = rows.elements else { return *rows };
        Rows { elements: Elements::Planar(parts.map(|part| self.line.code.address(part, lane))), ..*rows }
    }
}

/// Transposes a square block of complex numbers.
fn transposed<'e, 'ctx>(rows: impl Iterator<Item = Complex<'e, 'ctx>>) -> Vec<Complex<'e, 'ctx>> {
    let (re, im) = rows.map(|row| (row.re, row.im)).unzip();
    let columns = Lanes::transposed(re, 1).into_iter().zip(Lanes::transposed(im, 1));
    columns.map(|(re, im)| Complex { re, im }).collect()
}
