//! Execution of matmuls in device memory.

use simulated_gpu::finding::Problem;
use simulated_gpu::machine::Memory;

use super::descriptors::{Activation, MatrixLayout, Transpose};
use super::matmul::Matmul;
use super::rules::F32_FAST_TF32;
use crate::element::{Number, tf32};

/// Matmul with its arrays, fully checked.
#[derive(Clone, Debug)]
pub(super) struct MatmulCall {
    pub matmul: Matmul,
    pub alpha: Number,
    pub beta: Number,
    pub a: u64,
    pub b: u64,
    pub c: u64,
    pub d: u64,
}

/// Matrix read from memory, column-major.
struct Matrix {
    rows: usize,
    columns: usize,
    numbers: Vec<Number>,
}

impl Matrix {
    fn read(memory: &mut Memory, address: u64, layout: &MatrixLayout) -> Result<Matrix, Problem> {
        let (rows, columns) = (layout.rows as usize, layout.columns as usize);
        let mut numbers = Vec::with_capacity(rows.saturating_mul(columns));
        for column in 0..columns {
            numbers.extend(layout.element.read(memory, column_address(address, layout, column), rows)?);
        }
        Ok(Matrix { rows, columns, numbers })
    }

    /// Returns the matrix row by row, or column by column; rows and columns are those of `op(matrix)`.
    fn lines(self, turn: Transpose, by_rows: bool) -> Vec<Number> {
        let Matrix { rows, columns, numbers } = self;
        let numbers = match turn {
            Transpose::Conjugated => numbers.into_iter().map(|(real, imaginary)| (real, -imaginary)).collect(),
            Transpose::None | Transpose::Transposed => numbers,
        };
        // Columns are stored consecutively; the columns of a transposed matrix are rows of `op(matrix)`.
        if by_rows == (turn != Transpose::None) {
            return numbers;
        }
        (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(r, c)| numbers[c * rows + r])
            .collect()
    }
}

/// Returns the address of a column.
fn column_address(address: u64, layout: &MatrixLayout, column: usize) -> u64 {
    address.wrapping_add(column as u64 * layout.leading as u64 * layout.element.bytes() as u64)
}

impl MatmulCall {
    /// Executes the call.
    pub fn run(&self, memory: &mut Memory) -> Result<(), Problem> {
        (0..self.matmul.d.batch as u64).try_for_each(|number| self.one(memory, number))
    }

    /// Computes one matmul of the batch.
    fn one(&self, memory: &mut Memory, number: u64) -> Result<(), Problem> {
        let Matmul { operation, a, b, c, d } = &self.matmul;
        let at = |address: u64, layout: &MatrixLayout| {
            address.wrapping_add(number * layout.stride as u64 * layout.element.bytes() as u64)
        };
        let mut left = Matrix::read(memory, at(self.a, a), a)?.lines(operation.turn_a, true);
        let mut right = Matrix::read(memory, at(self.b, b), b)?.lines(operation.turn_b, false);
        if operation.compute == F32_FAST_TF32 {
            left.iter_mut().chain(&mut right).for_each(|number| *number = tf32(*number));
        }
        let added = if self.beta == (0.0, 0.0) { None } else { Some(Matrix::read(memory, at(self.c, c), c)?) };
        let bias = self.bias(memory, number)?;
        let (m, n) = (d.rows as usize, d.columns as usize);
        let k = left.len() / m.max(1);
        for column in 0..n {
            let line = &right[column * k..(column + 1) * k];
            let numbers: Vec<Number> = (0..m)
                .map(|row| {
                    let mut sum = dot(&left[row * k..(row + 1) * k], line);
                    if !d.element.is_complex() {
                        sum.1 = 0.0;
                    }
                    sum = times(self.alpha, sum);
                    if let Some(added) = &added {
                        sum = plus(sum, times(self.beta, added.numbers[column * m + row]));
                    }
                    if let Some(bias) = &bias {
                        sum = plus(sum, bias[row]);
                    }
                    (activated(operation.epilogue.activation, sum.0), sum.1)
                })
                .collect();
            d.element.write(memory, column_address(at(self.d, d), d, column), &numbers)?;
        }
        Ok(())
    }

    /// Reads the bias: a number for each row of the result.
    fn bias(&self, memory: &mut Memory, number: u64) -> Result<Option<Vec<Number>>, Problem> {
        let operation = &self.matmul.operation;
        if !operation.epilogue.has_bias {
            return Ok(None);
        }
        let element = self.matmul.bias_element();
        let address = operation.bias.wrapping_add(number * operation.bias_stride as u64 * element.bytes() as u64);
        element.read(memory, address, self.matmul.d.rows as usize).map(Some)
    }
}

fn dot(left: &[Number], right: &[Number]) -> Number {
    left.iter().zip(right).fold((0.0, 0.0), |sum, (&a, &b)| plus(sum, times(a, b)))
}

fn plus(a: Number, b: Number) -> Number {
    (a.0 + b.0, a.1 + b.1)
}

fn times(a: Number, b: Number) -> Number {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

fn activated(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Gelu => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
            0.5 * x * (1.0 + inner.tanh())
        }
    }
}
