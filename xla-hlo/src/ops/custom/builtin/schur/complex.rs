//! Single-shift QR iteration on complex Hessenberg matrices (J. Francis, 1961), with J. Wilkinson's shift (1968).

use super::super::matrix::Matrix;
use super::{EXCEPTIONAL, MOST_STEPS, SchurField, undivided};
use crate::ops::linalg::field::Field;

type Complex = (f64, f64);

impl SchurField for Complex {
    fn iterate(h: &mut Matrix<Complex>, z: &mut Matrix<Complex>) -> usize {
        let mut steps = 0;
        let mut end = h.rows;
        while end > 0 {
            let last = end - 1;
            let first = undivided(h, last);
            if first == last {
                (end, steps) = (last, 0);
            } else if steps < MOST_STEPS {
                steps += 1;
                let shift = match steps % EXCEPTIONAL {
                    0 => h.at(last, last).plus(Complex::from_real(h.at(last, last - 1).modulus())),
                    _ => wilkinson_shift(h, last),
                };
                step(h, z, first, last, shift);
            } else {
                return end;
            }
        }
        0
    }

    fn values(t: &Matrix<Complex>) -> Vec<Complex> {
        (0..t.rows).map(|i| t.at(i, i)).collect()
    }
}

/// Returns the eigenvalue of the last 2 by 2 block that is nearer to the last diagonal element.
fn wilkinson_shift(h: &Matrix<Complex>, last: usize) -> Complex {
    let (a, d) = (h.at(last - 1, last - 1), h.at(last, last));
    let half = a.minus(d).times((0.5, 0.0));
    let off = h.at(last - 1, last).times(h.at(last, last - 1));
    let root = square_root(half.times(half).plus(off));
    let [sum, difference] = [half.plus(root), half.minus(root)];
    let greater = if sum.modulus() >= difference.modulus() { sum } else { difference };
    if greater.modulus() == 0.0 { d } else { d.minus(off.divided_by(greater)) }
}

fn square_root(x: Complex) -> Complex {
    let root = (0.5 * (x.modulus() + x.0.abs())).sqrt();
    match root {
        0.0 => (0.0, 0.0),
        _ if x.0 >= 0.0 => (root, 0.5 * x.1 / root),
        _ => (0.5 * x.1.abs() / root, root.copysign(x.1)),
    }
}

/// Performs one QR step on rows `first` to `last`, which chases a bulge of one row from top to bottom.
fn step(h: &mut Matrix<Complex>, z: &mut Matrix<Complex>, first: usize, last: usize, shift: Complex) {
    for k in first..last {
        let (x, y) = match k > first {
            true => (h.at(k, k - 1), h.at(k + 1, k - 1)),
            false => (h.at(k, k).minus(shift), h.at(k + 1, k)),
        };
        let length = x.modulus().hypot(y.modulus());
        if length == 0.0 {
            continue;
        }
        // The unit vector that becomes the first of the two rows.
        let (p, q) = (x.divided_by((length, 0.0)), y.divided_by((length, 0.0)));
        for j in k.saturating_sub(1).max(first)..h.columns {
            let (x, y) = (h.at(k, j), h.at(k + 1, j));
            *h.at_mut(k, j) = p.conjugate().times(x).plus(q.conjugate().times(y));
            *h.at_mut(k + 1, j) = p.times(y).minus(q.times(x));
        }
        if k > first {
            *h.at_mut(k + 1, k - 1) = (0.0, 0.0);
        }
        let turn = |m: &mut Matrix<Complex>, row: usize| {
            let (x, y) = (m.at(row, k), m.at(row, k + 1));
            *m.at_mut(row, k) = x.times(p).plus(y.times(q));
            *m.at_mut(row, k + 1) = y.times(p.conjugate()).minus(x.times(q.conjugate()));
        };
        (0..(k + 3).min(last + 1)).for_each(|row| turn(h, row));
        (0..z.rows).for_each(|row| turn(z, row));
    }
}
