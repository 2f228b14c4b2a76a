//! Double-double arithmetic, for functions whose usual formulas have errors above one ulp in `f64`.
//!
//! The arithmetic uses Dekker's and Knuth's error-free transformations. The functions are Taylor series after argument
//! reduction, and Newton steps for the inverses. They are slow, but short enough to be checked by eye.

/// The sum `hi + lo`, where `lo` is at most half an ulp of `hi`.
#[derive(Clone, Copy)]
struct Dd {
    hi: f64,
    lo: f64,
}

const LN_2: Dd = Dd { hi: std::f64::consts::LN_2, lo: 2.319_046_813_846_299_6e-17 };

impl From<f64> for Dd {
    fn from(hi: f64) -> Dd {
        Dd { hi, lo: 0.0 }
    }
}

impl Dd {
    /// Returns the exact sum of two numbers.
    fn two_sum(a: f64, b: f64) -> Dd {
        let hi = a + b;
        let b_part = hi - a;
        Dd { hi, lo: (a - (hi - b_part)) + (b - b_part) }
    }

    /// Returns the exact product of two numbers, unless it underflows.
    fn two_product(a: f64, b: f64) -> Dd {
        let hi = a * b;
        Dd { hi, lo: libm::fma(a, b, -hi) }
    }

    fn add(self, other: impl Into<Dd>) -> Dd {
        let other = other.into();
        let s = Dd::two_sum(self.hi, other.hi);
        let t = Dd::two_sum(self.lo, other.lo);
        let s = Dd::two_sum(s.hi, s.lo + t.hi);
        Dd::two_sum(s.hi, s.lo + t.lo)
    }

    fn neg(self) -> Dd {
        Dd { hi: -self.hi, lo: -self.lo }
    }

    fn sub(self, other: impl Into<Dd>) -> Dd {
        self.add(other.into().neg())
    }

    fn mul(self, other: impl Into<Dd>) -> Dd {
        let other = other.into();
        let p = Dd::two_product(self.hi, other.hi);
        Dd::two_sum(p.hi, p.lo + self.hi * other.lo + self.lo * other.hi)
    }

    fn div(self, other: impl Into<Dd>) -> Dd {
        let other = other.into();
        let first = self.hi / other.hi;
        let second = self.sub(other.mul(first)).hi / other.hi;
        let third = self.sub(other.mul(first)).sub(other.mul(second)).hi / other.hi;
        Dd::two_sum(first, second).add(third)
    }

    fn div_small(self, n: u32) -> Dd {
        let n = f64::from(n);
        let first = self.hi / n;
        Dd::two_sum(first, (libm::fma(-first, n, self.hi) + self.lo) / n)
    }

    fn sqrt(self) -> Dd {
        if self.hi == 0.0 {
            return self;
        }
        let root = libm::sqrt(self.hi);
        Dd::from(root).add(self.sub(Dd::two_product(root, root)).div(2.0 * root))
    }

    /// Multiplies by 2^e, without underflow or overflow.
    fn scale(self, e: i32) -> Dd {
        let factor = libm::scalbn(1.0, e);
        Dd { hi: self.hi * factor, lo: self.lo * factor }
    }

    fn value(self) -> f64 {
        self.hi + self.lo
    }

    /// Returns the number times 2^e, which may underflow or overflow.
    fn scaled_value(self, e: i32) -> f64 {
        libm::scalbn(self.value(), e)
    }
}

/// Returns e^r - 1 for |r| < 0.35 by its Taylor series: r (1 + r/2 (1 + r/3 (1 + ...))).
///
/// Accurate to at least 2^-75: terms from the tenth on are below 2^-35, so that `f64` precision suffices for them.
fn expm1_series(r: Dd) -> Dd {
    let tail = (10..=20).rev().fold(1.0, |sum, n| sum * r.hi / f64::from(n) + 1.0);
    let sum = (2..10).rev().fold(Dd::from(tail), |sum, n| sum.mul(r).div_small(n).add(1.0));
    r.mul(sum)
}

/// Returns `(part, k)` with e^x = (1 + part) 2^k and a small part.
fn exp_reduced(x: f64) -> (Dd, i32) {
    let k = libm::rint(x / LN_2.hi);
    (expm1_series(Dd::from(x).sub(LN_2.mul(k))), k as i32)
}

