//! Hyperbolic functions of complex numbers and their inverses. Circular functions are reduced to them by rotation by i.
//! After W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign bit" (1987).

use std::f64::consts::{FRAC_PI_2, LN_2};

use super::complex::Complex;
use super::{asinh, atan2, by_precision, cosh, exp, log1p, sin_cos, sinh, tan};
use crate::lanes::Lanes;

impl<'e, 'ctx> Complex<'e, 'ctx> {
    /// Returns `sinh z = sinh(re) cos(im) + i cosh(re) sin(im)`.
    pub fn sinh(self) -> Self {
        let Complex { re, im } = self;
        let (sine, cosine) = sin_cos(im);
        let usual = Complex::new(sinh(re) * cosine, cosh(re) * sine);
        let result = self.beyond_range(usual, Complex::new(cosine.times_sign_of(re), sine));
        // The sine and cosine of an infinity are NaN; a zero imaginary part stays zero.
        let endless = !im.fabs().lt(f64::INFINITY);
        let keeps = endless & (re.eq(0.0) | re.fabs().eq(f64::INFINITY));
        Complex::new(keeps.select(re, result.re), im.eq(0.0).select(im, result.im)).with_real(im.eq(0.0), sinh(re))
    }

    /// Returns `cosh z = cosh(re) cos(im) + i sinh(re) sin(im)`.
    pub fn cosh(self) -> Self {
        let Complex { re, im } = self;
        let (sine, cosine) = sin_cos(im);
        let usual = Complex::new(cosh(re) * cosine, sinh(re) * sine);
        let result = self.beyond_range(usual, Complex::new(cosine, sine.times_sign_of(re)));
        let endless = !im.fabs().lt(f64::INFINITY);
        let real = (endless & re.fabs().eq(f64::INFINITY)).select(re.fabs(), result.re);
        let imaginary = (endless & re.eq(0.0)).select(re.constant(0.0), result.im);
        let zero = im.eq(0.0);
        Complex::new(zero.select(cosh(re), real), zero.select(im.times_sign_of(re), imaginary))
    }

    /// Returns the product of `direction` and `e^|re| / 2`, which is sinh and cosh of a large real part. The factor may
    /// overflow although the product does not, so it is applied in two halves.
    fn beyond_range(self, usual: Self, direction: Self) -> Self {
        let size = self.re.fabs();
        usual.rarely(size.gt(by_precision(size, 87.0, 700.0)), || {
            let half = exp(size * 0.5);
            direction.scale(half * 0.5).scale(half)
        })
    }

    fn with_real(self, mask: Lanes<'e, 'ctx>, real: Lanes<'e, 'ctx>) -> Self {
        Complex::new(mask.select(real, self.re), self.im)
    }

    /// Returns `tanh z`.
    ///
    /// With `t = tan im`, `s = sinh re`, `c = cosh re`, `b = 1 + t^2`, it is `(b c s + i t) / (1 + b s^2)`; for large
    /// `|re|`, `1 + 4 i sin(im) cos(im) e^(-2 |re|)`.
    pub fn tanh(self) -> Self {
        let Complex { re, im } = self;
        let (t, s, c) = (tan(im), sinh(re), cosh(re));
        let b = t.fma(t, 1.0);
        let denominator = (b * s).fma(s, 1.0);
        let near = Complex::new(b * c * s / denominator, t / denominator);
        let size = re.fabs();
        let far = size.gt(by_precision(re, 10.0, 22.0));
        let one = re.constant(1.0).copysign(re);
        let result = near.rarely(far, || {
            let (sine, cosine) = sin_cos(im);
            let tail = sine * cosine * 4.0 * exp(size * -2.0);
            // For an infinite real part, the imaginary part of the result vanishes in any case.
            Complex::new(one, size.eq(f64::INFINITY).select(re.constant(0.0).copysign(tail), tail))
        });
        let (endless, infinite) = (!im.fabs().lt(f64::INFINITY), size.eq(f64::INFINITY));
        let imaginary = (endless & infinite).select(re.constant(0.0), result.im);
        let real = (endless & !infinite).select(re.constant(f64::NAN), result.re);
        let zero = im.eq(0.0);
        Complex::new(re.eq(0.0).select(re, real), zero.select(im, imaginary)).with_real(zero, super::tanh(re))
    }

    /// Returns `sin z`.
    pub fn sin(self) -> Self {
        self.times_i().sinh().over_i()
    }

    /// Returns `cos z`.
    pub fn cos(self) -> Self {
        self.times_i().cosh()
    }

    /// Returns `tan z`.
    pub fn tan(self) -> Self {
        self.times_i().tanh().over_i()
    }

    /// Returns `log |2 z|`, for large and infinite numbers.
    fn log_of_twice(self) -> Lanes<'e, 'ctx> {
        self.log().re + LN_2
    }

    /// Whether `1 + z` rounds to `z`.
    fn is_great(self) -> Lanes<'e, 'ctx> {
        let great = by_precision(self.re, 1e9, 1e18);
        self.re.fabs().gt(great) | self.im.fabs().gt(great)
    }

