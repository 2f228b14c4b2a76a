//! Transforms along a dimension that is not the last one: blocks of neighbouring columns, with a column per lane.

use std::fmt;

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::Result;
use xla_hlo::ops::FftType;

use super::code::{Along, Code, Elements, Rows};
use super::complex_line::End;
use super::line::{Line, LineCode};
use super::numbers::Numbers;
use crate::emitter::Emitter;
use crate::lanes::Lanes;

/// Transform of an array `[outer, n, inner]` along `n`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Columns {
    line: Line,
    outer: u64,
    n: u64,
    inner: u64,
    numbers: Numbers,
}

impl Columns {
    pub fn new(kind: FftType, [outer, n, inner]: [u64; 3], numbers: Numbers) -> Columns {
        let line = Line::new(kind, n as usize, numbers.vectors(Along::Columns));
        Columns { line, outer, n, inner, numbers }
    }
}

/// Prints the radices.
impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, blocks of {}", self.line, self.numbers.width)
    }
}

/// Emitter of the transforms of columns.
pub(super) struct ColumnsCode<'a, 'e, 'ctx> {
    columns: &'a Columns,
    line: LineCode<'e, 'ctx>,
    /// Copy of the last columns of each `[n, inner]`, if they do not fill a block.
    rest: Option<PointerValue<'ctx>>,
}

impl<'a, 'e, 'ctx> ColumnsCode<'a, 'e, 'ctx> {
    pub fn new(e: &'e Emitter<'ctx>, columns: &'a Columns) -> Result<Self> {
        let line = LineCode::new(columns.numbers.code(e, Along::Columns), &columns.line, 1.0)?;
        let width = u64::from(columns.numbers.width);
        let rest = match columns.inner % width {
            0 => None,
            _ => Some(e.scratch_array(columns.numbers.scalar(), columns.n * width * 2)?),
        };
        Ok(ColumnsCode { columns, line, rest })
    }

    /// Emits the transforms of all columns. The arrays are equal or do not overlap.
    pub fn emit(&self, [operand, result]: [PointerValue<'ctx>; 2]) {
        let (code, columns) = (&self.line.code, self.columns);
        let width = u64::from(code.width);
        let blocks = columns.inner.div_ceil(width);
        code.vectors(columns.outer, 1, |outer| {
            let first = outer * (columns.n * columns.inner * 2) as i64;
            code.vectors(blocks, 1, |block| {
                let first = first + block * (2 * width) as i64;
                let arrays = [operand, result].map(|array| code.address(array, first));
                self.block(block.eq(blocks as i64 - 1), arrays);
            });
        });
    }

    /// Emits the transforms of a block.
    fn block(&self, is_last: Lanes<'e, 'ctx>, arrays: [PointerValue<'ctx>; 2]) {
        let (code, inner) = (&self.line.code, self.columns.inner);
        let whole = arrays.map(|base| rows(base, code.number(inner)));
        let Some(rest) = self.rest else {
            self.line.emit(End::Array(whole[0]), Some(whole[1]));
            return;
        };
        // One body computes whole blocks in the arrays, and the last block in its copy.
        let copy = rows(rest, code.number(code.width.into()));
        let copied = is_last.select(code.number(self.columns.n), 0);
        let end = |base| rows(self.selected(is_last, rest, base), is_last.select(copy.stride, whole[0].stride));
        self.copy(&whole[0], &copy, copied);
        self.line.emit(End::Array(end(arrays[0])), Some(end(arrays[1])));
        self.copy(&copy, &whole[1], copied);
    }

    /// Copies the last columns of the first `count` rows.
    fn copy(&self, from: &Rows<'e, 'ctx>, to: &Rows<'e, 'ctx>, count: Lanes<'e, 'ctx>) {
        let code = Code { along: Along::Rows, ..self.line.code };
        let rest = self.columns.inner % u64::from(code.width);
        code.e.each([code.number(0), count], 1, |row| {
            let at = |rows: &Rows<'e, 'ctx>, column| shifted(&code, rows, row, column);
            let mut column = 0;
            while column < rest {
                let width = code.fitting(rest - column);
                let x = code.load(&at(from, column), code.number(0), width);
                code.store(&at(to, column), code.number(0), x);
                column += u64::from(width);
            }
        });
    }

    fn selected(
        &self,
        condition: Lanes<'e, 'ctx>,
        then: PointerValue<'ctx>,
        otherwise: PointerValue<'ctx>,
    ) -> PointerValue<'ctx> {
        let e = self.line.code.e;
        let BasicValueEnum::IntValue(condition) = condition.raw() else { return otherwise };
        match e.record(e.builder().build_select(condition, then, otherwise, "")) {
            Some(BasicValueEnum::PointerValue(selected)) => selected,
            _ => otherwise,
        }
    }
}

fn rows<'e, 'ctx>(base: PointerValue<'ctx>, stride: Lanes<'e, 'ctx>) -> Rows<'e, 'ctx> {
    Rows { elements: Elements::Complex(base), stride, swapped: false }
}

/// Returns the element of a row and column, and those after it in the row.
fn shifted<'e, 'ctx>(code: &Code<'e, 'ctx>, all: &Rows<'e, 'ctx>, row: Lanes<'e, 'ctx>, column: u64) -> Rows<'e, 'ctx> {
    let Elements::Complex(base) = all.elements else { return *all };
    rows(code.address(base, (row * all.stride + column as i64) * 2), code.number(1))
}