/// Returns e^x - 1 for |x| < 100.
fn expm1_wide(x: f64) -> Dd {
    let (part, k) = exp_reduced(x);
    if k == 0 { part } else { part.add(1.0).scale(k).sub(1.0) }
}

/// Returns log(1 + u) for u from -1/2 to 2^60: one Newton step doubles the accurate bits of the rounded value.
fn log1p_wide(u: Dd) -> Dd {
    let guess = libm::log1p(u.hi);
    let em1 = expm1_wide(guess);
    Dd::from(guess).add(u.sub(em1).div(em1.add(1.0)))
}

/// Returns log x for positive x.
fn log_wide(x: f64) -> Dd {
    let (mut fraction, mut exponent) = libm::frexp(x);
    // The fraction is from 0.7 to 1.4, so that the summands do not cancel for x near 1.
    if fraction < std::f64::consts::FRAC_1_SQRT_2 {
        (fraction, exponent) = (2.0 * fraction, exponent - 1);
    }
    log1p_wide(Dd::from(fraction - 1.0)).add(LN_2.mul(f64::from(exponent)))
}

/// Returns sin t and cos t for |t| <= 3.2 by their Taylor series: 1 - t^2/(1 2) (1 - t^2/(3 4) (1 - ...)) for the
/// cosine.
///
/// Accurate to at least 2^-75: terms from the twelfth on are below 2^-32, so that `f64` precision suffices for them.
fn sin_cos(t: f64) -> (Dd, Dd) {
    let square = Dd::two_product(t, t);
    let series = |first: u32| {
        let divisor = |i: u32| (first + 2 * i) * (first + 2 * i + 1);
        let tail = (11..22).rev().fold(1.0, |sum, i| 1.0 - sum * square.hi / f64::from(divisor(i)));
        (0..11).rev().fold(Dd::from(tail), |sum, i| Dd::from(1.0).sub(sum.mul(square).div_small(divisor(i))))
    };
    (series(2).mul(t), series(1))
}

/// Above this magnitude x^2 + 1 rounds to x^2 in double-double arithmetic.
const GREAT: f64 = 1e16;

/// Below this magnitude the sine, the logarithm and so on equal their argument, and its square would underflow.
const TINY: f64 = 1e-150;

/// Returns e^x.
pub(super) fn exp(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 800.0 {
        return libm::exp(x);
    }
    let (part, k) = exp_reduced(x);
    part.add(1.0).scaled_value(k)
}

/// Returns e^x - 1.
pub(super) fn expm1(x: f64) -> f64 {
    if x.is_nan() || x.abs() < TINY || x.abs() > 80.0 {
        return if x > 80.0 { exp(x) } else { libm::expm1(x) };
    }
    expm1_wide(x).value()
}

/// Returns the natural logarithm.
pub(super) fn log(x: f64) -> f64 {
    if x > 0.0 && x.is_finite() { log_wide(x).value() } else { libm::log(x) }
}

/// Returns log(1 + x).
pub(super) fn log1p(x: f64) -> f64 {
    if x.is_nan() || x.abs() < TINY || x <= -1.0 || x == f64::INFINITY {
        return libm::log1p(x);
    }
    if x.abs() < 0.5 {
        return log1p_wide(x.into()).value();
    }
    // The rounding error of 1 + x is a relative change of the sum.
    let sum = Dd::two_sum(1.0, x);
    log_wide(sum.hi).add(sum.lo / sum.hi).value()
}

/// Returns the hyperbolic sine.
pub(super) fn sinh(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() || x.abs() < TINY {
        return x;
    }
    let result = if x.abs() > 50.0 {
        let (part, k) = exp_reduced(x.abs().min(1000.0));
        part.add(1.0).scaled_value(k - 1)
    } else {
        let em1 = expm1_wide(x.abs());
        em1.add(em1.div(em1.add(1.0))).value() * 0.5
    };
    result.copysign(x)
}

/// Returns the hyperbolic cosine.
pub(super) fn cosh(x: f64) -> f64 {
    if !x.is_finite() {
        return x.abs();
    }
    let (part, k) = exp_reduced(x.abs().min(1000.0));
    let e = part.add(1.0);
    if k > 60 { e.scaled_value(k - 1) } else { e.scale(k).add(Dd::from(1.0).div(e.scale(k))).value() * 0.5 }
}

