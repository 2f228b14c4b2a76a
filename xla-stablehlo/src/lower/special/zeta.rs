//! The Hurwitz zeta function, and the polygamma functions, which it yields.

use xla_hlo::ops::BinaryOp;

use super::formula::Term;
use super::gamma::{digamma, log_gamma};

/// Number of terms that are summed directly.
const TERMS: u32 = 9;

/// Bernoulli numbers over factorials, `B(2j) / (2j)!` from `j = 1`.
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

/// Hurwitz zeta function: the sum of `(q + k)^-x` over all `k >= 0`. The first terms are summed directly, and the
/// remainder uses the Euler-Maclaurin formula.
///
/// NaN for `x < 1`, infinite at `x = 1`. For an integer `q <= 0`, infinite if `x` is even and NaN otherwise. For other
/// `q <= 0`, NaN if `x` is not an integer. Below `q = -8`, the remainder is inexact.
pub(super) fn zeta<'t>(x: Term<'t>, q: Term<'t>) -> Term<'t> {
    let power = |base: Term<'t>| base.binary(BinaryOp::Power, -x);
    let first = (1..TERMS).fold(power(q), |sum, k| sum + power(q + f64::from(k)));
    let a = q + f64::from(TERMS);
    let last = power(a);
    let integral = last * a / (x - 1.0);
    // Each term has two more factors than the previous one.
    let mut factors = x / a;
    let mut rest = factors * BERNOULLI[0];
    for (j, bernoulli) in (1..).zip(&BERNOULLI[1..]) {
        let odd = f64::from(2 * j - 1);
        factors = factors * (x + odd) / a * (x + (odd + 1.0)) / a;
        rest = rest + factors * *bernoulli;
    }
    // The factors may overflow when the power underflows to zero.
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

/// Derivative `n + 1` of the logarithm of the gamma function; NaN unless `n` is a non-negative integer.
pub(super) fn polygamma<'t>(n: Term<'t>, x: Term<'t>) -> Term<'t> {
    let order = n + 1.0;
    let is_odd_order = (order * 0.5).floor().differs(order * 0.5);
    let value = log_gamma(order).exp() * zeta(order, x);
    // `(-1)^(n + 1)`.
    let signed = is_odd_order.select(-value, value);
    let is_undefined = n.is_less(0.0).or(n.differs(n.floor()));
    is_undefined.select(f64::NAN, n.equals(0.0).select(digamma(x), signed))
}