    /// Returns `acos z`; far from the origin, it consists of the angle and `log |2 z|`.
    pub fn acos(self) -> Self {
        let Complex { re, im } = self;
        let (height, back) = lifted(im, re);
        let minus = Complex::new(-re + 1.0, -height).sqrt();
        let plus = Complex::new(re + 1.0, height).sqrt();
        let near = Complex::new(atan2(minus.re, plus.re) * 2.0, asinh(plus.conj().times(minus).im) * back);
        near.rarely(self.is_great() | self.is_nan(), || {
            let far = Complex::new(atan2(im.fabs(), re), -self.log_of_twice().copysign(im));
            let nan = re.constant(f64::NAN);
            let height = self.is_infinite().select(-re.constant(f64::INFINITY).copysign(im), nan);
            let odd = Complex::new(nan, height);
            let odd = Complex::new(re.constant(FRAC_PI_2), im).or_else(re.eq(0.0), odd);
            odd.or_else(self.is_nan(), far)
        })
    }

    /// Returns `acosh z`: `acos z` rotated into the right half plane.
    pub fn acosh(self) -> Self {
        let w = self.acos();
        Complex::new(w.im.fabs(), w.re.copysign(self.im))
    }

    /// Returns `asinh z`; far from the origin, it consists of `log |2 z|` and the angle.
    pub fn asinh(self) -> Self {
        let Complex { re, im } = self;
        let (width, back) = lifted(re, im);
        let plus = Complex::new(im + 1.0, -width).sqrt();
        let minus = Complex::new(-im + 1.0, width).sqrt();
        let near = Complex::new(asinh(plus.conj().times(minus).im) * back, atan2(im, plus.times(minus).re));
        near.rarely(self.is_great() | self.is_nan(), || {
            let far = Complex::new(self.log_of_twice().copysign(re), atan2(im, re.fabs()));
            let nan = re.constant(f64::NAN);
            let real = self.is_infinite().select(re.constant(f64::INFINITY).copysign(re), nan);
            Complex::new(real, im.eq(0.0).select(im, nan)).or_else(self.is_nan(), far)
        })
    }

    /// Returns `asin z`.
    pub fn asin(self) -> Self {
        self.times_i().asinh().over_i()
    }

    /// Returns `atanh z`: `log1p(4 x / ((1 - x)^2 + y^2)) / 4` for `x = |re|`, and half the angle of `(1 - x^2 - y^2, 2
    /// y)`; far from the origin, `1 / z` and a right angle.
    pub fn atanh(self) -> Self {
        let (x, y) = (self.re.fabs(), self.im);
        let below = -x + 1.0;
        let square = y * y;
        let real = log1p(x * 4.0 / below.fma(below, square)) * 0.25;
        let usual = Complex::new(real, atan2(y + y, below * (x + 1.0) - square) * 0.5);
        let rare = x.eq(1.0) | self.is_great() | self.is_nan();
        let result = usual.rarely(rare, || {
            let (zero, quarter) = (x.constant(0.0), x.constant(FRAC_PI_2).copysign(y));
            // The square of y by itself may underflow.
            let hypotenuse = Complex::new(x.constant(2.0), y).abs();
            let at_one = super::log(hypotenuse / y.fabs()) * 0.5;
            let flat = y.eq(0.0);
            let at_one = flat.select(x.constant(f64::INFINITY), at_one);
            let one = Complex::new(at_one, flat.select(y, atan2(y + y, -square) * 0.5));
            let inverse = self.constant(1.0).divided_by(self).re.fabs();
            let far = Complex::new(self.is_infinite().select(zero, inverse), quarter);
            let nan = x.constant(f64::NAN);
            let odd = Complex::new(nan, nan);
            let odd = Complex::new(zero, quarter).or_else(y.fabs().eq(f64::INFINITY), odd);
            let odd = Complex::new(zero, nan).or_else(x.eq(f64::INFINITY), odd);
            let odd = Complex::new(zero, y).or_else(x.eq(0.0), odd);
            odd.or_else(self.is_nan(), far.or_else(self.is_great(), one))
        });
        Complex::new(result.re.copysign(self.re), result.im)
    }

    /// Returns `atan z`.
    pub fn atan(self) -> Self {
        self.times_i().atanh().over_i()
    }
}

/// Scales `part` by a power of two if half of it may be subnormal and `other` is less than one. Returns the scaled part
/// and the inverse of the power. Functions that are linear in such a part take the scaled part and multiply the result
/// by the inverse.
fn lifted<'e, 'ctx>(part: Lanes<'e, 'ctx>, other: Lanes<'e, 'ctx>) -> (Lanes<'e, 'ctx>, Lanes<'e, 'ctx>) {
    let (tiny, power) = by_precision(part, (1e-30, 2f64.powi(24)), (1e-290, 2f64.powi(60)));
    let small = part.fabs().lt(tiny) & other.fabs().lt(1.0);
    let factor = |value| small.select(part.constant(value), 1.0);
    (part * factor(power), factor(1.0 / power))
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Negates this value where `sign` is negative.
    fn times_sign_of(self, sign: Self) -> Self {
        let top = 1_i64 << (self.scalar().bits() - 1);
        (self.bits() ^ (sign.bits() & top)).as_float()
    }
}
