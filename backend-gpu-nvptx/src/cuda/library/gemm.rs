//! Conversion of row-major matmuls to the column-major GEMM of BLAS: computes sizes and strides only.
//!
//! A row-major `r x c` matrix has the same bytes as a column-major `c x r` one, its transpose. So `D = A B` of
//! row-major matrices is computed as `D' = B' A'` of column-major ones: BLAS's first factor is our rhs, its second one
//! our lhs, and its rows are our columns.

use crate::program::library_call::matmul::{Matmul, Operand};

/// GEMM as BLAS defines it: `op(a) op(b) = d`, column-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gemm {
    /// Layout of the first factor: our rhs.
    pub a: GemmLayout,
    /// Whether the first factor is transposed before the multiplication.
    pub transpose_a: bool,
    /// Layout of the second factor: our lhs.
    pub b: GemmLayout,
    /// Whether the second factor is transposed before the multiplication.
    pub transpose_b: bool,
    /// Layout of the result, and of the matrix added to it.
    pub d: GemmLayout,
}

/// Memory layout of a batch of column-major matrices, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GemmLayout {
    /// Number of rows; the elements of a column are contiguous.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Leading dimension: the distance between columns, at least 1.
    pub leading: usize,
    /// Distance between matrices.
    pub batch_stride: usize,
}

impl Gemm {
    /// Converts a matmul to the GEMM that BLAS computes.
    pub fn of(matmul: &Matmul) -> Gemm {
        let Matmul { m, n, k, .. } = *matmul;
        Gemm {
            a: GemmLayout::of(&matmul.rhs, k, n),
            transpose_a: matmul.rhs.transposed,
            b: GemmLayout::of(&matmul.lhs, m, k),
            transpose_b: matmul.lhs.transposed,
            d: GemmLayout::of(&matmul.result, m, n),
        }
    }
}

impl GemmLayout {
    /// Returns the layout of a row-major `rows x columns` operand.
    fn of(operand: &Operand, rows: usize, columns: usize) -> GemmLayout {
        let (rows, columns) = if operand.transposed { (columns, rows) } else { (rows, columns) };
        GemmLayout {
            rows: columns,
            columns: rows,
            leading: operand.row_stride.max(columns).max(1),
            batch_stride: operand.batch_stride,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use xla_hlo::ElementType::F64;

    use super::*;

    impl GemmLayout {
        /// Returns the index of an element of a column-major matrix.
        fn place(&self, batch: usize, row: usize, column: usize) -> usize {
            assert!(row < self.rows && column < self.columns && self.rows <= self.leading);
            batch * self.batch_stride + column * self.leading + row
        }
    }

    /// Computes the definition of GEMM: `d[i, j] = sum over l of op(a)[i, l] op(b)[l, j]`.
    fn blas(gemm: &Gemm, batch: usize, a: &[f64], b: &[f64], d: &mut [f64]) {
        let (inner, inner_b) = (
            if gemm.transpose_a { gemm.a.rows } else { gemm.a.columns },
            if gemm.transpose_b { gemm.b.columns } else { gemm.b.rows },
        );
        assert_eq!(inner, inner_b);
        for z in 0..batch {
            for (i, j) in (0..gemm.d.rows).flat_map(|i| (0..gemm.d.columns).map(move |j| (i, j))) {
                let term = |l| {
                    let at = if gemm.transpose_a { gemm.a.place(z, l, i) } else { gemm.a.place(z, i, l) };
                    let bt = if gemm.transpose_b { gemm.b.place(z, j, l) } else { gemm.b.place(z, l, j) };
                    a[at] * b[bt]
                };
                d[gemm.d.place(z, i, j)] = (0..inner).map(term).sum();
            }
        }
    }

    fn operand(rows: usize, columns: usize, transposed: bool, gap: usize, batched: bool) -> Operand {
        let (rows, columns) = if transposed { (columns, rows) } else { (rows, columns) };
        let row_stride = columns + gap;
        Operand {
            element: F64,
            transposed,
            row_stride,
            batch_stride: if batched { rows * row_stride + gap } else { 0 },
        }
    }

    proptest! {
        #[test]
        fn column_major_matmuls_are_the_row_major_ones(
            (batch, m, k, n) in (1usize..3, 1usize..5, 1usize..5, 1usize..5),
            transposed in any::<[bool; 2]>(),
            gaps in [0usize..3, 0usize..3, 0usize..3],
            batched in any::<[bool; 2]>(),
        ) {
            let mut matmul = Matmul::dense(batch, [m, k, n], [F64; 3]);
            matmul.lhs = operand(m, k, transposed[0], gaps[0], batched[0]);
            matmul.rhs = operand(k, n, transposed[1], gaps[1], batched[1]);
            matmul.result = operand(m, n, false, gaps[2], true);
            matmul.check((7, 0)).unwrap();
            let lhs: Vec<f64> = (0..200).map(|i| f64::from(i * 7 % 31 - 15)).collect();
            let rhs: Vec<f64> = (0..200).map(|i| f64::from(i * 11 % 29 - 14)).collect();
            let (mut expected, mut found) = (vec![-1.0; 200], vec![-1.0; 200]);
            matmul.by_loops(&lhs, &rhs, &mut expected);
            blas(&Gemm::of(&matmul), batch, &rhs, &lhs, &mut found);
            prop_assert_eq!(found, expected);
        }
    }
}
