//! Functions of complex numbers, computed on pairs of `f64`. The caller rounds the parts to the element type.
//!
//! Special values follow Annex G of the C standard. Branch cuts and formulas follow W. Kahan, "Branch cuts for complex
//! elementary functions, or much ado about nothing's sign bit" (1987). Multiplication uses the plain formula, as in XLA
//! and numpy: an infinite factor may result in NaN parts. XLA:CPU differs from Annex G for exponentials of an infinite
//! imaginary part (NaN in both parts) and has no inverse trigonometric functions of complex numbers.

use super::{BinaryOp, UnaryOp, double_double};

/// Complex number: real and imaginary part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Complex {
    pub re: f64,
    pub im: f64,
}

/// Function of one complex number, by its result.
#[derive(Clone, Copy)]
pub(super) enum ComplexUnary {
    /// Returns a complex number of the same type.
    Complex(fn(Complex) -> Complex),
    /// Returns a float of the type of the parts.
    Real(fn(Complex) -> f64),
}

/// Returns the complex function of an operation, or `None` if it has none.
pub(super) fn unary(op: UnaryOp) -> Option<ComplexUnary> {
    use UnaryOp::*;
    let function: fn(Complex) -> Complex = match op {
        Abs => return Some(ComplexUnary::Real(Complex::abs)),
        Real => return Some(ComplexUnary::Real(|z| z.re)),
        Imag => return Some(ComplexUnary::Real(|z| z.im)),
        Acos => Complex::acos,
        Acosh => Complex::acosh,
        Asin => |z| z.times_i().asinh().over_i(),
        Asinh => Complex::asinh,
        Atan => |z| z.times_i().atanh().over_i(),
        Atanh => Complex::atanh,
        Cosh => Complex::cosh,
        Cosine => |z| z.times_i().cosh(),
        Exponential => Complex::exp,
        ExponentialMinusOne => Complex::expm1,
        Log => Complex::log,
        LogPlusOne => Complex::log1p,
        Logistic => Complex::logistic,
        Negate => Complex::neg,
        Rsqrt => |z| ONE.div(z.sqrt()),
        Sign => Complex::sign,
        Sine => |z| z.times_i().sinh().over_i(),
        Sinh => Complex::sinh,
        Sqrt => Complex::sqrt,
        Tan => |z| z.times_i().tanh().over_i(),
        Tanh => Complex::tanh,
        Cbrt | Ceil | CountLeadingZeros | Erf | Floor | IsFinite | Not | Popcnt | RoundNearestAfz
        | RoundNearestEven => return None,
    };
    Some(ComplexUnary::Complex(function))
}

/// Returns the complex function of an operation, or `None` if it has none.
pub(super) fn binary(op: BinaryOp) -> Option<fn(Complex, Complex) -> Complex> {
    use BinaryOp::*;
    match op {
        Add => Some(|a, b| a.add(b)),
        Atan2 => Some(|a, b| a.atan2(b)),
        Divide => Some(|a, b| a.div(b)),
        Maximum => Some(maximum),
        Minimum => Some(minimum),
        Multiply => Some(|a, b| a.mul(b)),
        Power => Some(|a, b| a.power(b)),
        Subtract => Some(|a, b| a.add(b.neg())),
        And | Complex | Mulhi | Or | Remainder | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical | Xor => None,
    }
}

/// Returns the later number in lexicographic order, or the first operand with a NaN.
pub(super) fn maximum(a: Complex, b: Complex) -> Complex {
    if a.is_nan() || (!b.is_nan() && (a.re, a.im) >= (b.re, b.im)) { a } else { b }
}

/// Returns the earlier number in lexicographic order, or the first operand with a NaN.
pub(super) fn minimum(a: Complex, b: Complex) -> Complex {
    if a.is_nan() || (!b.is_nan() && (a.re, a.im) <= (b.re, b.im)) { a } else { b }
}

const ONE: Complex = Complex::new(1.0, 0.0);

impl Complex {
    pub(super) const fn new(re: f64, im: f64) -> Complex {
        Complex { re, im }
    }

