//! Tridiagonal systems of equations, solved by elimination with row exchanges (Golub and Van Loan, section 4.3).

use super::matrix::{Matrix, array, elements, for_field, matrices, sizes};
use crate::ops::CustomCallContext;
use crate::ops::linalg::field::Field;
use crate::{ElementType, Error, Literal, Result, Scalar};

/// An upper triangular system, the result of elimination.
struct Eliminated<T> {
    diagonal: Vec<T>,
    above: Vec<T>,
    second_above: Vec<T>,
    right: Matrix<T>,
}

/// The diagonals of one system. Each has the length of the main diagonal; `below[0]` and the last element of `above`
/// are unused.
struct System<T> {
    below: Vec<T>,
    diagonal: Vec<T>,
    above: Vec<T>,
    right: Matrix<T>,
}

/// Returns the systems in the operands `(below, diagonal, above, right-hand sides)`.
fn systems<T: Field>(operands: &[Literal]) -> Result<Vec<System<T>>> {
    let [below, diagonal, above, right] = operands else {
        return Err(Error::invalid_argument("it takes four operands"));
    };
    let (count, n, _) = sizes("operand 3", right.shape().expect_array()?)?;
    for (i, operand) in operands[..3].iter().enumerate() {
        let shape = operand.shape().expect_array()?;
        if shape.dims().last() != Some(&n) || shape.element_count() != n * count {
            let message = format!("operand {i} must have {n} elements for each matrix of operand 3, it is {shape}");
            return Err(Error::invalid_argument(message));
        }
    }
    let part = |a: &Literal, k: usize| (k * n..(k + 1) * n).map(|i| T::from_element(a.get(i))).collect();
    let system =
        |(k, right)| System { below: part(below, k), diagonal: part(diagonal, k), above: part(above, k), right };
    Ok(matrices::<T>("operand 3", right)?.into_iter().enumerate().map(system).collect())
}

fn eliminate<T: Field>(system: System<T>) -> Eliminated<T> {
    let System { mut below, mut diagonal, mut above, mut right } = system;
    let n = diagonal.len();
    let mut second_above = vec![T::ZERO; n];
    for i in 0..n.saturating_sub(1) {
        if below[i + 1].modulus() > diagonal[i].modulus() {
            (diagonal[i], below[i + 1]) = (below[i + 1], diagonal[i]);
            (above[i], diagonal[i + 1]) = (diagonal[i + 1], above[i]);
            if i + 2 < n {
                (second_above[i], above[i + 1]) = (above[i + 1], T::ZERO);
            }
            for j in 0..right.columns {
                let (x, y) = (right.at(i, j), right.at(i + 1, j));
                (*right.at_mut(i, j), *right.at_mut(i + 1, j)) = (y, x);
            }
        }
        if below[i + 1].modulus() != 0.0 {
            let factor = below[i + 1].divided_by(diagonal[i]);
            diagonal[i + 1] = diagonal[i + 1].minus_product(factor, above[i]);
            if i + 2 < n {
                above[i + 1] = above[i + 1].minus_product(factor, second_above[i]);
            }
            for j in 0..right.columns {
                *right.at_mut(i + 1, j) = right.at(i + 1, j).minus_product(factor, right.at(i, j));
            }
        }
    }
    Eliminated { diagonal, above, second_above, right }
}

impl<T: Field> Eliminated<T> {
    /// Replaces the right-hand sides by the solutions. `pivot` maps the pivot and the value of a row to the divisor.
    fn substitute(&mut self, pivot: impl Fn(T, T) -> T) {
        let (n, x) = (self.diagonal.len(), &mut self.right);
        for j in 0..x.columns {
            for i in (0..n).rev() {
                let mut value = x.at(i, j);
                if i + 1 < n {
                    value = value.minus_product(self.above[i], x.at(i + 1, j));
                }
                if i + 2 < n {
                    value = value.minus_product(self.second_above[i], x.at(i + 2, j));
                }
                *x.at_mut(i, j) = value.divided_by(pivot(self.diagonal[i], value));
            }
        }
    }
}

