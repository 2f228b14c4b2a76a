//! Double-shift QR iteration on real Hessenberg matrices (J. Francis, 1961; Golub and Van Loan, algorithms 7.5.1 and
//! 7.5.2).

use super::super::householder::{make_reflection, reflect, reflect_rows, vector};
use super::super::matrix::Matrix;
use super::{EXCEPTIONAL, MOST_STEPS, SchurField, undivided};

impl SchurField for f64 {
    fn iterate(h: &mut Matrix<f64>, z: &mut Matrix<f64>) -> usize {
        let mut steps = 0;
        let mut end = h.rows;
        while end > 0 {
            let last = end - 1;
            match last - undivided(h, last) {
                0 => (end, steps) = (end - 1, 0),
                1 => {
                    standardize(h, z, last - 1);
                    (end, steps) = (end - 2, 0);
                }
                length if steps < MOST_STEPS => {
                    steps += 1;
                    step(h, z, last - length, last, steps % EXCEPTIONAL == 0);
                }
                _ => return end,
            }
        }
        0
    }

    fn values(t: &Matrix<f64>) -> Vec<(f64, f64)> {
        let n = t.rows;
        let mut values = Vec::with_capacity(n);
        while values.len() < n {
            let i = values.len();
            if i + 1 < n && t.at(i + 1, i) != 0.0 {
                let imaginary = t.at(i, i + 1).abs().sqrt() * t.at(i + 1, i).abs().sqrt();
                values.extend([(t.at(i, i), imaginary), (t.at(i + 1, i + 1), -imaginary)]);
            } else {
                values.push((t.at(i, i), 0.0));
            }
        }
        values
    }
}

/// Performs one QR step on rows `first` to `last`, at least three, which chases a bulge of two rows from top to bottom.
fn step(h: &mut Matrix<f64>, z: &mut Matrix<f64>, first: usize, last: usize, is_exceptional: bool) {
    let n = h.rows;
    // Trace and determinant of the last 2 by 2 block, whose eigenvalues are the shifts, or of an exceptional shift.
    let (trace, determinant) = if is_exceptional {
        let size = h.at(last, last - 1).abs() + h.at(last - 1, last - 2).abs();
        let diagonal = 0.75 * size + h.at(last, last);
        (2.0 * diagonal, diagonal * diagonal + 0.4375 * size * size)
    } else {
        let (a, d) = (h.at(last - 1, last - 1), h.at(last, last));
        (a + d, a * d - h.at(last - 1, last) * h.at(last, last - 1))
    };
    // First column of the doubly shifted square.
    let (a, below) = (h.at(first, first), h.at(first + 1, first));
    let start = [
        a * a + h.at(first, first + 1) * below - trace * a + determinant,
        below * (a + h.at(first + 1, first + 1) - trace),
        below * h.at(first + 2, first + 1),
    ];
    let mut column = Matrix { rows: 3, columns: 1, elements: start.to_vec() };
    for k in first..last {
        let rows = 3.min(last + 1 - k);
        if k > first {
            column = Matrix::from_fn(rows, 1, |i, _| h.at(k + i, k - 1));
        }
        let tau = make_reflection(&mut column, 0..rows, 0);
        let v = vector(&column, 0..rows, 0);
        if k > first {
            // Effect of the reflection on the column that determined it.
            (0..rows).for_each(|i| *h.at_mut(k + i, k - 1) = if i == 0 { column.at(0, 0) } else { 0.0 });
        }
        reflect(h, k, &v, tau, k..n);
        reflect_rows(h, 0..(k + 4).min(last + 1), k, &v, tau);
        reflect_rows(z, 0..n, k, &v, tau);
    }
}

/// Makes the block in rows `i` and `i + 1` triangular if its eigenvalues are real, and otherwise makes its diagonal
/// elements equal.
fn standardize(h: &mut Matrix<f64>, z: &mut Matrix<f64>, i: usize) {
    let (a, b, c, d) = (h.at(i, i), h.at(i, i + 1), h.at(i + 1, i), h.at(i + 1, i + 1));
    let half = 0.5 * (a - d);
    if half * half + b * c < 0.0 {
        let angle = 0.5 * (-2.0 * half).atan2(b + c);
        rotate(h, z, i, angle.cos(), angle.sin());
        let mean = 0.5 * (h.at(i, i) + h.at(i + 1, i + 1));
        (*h.at_mut(i, i), *h.at_mut(i + 1, i + 1)) = (mean, mean);
    }
    // After rounding, a complex pair may have become two real eigenvalues.
    let (a, b, c, d) = (h.at(i, i), h.at(i, i + 1), h.at(i + 1, i), h.at(i + 1, i + 1));
    let half = 0.5 * (a - d);
    let discriminant = half * half + b * c;
    if discriminant >= 0.0 {
        // An eigenvector becomes the first column.
        let (x, y) = (half + discriminant.sqrt().copysign(half), c);
        let length = x.hypot(y);
        if length > 0.0 {
            rotate(h, z, i, x / length, y / length);
        }
        *h.at_mut(i + 1, i) = 0.0;
    }
}

/// Rotates columns and rows `i` and `i + 1`, so that the unit vector `(cosine, sine)` becomes the first of the two.
fn rotate(h: &mut Matrix<f64>, z: &mut Matrix<f64>, i: usize, cosine: f64, sine: f64) {
    for j in i..h.columns {
        let (x, y) = (h.at(i, j), h.at(i + 1, j));
        (*h.at_mut(i, j), *h.at_mut(i + 1, j)) = (cosine * x + sine * y, cosine * y - sine * x);
    }
    let turn = |m: &mut Matrix<f64>, row: usize| {
        let (x, y) = (m.at(row, i), m.at(row, i + 1));
        (*m.at_mut(row, i), *m.at_mut(row, i + 1)) = (cosine * x + sine * y, cosine * y - sine * x);
    };
    (0..i + 2).for_each(|row| turn(h, row));
    (0..z.rows).for_each(|row| turn(z, row));
}