    pub(super) fn is_nan(self) -> bool {
        self.re.is_nan() || self.im.is_nan()
    }

    fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }

    pub(super) fn is_infinite(self) -> bool {
        self.re.is_infinite() || self.im.is_infinite()
    }

    fn times_i(self) -> Complex {
        Complex::new(-self.im, self.re)
    }

    fn over_i(self) -> Complex {
        Complex::new(self.im, -self.re)
    }

    pub(super) fn conj(self) -> Complex {
        Complex::new(self.re, -self.im)
    }

    fn neg(self) -> Complex {
        Complex::new(-self.re, -self.im)
    }

    fn scale(self, factor: f64) -> Complex {
        Complex::new(self.re * factor, self.im * factor)
    }

    fn add(self, other: Complex) -> Complex {
        Complex::new(self.re + other.re, self.im + other.im)
    }

    pub(super) fn mul(self, other: Complex) -> Complex {
        Complex::new(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
    }

    /// Returns the binary exponent of the greater part; 0 for zero, infinities and NaN.
    fn exponent(self) -> i32 {
        let greatest = self.re.abs().max(self.im.abs());
        if greatest > 0.0 && greatest.is_finite() { libm::frexp(greatest).1 } else { 0 }
    }

    fn scalbn(self, e: i32) -> Complex {
        Complex::new(libm::scalbn(self.re, e), libm::scalbn(self.im, e))
    }

    fn abs(self) -> f64 {
        libm::hypot(self.re, self.im)
    }

    /// Returns the angle.
    fn arg(self) -> f64 {
        libm::atan2(self.im, self.re)
    }

    /// Returns z / |z|; zeros are returned unchanged.
    fn sign(self) -> Complex {
        if self.re == 0.0 && self.im == 0.0 {
            return self;
        }
        let near_one = self.scalbn(-self.exponent());
        near_one.scale_down(near_one.abs())
    }

    fn scale_down(self, divisor: f64) -> Complex {
        Complex::new(self.re / divisor, self.im / divisor)
    }

    /// Returns the quotient, computed with scaling. If both parts are NaN, follows Annex G for infinities and zeros.
    pub(super) fn div(self, other: Complex) -> Complex {
        let exponent = other.exponent();
        let divisor = other.scalbn(-exponent);
        let norm = divisor.re * divisor.re + divisor.im * divisor.im;
        // The divisor is near 1 now; the dividend needs scaling only if it is near overflow.
        let shift = (self.exponent() - 1000).max(0);
        let quotient = self.scalbn(-shift).mul(divisor.conj()).scale_down(norm).scalbn(shift - exponent);
        if !(quotient.re.is_nan() && quotient.im.is_nan()) {
            return quotient;
        }
        if norm == 0.0 && !(self.re.is_nan() && self.im.is_nan()) {
            return self.scale(f64::INFINITY.copysign(other.re));
        }
        if self.is_infinite() && other.is_finite() {
            return self.boxed().mul(other.conj()).scale(f64::INFINITY);
        }
        if other.is_infinite() && self.is_finite() {
            return self.mul(other.boxed().conj()).scale(0.0);
        }
        quotient
    }

    /// Replaces infinite parts by 1 and others by 0, with signs preserved.
    fn boxed(self) -> Complex {
        let part = |x: f64| f64::from(u8::from(x.is_infinite())).copysign(x);
        Complex::new(part(self.re), part(self.im))
    }

    /// Returns e^z. The factor e^re is applied in two halves if it might overflow although the product does not.
    pub(super) fn exp(self) -> Complex {
        let Complex { re, im } = self;
        if im == 0.0 {
            return Complex::new(libm::exp(re), im);
        }
        if !im.is_finite() {
            return match re {
                f64::INFINITY => Complex::new(re, f64::NAN),
                f64::NEG_INFINITY => Complex::new(0.0, 0.0),
                _ => Complex::new(f64::NAN, f64::NAN),
            };
        }
        let half = libm::exp(0.5 * re);
        let direction = Complex::new(libm::cos(im), libm::sin(im));
        if re.abs() < 700.0 { direction.scale(libm::exp(re)) } else { direction.scale(half).scale(half) }
    }

    /// Returns e^z - 1. The real part is expm1(re) cos(im) - 2 sin(im/2)^2. An infinite or NaN imaginary part results
    /// in NaN for every real part, unlike in [`Complex::exp`].
    fn expm1(self) -> Complex {
        let Complex { re, im } = self;
        if im == 0.0 {
            return Complex::new(libm::expm1(re), im);
        }
        if !im.is_finite() {
            return Complex::new(f64::NAN, f64::NAN);
        }
        let e = self.exp();
        if re.abs() > 40.0 || re.is_nan() {
            return Complex::new(e.re - 1.0, e.im);
        }
        let half_sine = libm::sin(0.5 * im);
        Complex::new(libm::expm1(re) * libm::cos(im) - 2.0 * half_sine * half_sine, e.im)
    }

    /// Returns log z: log |z| and the angle.
    pub(super) fn log(self) -> Complex {
        let Complex { re, im } = self;
        let size = self.abs();
        let log_size = if (0.5..2.0).contains(&size) {
            double_double::log_hypot_near_one(re, im)
        } else {
            // Scaled, since |z| may overflow or be subnormal although its logarithm is an ordinary number.
            let exponent = self.exponent();
            libm::log(self.scalbn(-exponent).abs()) + f64::from(exponent) * std::f64::consts::LN_2
        };
        Complex::new(log_size, self.arg())
    }

    /// Returns log(1 + z).
    fn log1p(self) -> Complex {
        let sum = Complex::new(1.0 + self.re, self.im);
        if (0.5..2.0).contains(&sum.abs()) {
            return Complex::new(double_double::log_hypot_of_one_plus(self.re, self.im), sum.arg());
        }
        sum.log()
    }

    /// Returns 1 / (1 + e^-z), computed with the exponential that does not overflow.
    fn logistic(self) -> Complex {
        if self.re >= 0.0 {
            return ONE.div(ONE.add(self.neg().exp()));
        }
        let e = self.exp();
        e.div(ONE.add(e))
    }

    /// Returns the square root in the right half-plane. Its imaginary part has the sign of the operand's.
    pub(super) fn sqrt(self) -> Complex {
        let Complex { re, im } = self;
        if im.is_infinite() {
            return Complex::new(f64::INFINITY, im);
        }
        if re.is_infinite() {
            let other = if im.is_nan() { im } else { 0f64.copysign(im) };
            return match re > 0.0 {
                true => Complex::new(re, other),
                false => Complex::new(if im.is_nan() { im } else { 0.0 }, f64::INFINITY.copysign(im)),
            };
        }
        if re == 0.0 && im == 0.0 {
            return Complex::new(0.0, im);
        }
        let half_exponent = self.exponent().div_euclid(2);
        let z = self.scalbn(-2 * half_exponent);
        let root = libm::sqrt(0.5 * (z.re.abs() + z.abs()));
        let other = z.im.abs() / (2.0 * root);
        let (re, im) = if re >= 0.0 || re.is_nan() { (root, other) } else { (other, root) };
        Complex::new(re, im.copysign(self.im)).scalbn(half_exponent)
    }

    /// Returns a^b = e^(b log a). The result is 1 if the exponent is 0 or the base is 1, even if the other operand is
    /// NaN.
    fn power(self, exponent: Complex) -> Complex {
        let real_exponent = exponent.im == 0.0;
        if (real_exponent && exponent.re == 0.0) || self == ONE {
            return ONE;
        }
        if self.re == 0.0 && self.im == 0.0 {
            let part = if real_exponent && exponent.re > 0.0 { 0.0 } else { f64::NAN };
            return Complex::new(part, part);
        }
        let log = self.log();
        if real_exponent { log.scale(exponent.re).exp() } else { log.mul(exponent).exp() }
    }

    /// Returns -i log((x + i y) / sqrt(x^2 + y^2)); `self` is y.
    fn atan2(self, x: Complex) -> Complex {
        let direction = x.add(self.times_i());
        let size = x.mul(x).add(self.mul(self)).sqrt();
        direction.div(size).log().over_i()
    }
}