/// LAPACK's `gtsv`: `(second upper diagonal, diagonal, upper diagonal, solutions, info)` of the triangular factor. If a
/// pivot is 0, `info` is its row (from 1), and the right-hand sides are returned as elimination left them.
pub(super) fn gtsv(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let Some(a) = operands.first() else { return Err(Error::invalid_argument("it takes four operands")) };
    for_field!(a, gtsv_in(call, &operands))
}

fn gtsv_in<T: Field>(call: &CustomCallContext<'_>, operands: &[Literal]) -> Result<Literal> {
    let mut parts: [Vec<Scalar>; 3] = Default::default();
    let (mut solutions, mut info) = (Vec::new(), Vec::new());
    for system in systems::<T>(operands)? {
        let below = system.below.clone();
        let mut solved = eliminate(system);
        let failed = solved.diagonal.iter().position(|pivot| pivot.modulus() == 0.0);
        if failed.is_none() {
            solved.substitute(|pivot, _| pivot);
        }
        let n = below.len();
        // The second upper diagonal overwrites the lower one, except for its first and last elements.
        let kept = |i: usize| if i == 0 || i + 1 == n { below[i] } else { solved.second_above[i - 1] };
        parts[0].extend((0..n).map(|i| kept(i).to_element()));
        parts[1].extend(solved.diagonal.iter().map(|x| x.to_element()));
        parts[2].extend(solved.above.iter().map(|x| x.to_element()));
        info.push(Scalar::Signed(failed.map_or(0, |row| row as i64 + 1)));
        solutions.push(solved.right);
    }
    let [second, diagonal, above] = parts;
    let parts = [second, diagonal, above, elements(&solutions), info];
    let arrays = parts.iter().enumerate().map(|(number, part)| array(call, number, part));
    Ok(Literal::tuple(arrays.collect::<Result<_>>()?))
}

/// JAX's `tridiagonal_solve_perturbed`: the solution of a system that may be singular. If division by a pivot would
/// overflow, the pivot is moved away from 0 by the precision of the greatest element of the triangular factor. The
/// change is doubled until division does not overflow.
pub(super) fn solve_perturbed(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let Some(a) = operands.first() else { return Err(Error::invalid_argument("it takes four operands")) };
    let (epsilon, least) = match a.shape().element_type() {
        Some(ElementType::F32 | ElementType::C64) => (f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE)),
        _ => (f64::EPSILON, f64::MIN_POSITIVE),
    };
    for_field!(a, perturbed_in(call, &operands, epsilon, least))
}

fn perturbed_in<T: Field>(
    call: &CustomCallContext<'_>,
    operands: &[Literal],
    epsilon: f64,
    least: f64,
) -> Result<Literal> {
    let mut solutions = Vec::new();
    for system in systems::<T>(operands)? {
        let mut solved = eliminate(system);
        let n = solved.diagonal.len();
        let (above, second) = (&solved.above[..n.saturating_sub(1)], &solved.second_above[..n.saturating_sub(2)]);
        let factor = solved.diagonal.iter().chain(above).chain(second);
        let greatest = factor.map(|x| x.modulus()).fold(0.0, f64::max);
        let tolerance = (epsilon * greatest).max(least);
        solved.substitute(|pivot, value| perturbed(pivot, value, tolerance, least));
        solutions.push(solved.right);
    }
    array(call, 0, &elements(&solutions))
}

/// Perturbs a pivot until `value` can be divided by it without overflow.
fn perturbed<T: Field>(mut pivot: T, value: T, tolerance: f64, least: f64) -> T {
    let direction = match pivot.modulus() {
        0.0 => T::from_real(1.0_f64.copysign(pivot.real())),
        size => pivot.divided_by(T::from_real(size)),
    };
    let overflows = |pivot: T| {
        let size = pivot.modulus();
        size == 0.0 || (size < 1.0 && value.modulus() * least > size)
    };
    let mut change = direction.times(T::from_real(tolerance));
    while overflows(pivot) && change.modulus().is_finite() {
        pivot = pivot.plus(change);
        change = change.plus(change);
    }
    pivot
}
