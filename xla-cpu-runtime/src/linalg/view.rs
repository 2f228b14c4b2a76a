//! Matrix views with arbitrary row and column strides.
#![expect(unsafe_code, reason = "blocks of one matrix are written while others are read")]

use std::ops::Range;

use super::number::Number;
use gemm::Parallelism;

/// Number of rows and columns of blocks that are computed element by element.
pub const BLOCK: usize = 32;
/// Minimum number of multiplications of work that is distributed over threads.
pub const PARALLEL_WORK: usize = 1 << 17;

/// View of a matrix in memory that it does not own.
#[derive(Clone, Copy)]
pub(super) struct View<T> {
    first: *mut T,
    rows: usize,
    columns: usize,
    row_step: isize,
    column_step: isize,
}

// SAFETY: the contract of `View::row_major` excludes data races.
unsafe impl<T: Send> Send for View<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for View<T> {}

impl<T: Number> View<T> {
    /// Creates a view of the row-major matrix of `rows * columns` elements at `first`.
    ///
    /// # Safety
    /// The elements must exist and be initialized as long as the view and views derived from it are used. No other
    /// thread may access elements that a thread writes through views.
    pub(super) unsafe fn row_major(first: *mut T, rows: usize, columns: usize) -> View<T> {
        View { first, rows, columns, row_step: columns as isize, column_step: 1 }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Exchanges rows and columns.
    pub(super) fn transposed(self) -> View<T> {
        View { rows: self.columns, columns: self.rows, row_step: self.column_step, column_step: self.row_step, ..self }
    }

    /// Reverses the order of the rows.
    pub(super) fn reversed(self) -> View<T> {
        let last = self.rows.saturating_sub(1) as isize;
        View { first: self.first.wrapping_offset(last * self.row_step), row_step: -self.row_step, ..self }
    }

    /// Returns a block of rows and columns. Panics if they do not exist.
    pub(super) fn block(self, rows: Range<usize>, columns: Range<usize>) -> View<T> {
        assert!(
            rows.start <= rows.end && rows.end <= self.rows,
            "rows {rows:?} are out of bounds, the matrix has {}",
            self.rows
        );
        assert!(
            columns.start <= columns.end && columns.end <= self.columns,
            "columns {columns:?} are out of bounds, the matrix has {}",
            self.columns
        );
        let offset = rows.start as isize * self.row_step + columns.start as isize * self.column_step;
        View { first: self.first.wrapping_offset(offset), rows: rows.len(), columns: columns.len(), ..self }
    }

    /// Returns some rows with all columns.
    pub(super) fn row_range(self, rows: Range<usize>) -> View<T> {
        self.block(rows, 0..self.columns)
    }

    fn place(&self, row: usize, column: usize) -> *mut T {
        debug_assert!(row < self.rows && column < self.columns);
        self.first.wrapping_offset(row as isize * self.row_step + column as isize * self.column_step)
    }

    /// Calls `f` for every element with its row-major number and its address, in the order of the smaller stride.
    fn for_each_place(&self, mut f: impl FnMut(usize, *mut T)) {
        let (rows, columns) = (self.rows, self.columns);
        if self.column_step.abs() <= self.row_step.abs() {
            (0..rows).for_each(|i| (0..columns).for_each(|j| f(i * columns + j, self.place(i, j))));
        } else {
            (0..columns).for_each(|j| (0..rows).for_each(|i| f(i * columns + j, self.place(i, j))));
        }
    }

    /// Copies the elements into a row-major array.
    pub(super) fn load(&self, to: &mut [T]) {
        // SAFETY: the place is one of the view's (`row_major`).
        self.for_each_place(|i, place| to[i] = unsafe { *place });
    }

    /// Copies the elements of a row-major array into the view.
    pub(super) fn store(&self, from: &[T]) {
        // SAFETY: as in `load`.
        self.for_each_place(|i, place| unsafe { *place = from[i] });
    }

    /// Sets every element to one value.
    pub(super) fn fill(&self, value: T) {
        // SAFETY: as in `load`.
        self.for_each_place(|_, place| unsafe { *place = value });
    }

    /// Subtracts `lhs * rhs`; each factor may be conjugated.
    pub(super) fn subtract_product(
        &self,
        (lhs, conjugate_lhs): (View<T>, bool),
        (rhs, conjugate_rhs): (View<T>, bool),
    ) {
        assert!(lhs.rows == self.rows && rhs.columns == self.columns && lhs.columns == rhs.rows);
        if self.rows == 0 || self.columns == 0 || lhs.columns == 0 {
            return;
        }
        // SAFETY: the pointers and strides belong to views (`row_major`) of matching sizes.
        unsafe {
            gemm::gemm(
                self.rows,
                self.columns,
                lhs.columns,
                self.first,
                self.column_step,
                self.row_step,
                true,
                lhs.first,
                lhs.column_step,
                lhs.row_step,
                rhs.first,
                rhs.column_step,
                rhs.row_step,
                T::one(),
                -T::one(),
                false,
                conjugate_lhs,
                conjugate_rhs,
                Parallelism::None,
            );
        }
    }
}
