//! Number fields of linear algebra: real and complex numbers in double precision.

use crate::Scalar;

/// A real or complex number.
pub(in crate::ops) trait Field: Copy {
    const ZERO: Self;
    const NAN: Self;

    fn from_element(element: Scalar) -> Self;

    fn to_element(self) -> Scalar;

    fn from_real(x: f64) -> Self;

    fn real(self) -> f64;

    fn conjugate(self) -> Self;

    /// Returns the magnitude, without overflow.
    fn modulus(self) -> f64;

    fn plus(self, x: Self) -> Self;

    fn minus(self, x: Self) -> Self;

    fn times(self, x: Self) -> Self;

    /// Returns `self - x * y`.
    fn minus_product(self, x: Self, y: Self) -> Self;

    fn divided_by(self, divisor: Self) -> Self;
}

impl Field for f64 {
    const ZERO: f64 = 0.0;
    const NAN: f64 = f64::NAN;

    fn from_element(element: Scalar) -> f64 {
        match element {
            Scalar::Float(x) | Scalar::Complex(x, _) => x,
            Scalar::Pred(_) | Scalar::Signed(_) | Scalar::Unsigned(_) => 0.0,
        }
    }

    fn to_element(self) -> Scalar {
        Scalar::Float(self)
    }

    fn from_real(x: f64) -> f64 {
        x
    }

    fn real(self) -> f64 {
        self
    }

    fn conjugate(self) -> f64 {
        self
    }

    fn modulus(self) -> f64 {
        self.abs()
    }

    fn plus(self, x: f64) -> f64 {
        self + x
    }

    fn minus(self, x: f64) -> f64 {
        self - x
    }

    fn times(self, x: f64) -> f64 {
        self * x
    }

    fn minus_product(self, x: f64, y: f64) -> f64 {
        self - x * y
    }

    fn divided_by(self, divisor: f64) -> f64 {
        self / divisor
    }
}

/// Complex numbers: real and imaginary part.
impl Field for (f64, f64) {
    const ZERO: (f64, f64) = (0.0, 0.0);
    const NAN: (f64, f64) = (f64::NAN, f64::NAN);

    fn from_element(element: Scalar) -> (f64, f64) {
        match element {
            Scalar::Complex(re, im) => (re, im),
            real => (f64::from_element(real), 0.0),
        }
    }

    fn to_element(self) -> Scalar {
        Scalar::Complex(self.0, self.1)
    }

    fn from_real(x: f64) -> (f64, f64) {
        (x, 0.0)
    }

    fn real(self) -> f64 {
        self.0
    }

    fn conjugate(self) -> (f64, f64) {
        (self.0, -self.1)
    }

    fn modulus(self) -> f64 {
        self.0.hypot(self.1)
    }

    fn plus(self, x: (f64, f64)) -> (f64, f64) {
        (self.0 + x.0, self.1 + x.1)
    }

    fn minus(self, x: (f64, f64)) -> (f64, f64) {
        (self.0 - x.0, self.1 - x.1)
    }

    fn times(self, x: (f64, f64)) -> (f64, f64) {
        (self.0 * x.0 - self.1 * x.1, self.0 * x.1 + self.1 * x.0)
    }

    fn minus_product(self, x: (f64, f64), y: (f64, f64)) -> (f64, f64) {
        (self.0 - (x.0 * y.0 - x.1 * y.1), self.1 - (x.0 * y.1 + x.1 * y.0))
    }

    /// Divides with scaling, so that no square of a part of the divisor overflows (R. Smith, 1962).
    fn divided_by(self, divisor: (f64, f64)) -> (f64, f64) {
        let (a, b) = self;
        let (c, d) = divisor;
        if c.abs() >= d.abs() {
            let ratio = if c == 0.0 { 0.0 } else { d / c };
            let length = c + d * ratio;
            ((a + b * ratio) / length, (b - a * ratio) / length)
        } else {
            let ratio = c / d;
            let length = c * ratio + d;
            ((a * ratio + b) / length, (b * ratio - a) / length)
        }
    }
}
