//! Hyperbolic functions of complex numbers and their inverses. Trigonometric functions are derived from them by
//! multiplication by i.

use std::f64::consts::{FRAC_PI_2, LN_2};

use super::complex::Complex;

/// Above this magnitude 1 + z rounds to z.
const GREAT: f64 = 1e18;

impl Complex {
    /// Returns sinh z = sinh re cos im + i cosh re sin im.
    pub(super) fn sinh(self) -> Complex {
        let Complex { re, im } = self;
        if im == 0.0 {
            return Complex::new(libm::sinh(re), im);
        }
        if !im.is_finite() {
            let real = if re == 0.0 || re.is_infinite() { re } else { f64::NAN };
            return Complex::new(real, f64::NAN);
        }
        if re.abs() < 700.0 {
            return Complex::new(libm::sinh(re) * libm::cos(im), libm::cosh(re) * libm::sin(im));
        }
        // Here sinh and cosh are e^|re| / 2, which may overflow although the product does not.
        let e = Complex::new(re.abs() - LN_2, im).exp();
        Complex::new(e.re * 1f64.copysign(re), e.im)
    }

    /// Returns cosh z = cosh re cos im + i sinh re sin im.
    pub(super) fn cosh(self) -> Complex {
        let Complex { re, im } = self;
        if im == 0.0 {
            return Complex::new(libm::cosh(re), im * 1f64.copysign(re));
        }
        if !im.is_finite() {
            let real = if re.is_infinite() { f64::INFINITY } else { f64::NAN };
            return Complex::new(real, if re == 0.0 { 0.0 } else { f64::NAN });
        }
        if re.abs() < 700.0 {
            return Complex::new(libm::cosh(re) * libm::cos(im), libm::sinh(re) * libm::sin(im));
        }
        let e = Complex::new(re.abs() - LN_2, im).exp();
        Complex::new(e.re, e.im * 1f64.copysign(re))
    }

    /// Returns tanh z by Kahan's formula: with t = tan im, s = sinh re, c = cosh re, b = 1 + t^2, it is (b c s + i t) /
    /// (1 + b s^2).
    pub(super) fn tanh(self) -> Complex {
        let Complex { re, im } = self;
        if im == 0.0 {
            return Complex::new(libm::tanh(re), im);
        }
        if re == 0.0 {
            return Complex::new(re, libm::tan(im));
        }
        if !im.is_finite() {
            let (real, imaginary) = if re.is_infinite() { (1f64.copysign(re), 0.0) } else { (f64::NAN, f64::NAN) };
            return Complex::new(real, imaginary);
        }
        if re.abs() > 22.0 {
            let imaginary = 4.0 * libm::sin(im) * libm::cos(im) * libm::exp(-2.0 * re.abs());
            return Complex::new(1f64.copysign(re), imaginary);
        }
        let (t, s, c) = (libm::tan(im), libm::sinh(re), libm::cosh(re));
        let b = 1.0 + t * t;
        let denominator = 1.0 + b * s * s;
        Complex::new(b * c * s / denominator, t / denominator)
    }

    /// Returns log |2 z|, for large and infinite z.
    fn log_of_twice(self) -> f64 {
        self.log().re + LN_2
    }

    fn is_great(self) -> bool {
        self.re.abs().max(self.im.abs()) > GREAT
    }

    /// Returns acos z by Kahan's formula; for large z the angle and log |2 z|.
    pub(super) fn acos(self) -> Complex {
        let Complex { re, im } = self;
        if self.is_nan() {
            return match (re, im) {
                (0.0, _) => Complex::new(FRAC_PI_2, im),
                _ if self.is_infinite() => Complex::new(f64::NAN, -f64::INFINITY.copysign(im)),
                _ => Complex::new(f64::NAN, f64::NAN),
            };
        }
        if self.is_great() {
            return Complex::new(libm::atan2(im.abs(), re), -self.log_of_twice().copysign(im));
        }
        let minus = Complex::new(1.0 - re, -im).sqrt();
        let plus = Complex::new(1.0 + re, im).sqrt();
        Complex::new(2.0 * libm::atan2(minus.re, plus.re), libm::asinh(plus.conj().mul(minus).im))
    }

    /// Returns acosh z: i acos z with the sign that puts it into the right half-plane.
    pub(super) fn acosh(self) -> Complex {
        let w = self.acos();
        Complex::new(w.im.abs(), w.re.copysign(self.im))
    }

    /// Returns asinh z by Kahan's formula for asin, multiplied by i; for large z log |2 z| and the angle.
    pub(super) fn asinh(self) -> Complex {
        let Complex { re, im } = self;
        if self.is_nan() {
            let real = if self.is_infinite() { f64::INFINITY.copysign(re) } else { f64::NAN };
            return Complex::new(real, if im == 0.0 { im } else { f64::NAN });
        }
        if self.is_great() {
            return Complex::new(self.log_of_twice().copysign(re), libm::atan2(im, re.abs()));
        }
        let plus = Complex::new(1.0 + im, -re).sqrt();
        let minus = Complex::new(1.0 - im, re).sqrt();
        Complex::new(libm::asinh(plus.conj().mul(minus).im), libm::atan2(im, plus.mul(minus).re))
    }

    /// Returns atanh z. With x = |re|, the real part is log1p(4 x / ((1 - x)^2 + y^2)) / 4, and the imaginary part is
    /// half the angle of (1 - x^2 - y^2, 2 y). For large z these are the real part of 1/z and pi/2.
    pub(super) fn atanh(self) -> Complex {
        let (x, y) = (self.re.abs(), self.im);
        let turned = |real: f64, imaginary: f64| Complex::new(real.copysign(self.re), imaginary);
        if self.is_nan() {
            return match (x, y) {
                (0.0, _) => turned(0.0, y),
                _ if x.is_infinite() => turned(0.0, f64::NAN),
                _ if y.is_infinite() => turned(0.0, FRAC_PI_2.copysign(y)),
                _ => Complex::new(f64::NAN, f64::NAN),
            };
        }
        if self.is_great() {
            let inverse = if self.is_infinite() { 0.0 } else { Complex::new(1.0, 0.0).div(self).re };
            return turned(inverse.abs(), FRAC_PI_2.copysign(y));
        }
        if x == 1.0 {
            // The square of y alone may underflow.
            let real = if y == 0.0 { f64::INFINITY } else { 0.5 * libm::log(libm::hypot(2.0, y) / y.abs()) };
            return turned(real, if y == 0.0 { y } else { 0.5 * libm::atan2(2.0 * y, -y * y) });
        }
        let real = 0.25 * libm::log1p(4.0 * x / ((1.0 - x) * (1.0 - x) + y * y));
        turned(real, 0.5 * libm::atan2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y))
    }
}