/// Returns the hyperbolic tangent.
pub(super) fn tanh(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() || x.abs() < TINY {
        return x;
    }
    let em1 = expm1_wide(2.0 * x.abs().min(30.0));
    em1.div(em1.add(2.0)).value().copysign(x)
}

/// Returns 1 / (1 + e^-x).
pub(super) fn logistic(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    // e^-|x| does not overflow.
    let (part, k) = exp_reduced(-x.abs().min(800.0));
    let e = part.add(1.0);
    if k < -200 {
        return if x > 0.0 { 1.0 } else { e.scaled_value(k) };
    }
    let e = e.scale(k);
    let numerator = if x > 0.0 { Dd::from(1.0) } else { e };
    numerator.div(e.add(1.0)).value()
}

/// Returns the inverse hyperbolic sine: log1p(a + a^2 / (1 + sqrt(1 + a^2))) for a = |x|.
pub(super) fn asinh(x: f64) -> f64 {
    let a = x.abs();
    if a < TINY || !x.is_finite() {
        return x;
    }
    let result = if a > GREAT {
        log_wide(a).add(LN_2)
    } else {
        let square = Dd::two_product(a, a);
        log1p_wide(square.div(square.add(1.0).sqrt().add(1.0)).add(a))
    };
    result.value().copysign(x)
}

/// Returns the inverse hyperbolic cosine: log1p(t + sqrt(t (t + 2))) for t = x - 1.
pub(super) fn acosh(x: f64) -> f64 {
    if x.is_nan() || x == f64::INFINITY {
        return x;
    }
    if x < 1.0 {
        return f64::NAN;
    }
    if x > GREAT {
        return log_wide(x).add(LN_2).value();
    }
    let t = Dd::two_sum(x, -1.0);
    log1p_wide(t.mul(t.add(2.0)).sqrt().add(t)).value()
}

/// Returns the inverse hyperbolic tangent: log1p(2 a / (1 - a)) / 2 for a = |x|.
pub(super) fn atanh(x: f64) -> f64 {
    let a = x.abs();
    if a < TINY || a.is_nan() {
        return x;
    }
    if a >= 1.0 {
        return if a == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    let u = Dd::from(2.0 * a).div(Dd::two_sum(1.0, -a));
    (0.5 * log1p_wide(u).value()).copysign(x)
}

/// Returns the angle of (x, y): one Newton step from the rounded angle.
pub(super) fn atan2(y: f64, x: f64) -> f64 {
    let guess = libm::atan2(y, x);
    let exponent = libm::frexp(x.abs().max(y.abs())).1;
    let (x, y) = (libm::scalbn(x, -exponent), libm::scalbn(y, -exponent));
    // Special values are already exact, and so are angles that equal a quotient far below 1.
    let plain = x.is_finite() && y.is_finite() && x.abs() > 1e-150 && y.abs() > 1e-150;
    if !plain {
        return guess;
    }
    let (sin, cos) = sin_cos(guess);
    let across = cos.mul(y).sub(sin.mul(x));
    let along = cos.mul(x).add(sin.mul(y));
    Dd::from(guess).add(across.div(along)).value()
}

/// Returns 1 / sqrt(x).
pub(super) fn rsqrt(x: f64) -> f64 {
    if x <= 0.0 || !x.is_finite() {
        return 1.0 / libm::sqrt(x);
    }
    // The scaling x = fraction 4^half keeps the square of the root in range.
    let half = libm::frexp(x).1 / 2;
    let root = Dd::from(libm::scalbn(x, -2 * half)).sqrt();
    Dd::from(1.0).div(root).scaled_value(-half)
}

/// Returns log(x^2 + y^2) / 2 if that is near 0 and the squares neither underflow nor overflow. Here x^2 + y^2 - 1 is
/// computed without cancellation error.
pub(super) fn log_hypot_near_one(x: f64, y: f64) -> f64 {
    let less_one = Dd::two_product(x, x).sub(1.0).add(Dd::two_product(y, y));
    0.5 * libm::log1p(less_one.value())
}

/// Returns log((1 + x)^2 + y^2) / 2 if that is near 0. Here x (2 + x) + y^2 is computed without cancellation error.
pub(super) fn log_hypot_of_one_plus(x: f64, y: f64) -> f64 {
    let less_one = Dd::two_sum(2.0, x).mul(x).add(Dd::two_product(y, y));
    0.5 * libm::log1p(less_one.value())
}
