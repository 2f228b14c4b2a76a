//! Loops over the rows of a block of lines, and accesses to them.

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::{ArrayShape, ElementType, Error, Literal, Result, Scalar as Element};

use super::complex::Complex;
use crate::elemental::constant_array;
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};

/// Direction of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// Lanes are consecutive elements (rows) of one line.
    Rows,
    /// Lanes are lines (columns), whose elements with the same number are a row.
    Columns,
}

/// Emission of the transform of a block of lines: `[n, width]` elements with lanes along columns, or `[n]`.
#[derive(Clone, Copy)]
pub(super) struct Code<'e, 'ctx> {
    pub e: &'e Emitter<'ctx>,
    /// Type of real and imaginary parts.
    pub scalar: Scalar,
    pub along: Along,
    /// Number of lanes; the maximum, along rows.
    pub width: u32,
}

/// Memory of the elements of a block.
#[derive(Clone, Copy)]
pub(super) enum Elements<'ctx> {
    /// Real parts, and imaginary parts in another array.
    Planar([PointerValue<'ctx>; 2]),
    /// Complex elements.
    Complex(PointerValue<'ctx>),
    /// Real elements. Loads return imaginary parts of zero, and stores drop them.
    Real(PointerValue<'ctx>),
}

/// Rows in memory.
#[derive(Clone, Copy)]
pub(super) struct Rows<'e, 'ctx> {
    pub elements: Elements<'ctx>,
    /// Stride between rows in elements.
    pub stride: Lanes<'e, 'ctx>,
    /// Whether accesses exchange real and imaginary parts. A forward transform between two such accesses is an
    /// inverse transform.
    pub swapped: bool,
}

impl<'e, 'ctx> Code<'e, 'ctx> {
    /// Returns a constant index.
    pub fn number(&self, n: u64) -> Lanes<'e, 'ctx> {
        self.e.lanes(self.e.int_type(64).const_int(n, false))
    }

    /// Returns the number of lines of a block.
    pub fn lines(&self) -> u64 {
        match self.along {
            Along::Rows => 1,
            Along::Columns => self.width.into(),
        }
    }

    /// Returns the number of lanes of a loop over `count` rows: at most `count` along rows.
    pub fn fitting(&self, count: u64) -> u32 {
        match self.along {
            Along::Rows => 1 << u64::from(self.width).min(count.max(1)).ilog2(),
            Along::Columns => self.width,
        }
    }

    /// Runs `body` for vectors of `width` that cover `0..count`, at least `width` numbers. The last vector may overlap
    /// the one before it, so a body must not read rows that it stores.
    pub fn vectors(&self, count: u64, width: u32, body: impl FnOnce(Lanes<'e, 'ctx>)) {
        let (zero, end, step) = (self.number(0), self.number(count), u64::from(width));
        match () {
            () if count <= step => body(zero),
            () if count.is_multiple_of(step) => self.e.each([zero, end], i64::from(width), body),
            () => self.e.each([zero, end], i64::from(width), |at| body(at.umin((count - step) as i64))),
        }
    }

    /// Runs `body` for rows `0..count` and the number of lanes. See [`vectors`](Self::vectors).
    pub fn each_row(&self, count: u64, body: impl FnOnce(Lanes<'e, 'ctx>, u32)) {
        let width = self.fitting(count);
        match self.along {
            Along::Rows => self.vectors(count, width, |row| body(row, width)),
            Along::Columns => self.vectors(count, 1, |row| body(row, width)),
        }
    }

    /// Returns the address of a number of an array.
    pub fn address(&self, base: PointerValue<'ctx>, index: Lanes<'e, 'ctx>) -> PointerValue<'ctx> {
        match self.e.element_address(base, index, self.scalar) {
            BasicValueEnum::PointerValue(address) => address,
            _ => {
                self.e.fail(Error::internal("the address of a transform's element is not a pointer"));
                base
            }
        }
    }

    /// Loads the elements of a row, or of `width` rows.
    pub fn load(&self, rows: &Rows<'e, 'ctx>, row: Lanes<'e, 'ctx>, width: u32) -> Complex<'e, 'ctx> {
        let at = row * rows.stride;
        let numbers = |base, at, width| self.e.load_lanes(base, at, self.scalar, width, None);
        let loaded = match rows.elements {
            Elements::Planar(parts) => {
                let [re, im] = parts.map(|part| numbers(part, at, width));
                Complex { re, im }
            }
            Elements::Complex(base) => {
                let [re, im] = numbers(base, at + at, 2 * width).deinterleave();
                Complex { re, im }
            }
            Elements::Real(base) => {
                let re = numbers(base, at, width);
                Complex { re, im: re.constant(0.0) }
            }
        };
        if rows.swapped { loaded.swapped() } else { loaded }
    }

    /// Stores the elements of a row, or of consecutive rows.
    pub fn store(&self, rows: &Rows<'e, 'ctx>, row: Lanes<'e, 'ctx>, value: Complex<'e, 'ctx>) {
        let at = row * rows.stride;
        let value = if rows.swapped { value.swapped() } else { value };
        match rows.elements {
            Elements::Planar([re, im]) => {
                self.e.store_lanes(value.re, re, at, None);
                self.e.store_lanes(value.im, im, at, None);
            }
            Elements::Complex(base) => self.e.store_lanes(value.re.interleave(value.im), base, at + at, None),
            Elements::Real(base) => self.e.store_lanes(value.re, base, at, None),
        }
    }

    /// Stores each lane to the row of its number.
    pub fn scatter(&self, rows: &Rows<'e, 'ctx>, numbers: Lanes<'e, 'ctx>, value: Complex<'e, 'ctx>) {
        let at = numbers * rows.stride.splat(numbers.width());
        let value = if rows.swapped { value.swapped() } else { value };
        match rows.elements {
            Elements::Planar([re, im]) => {
                self.e.scatter_lanes(value.re, re, at, None);
                self.e.scatter_lanes(value.im, im, at, None);
            }
            Elements::Complex(base) => {
                self.e.scatter_lanes(value.re, base, at + at, None);
                self.e.scatter_lanes(value.im, base, at + at + 1, None);
            }
            Elements::Real(base) => self.e.scatter_lanes(value.re, base, at, None),
        }
    }

    /// Loads row `row`, or `width` rows down from it, the highest one first.
    pub fn load_down(&self, rows: &Rows<'e, 'ctx>, row: Lanes<'e, 'ctx>, width: u32) -> Complex<'e, 'ctx> {
        match self.along {
            Along::Columns => self.load(rows, row, width),
            Along::Rows => {
                let Complex { re, im } = self.load(rows, row - i64::from(width - 1), width);
                Complex { re: re.reversed(), im: im.reversed() }
            }
        }
    }

    /// Stores row `row`, or rows down from it, the highest one first.
    pub fn store_down(&self, rows: &Rows<'e, 'ctx>, row: Lanes<'e, 'ctx>, value: Complex<'e, 'ctx>) {
        match self.along {
            Along::Columns => self.store(rows, row, value),
            Along::Rows => {
                let first = row - i64::from(value.re.width() - 1);
                self.store(rows, first, Complex { re: value.re.reversed(), im: value.im.reversed() });
            }
        }
    }

    /// Adds a table of numbers to the module.
    pub fn table(&self, numbers: &[f64]) -> Result<PointerValue<'ctx>> {
        let ty = if self.scalar == Scalar::F64 { ElementType::F64 } else { ElementType::F32 };
        let shape = ArrayShape::new(ty, [numbers.len()]);
        constant_array(self.e, &Literal::from_fn(&shape, |i| Element::Float(numbers[i]))?)
    }

    /// Adds a table of one factor for each row: the real parts, then the imaginary parts.
    pub fn row_table(&self, factors: &[(f64, f64)]) -> Result<RowTable<'ctx>> {
        let numbers: Vec<f64> = factors.iter().map(|x| x.0).chain(factors.iter().map(|x| x.1)).collect();
        Ok(RowTable { base: self.table(&numbers)?, rows: factors.len() as u64 })
    }

    /// Loads the factors of a row, or of `width` rows.
    pub fn factors(&self, table: &RowTable<'ctx>, row: Lanes<'e, 'ctx>, width: u32) -> Complex<'e, 'ctx> {
        let part = |at| match self.along {
            Along::Rows => self.e.load_lanes(table.base, at, self.scalar, width, None),
            Along::Columns => self.e.load_lanes(table.base, at, self.scalar, 1, None).splat(width),
        };
        Complex { re: part(row), im: part(row + table.rows as i64) }
    }
}

/// Constant factors of rows.
#[derive(Clone, Copy)]
pub(super) struct RowTable<'ctx> {
    base: PointerValue<'ctx>,
    rows: u64,
}
