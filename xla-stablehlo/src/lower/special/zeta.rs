//! Hurwitz' zeta function, and the derivatives of the gamma function's logarithm that it gives.

use xla_hlo::ops::BinaryOp;

use super::formula::Term;
use super::gamma::{digamma, log_gamma};

/// Terms that are summed one by one.
const TERMS: u32 = 9;

/// Bernoulli's numbers over factorials, `B(2j) / (2j)!` from `j = 1`.
const BERNOULLI: [f64; 9] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30240.0,
    -1.0 / 1209600.0,
    1.0 / 47900160.0,
    -691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
    -3617.0 / 10670622842880000.0,
    43867.0 / 5109094217170944000.0,
];

/// The sum of `(q + k)^-x` over all `k` from zero: the first terms, and the rest by the formula of Euler and Maclaurin.
///
/// NaN where `x < 1`, infinite at 1. For `q` to zero: infinite at integers for even `x`, NaN for other `x` and,
/// elsewhere, for `x` that are no integers; below -8 the rest is not exact.
pub(super) fn zeta<'t>(x: Term<'t>, q: Term<'t>) -> Term<'t> {
    let power = |base: Term<'t>| base.binary(BinaryOp::Power, -x);
    let first = (1..TERMS).fold(power(q), |sum, k| sum + power(q + f64::from(k)));
    let a = q + f64::from(TERMS);
    let last = power(a);
    let integral = last * a / (x - 1.0);
    // Each term has two factors more than the one before it.
    let mut factors = x / a;
    let mut rest = factors * BERNOULLI[0];
    for (j, bernoulli) in (1..).zip(&BERNOULLI[1..]) {
        let odd = f64::from(2 * j - 1);
        factors = factors * (x + odd) / a * (x + (odd + 1.0)) / a;
        rest = rest + factors * *bernoulli;
    }
    // The factors overflow where nothing is left of the power.
    let rest = last.equals(0.0).select(0.0, integral + last * (rest + 0.5));
    let sum = first + rest;

    let is_even = (x * 0.5).floor().equals(x * 0.5);
    let is_low = q.is_at_most(0.0);
    let at_integer = is_even.select(f64::INFINITY, x.constant(f64::NAN));
    let is_integer = q.equals(q.floor());
    let is_undefined = is_low.and(is_integer.not()).and(x.differs(x.floor()));
    let sum = is_low.and(is_integer).select(at_integer, sum);
    let sum = is_undefined.or(x.is_less(1.0)).select(f64::NAN, sum);
    x.equals(1.0).select(f64::INFINITY, sum)
}

/// Derivative `n + 1` of the logarithm of the gamma function, NaN for an `n` that is negative or no integer.
pub(super) fn polygamma<'t>(n: Term<'t>, x: Term<'t>) -> Term<'t> {
    let order = n + 1.0;
    let is_odd_order = (order * 0.5).floor().differs(order * 0.5);
    let value = log_gamma(order).exp() * zeta(order, x);
    // `(-1)^(n + 1)`.
    let signed = is_odd_order.select(-value, value);
    let is_undefined = n.is_less(0.0).or(n.differs(n.floor()));
    is_undefined.select(f64::NAN, n.equals(0.0).select(digamma(x), signed))
}
