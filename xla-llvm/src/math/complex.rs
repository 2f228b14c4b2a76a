//! Complex numbers as pairs of lanes: arithmetic, exponentials, logarithms and roots.
//!
//! Special values follow Annex G of the C standard; products are plain, so an infinite factor may give NaN parts.

use super::log::{log_of_sum, with_log_specials};
use super::wide::{Wide, exact_product, exact_sum, exact_sum_ordered};
use super::{atan2, by_precision, exp, expm1, sin, sin_cos};
use crate::lanes::Lanes;

/// Complex number: real and imaginary part, lanes of one type.
#[derive(Clone, Copy)]
pub struct Complex<'e, 'ctx> {
    /// The real part.
    pub re: Lanes<'e, 'ctx>,
    /// The imaginary part.
    pub im: Lanes<'e, 'ctx>,
}

/// Power of two near the larger part of a number, and its inverse; both are normal numbers.
struct Size<'e, 'ctx> {
    exponent: Lanes<'e, 'ctx>,
    inverse: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Complex<'e, 'ctx> {
    /// Creates a number from its parts.
    pub fn new(re: Lanes<'e, 'ctx>, im: Lanes<'e, 'ctx>) -> Complex<'e, 'ctx> {
        Complex { re, im }
    }

    /// Returns a real constant with lanes like these.
    pub(super) fn constant(self, value: f64) -> Self {
        Complex::new(self.re.constant(value), self.re.constant(0.0))
    }

    /// Applies `f` to both parts.
    pub(super) fn map(self, f: impl Fn(Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx>) -> Self {
        Complex::new(f(self.re), f(self.im))
    }

    /// Selects this number where the mask is set, and the other one elsewhere.
    pub(super) fn or_else(self, mask: Lanes<'e, 'ctx>, other: Self) -> Self {
        Complex::new(mask.select(self.re, other.re), mask.select(self.im, other.im))
    }

    /// Applies [`Lanes::rarely`] to both parts.
    pub(super) fn rarely(self, mask: Lanes<'e, 'ctx>, rare: impl FnOnce() -> Self) -> Self {
        let [re, im] = mask.rarely([self.re, self.im], || {
            let rare = rare();
            [rare.re, rare.im]
        });
        Complex::new(re, im)
    }

    pub(super) fn is_nan(self) -> Lanes<'e, 'ctx> {
        self.re.unordered(self.im)
    }

    pub(super) fn is_infinite(self) -> Lanes<'e, 'ctx> {
        self.re.fabs().eq(f64::INFINITY) | self.im.fabs().eq(f64::INFINITY)
    }

    fn is_finite(self) -> Lanes<'e, 'ctx> {
        self.re.fabs().lt(f64::INFINITY) & self.im.fabs().lt(f64::INFINITY)
    }

    fn is_zero(self) -> Lanes<'e, 'ctx> {
        self.re.eq(0.0) & self.im.eq(0.0)
    }

    /// Returns the magnitude of the larger part; NaN if a part is NaN.
    fn greater_part(self) -> Lanes<'e, 'ctx> {
        self.re.fabs().maximum(self.im.fabs())
    }

    pub(super) fn times_i(self) -> Self {
        Complex::new(-self.im, self.re)
    }

    pub(super) fn over_i(self) -> Self {
        Complex::new(self.im, -self.re)
    }

    pub(super) fn conj(self) -> Self {
        Complex::new(self.re, -self.im)
    }

    /// Returns `-z`.
    pub fn negate(self) -> Self {
        self.map(|part| -part)
    }

    /// Returns `z + w`.
    pub fn plus(self, other: Self) -> Self {
        Complex::new(self.re + other.re, self.im + other.im)
    }

    /// Returns `z - w`.
    pub fn minus(self, other: Self) -> Self {
        Complex::new(self.re - other.re, self.im - other.im)
    }

    /// Returns `z w`; each part is a difference or sum of two rounded products.
    pub fn times(self, other: Self) -> Self {
        Complex::new(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
    }

    pub(super) fn scale(self, factor: Lanes<'e, 'ctx>) -> Self {
        self.map(|part| part * factor)
    }

    fn size(self) -> Size<'e, 'ctx> {
        let (mantissa, bias) = by_precision(self.re, (23, 127), (52, 1023));
        let field = self.greater_part().bits().lshr(mantissa);
        let exponent = field.smin(2 * bias - 1).smax(1) - bias;
        Size { exponent, inverse: (-exponent).power_of_two_or_zero() }
    }

    /// Returns `|z|` without intermediate overflow or underflow.
    pub fn abs(self) -> Lanes<'e, 'ctx> {
        let Size { exponent, inverse } = self.size();
        let scaled = self.scale(inverse);
        let size = scaled.re.fma(scaled.re, scaled.im * scaled.im).sqrt() * exponent.power_of_two_or_zero();
        self.is_infinite().select(size.constant(f64::INFINITY), size)
    }

    /// Returns the angle.
    pub(super) fn arg(self) -> Lanes<'e, 'ctx> {
        atan2(self.im, self.re)
    }

    /// Returns `z / |z|`; zeros are unchanged.
    pub fn sign(self) -> Self {
        let scaled = self.scale(self.size().inverse);
        let size = scaled.abs();
        self.or_else(self.is_zero(), scaled.map(|part| part / size))
    }

    /// Returns `z / w`, computed with scaling; the infinities and zeros of Annex G replace results with two NaN parts.
    pub fn divided_by(self, other: Self) -> Self {
        let (dividend, divisor) = (self.size(), other.size());
        let (a, b) = (self.scale(dividend.inverse), other.scale(divisor.inverse));
        let norm = b.re.fma(b.re, b.im * b.im);
        let exponent = (dividend.exponent - divisor.exponent).small_to_float();
        let quotient = a.times(b.conj()).map(|part| (part / norm).scale_by_power_of_two(exponent));
        let lost = quotient.re.is_nan() & quotient.im.is_nan();
        quotient.rarely(lost, || {
            let infinity = self.re.constant(f64::INFINITY);
            let by_zero = self.scale(infinity.copysign(other.re));
            let infinite = self.boxed().times(other.conj()).scale(infinity);
            let vanishing = self.times(other.boxed().conj()).scale(infinity.constant(0.0));
            let result = vanishing.or_else(other.is_infinite() & self.is_finite(), quotient);
            let result = infinite.or_else(self.is_infinite() & other.is_finite(), result);
            by_zero.or_else(other.is_zero() & !(self.re.is_nan() & self.im.is_nan()), result)
        })
    }

    /// Replaces infinite parts by 1 and others by 0, keeping signs.
    fn boxed(self) -> Self {
        self.map(|part| part.fabs().eq(f64::INFINITY).select(part.constant(1.0), 0.0).copysign(part))
    }

    /// Returns `e^z`.
    pub fn exp(self) -> Self {
        let Complex { re, im } = self;
        // The factor may overflow although the product does not: then it is applied in two halves.
        let great = re.fabs().gt(by_precision(re, 87.0, 708.0));
        let factor = exp(great.select(re * 0.5, re));
        let (sine, cosine) = sin_cos(im);
        let once = Complex::new(cosine * factor, sine * factor);
        let result = once.scale(factor).or_else(great, once);
        let real = factor.constant(1.0);
        let real_result = Complex::new(great.select(factor * factor, factor), im);
        let result = real_result.or_else(im.eq(0.0), result);
        let endless = !im.fabs().lt(f64::INFINITY);
        let result = Complex::new((endless & re.eq(f64::INFINITY)).select(re, result.re), result.im);
        real.constant_pair(0.0).or_else(endless & re.eq(f64::NEG_INFINITY), result)
    }

    /// Returns `e^z - 1`: the real part is `expm1(re) cos(im) - 2 sin(im/2)^2`. An infinite or NaN imaginary part leads
    /// to NaN for every real part, unlike [`exp`](Complex::exp).
    pub fn expm1(self) -> Self {
        let Complex { re, im } = self;
        let power = self.exp();
        let half_sine = sin(im * 0.5);
        let (_, cosine) = sin_cos(im);
        let near = expm1(re).fma(cosine, half_sine * half_sine * -2.0);
        let far = !re.fabs().lt(by_precision(re, 20.0, 40.0));
        let real = far.select(power.re - 1.0, near);
        let zero = im.eq(0.0);
        let endless = !im.fabs().lt(f64::INFINITY);
        let nan = re.constant(f64::NAN);
        Complex::new(endless.select(nan, zero.select(expm1(re), real)), endless.select(nan, power.im))
    }

    /// Returns `log z`: the logarithm of the absolute value, and the angle.
    pub fn log(self) -> Self {
        let (sum, doublings) = self.square_of_size();
        Complex::new(self.log_of_size(sum, doublings, self.greater_part()), self.arg())
    }

    /// Returns `|z|^2` in two words, divided by a power of two, and the exponent of that power.
    fn square_of_size(self) -> (Wide<'e, 'ctx>, Lanes<'e, 'ctx>) {
        let Size { exponent, inverse } = self.size();
        // Scale only numbers far from 1, so that no bit is lost near 1.
        let far = (exponent.gt(by_precision(self.re, 30, 250))) | exponent.lt(-by_precision(self.re, 30, 250));
        let inverse = far.select(inverse, 1.0);
        let doublings = far.select((exponent + exponent).small_to_float(), 0.0);
        let Complex { re, im } = self.scale(inverse).map(|part| part.fabs());
        let ordered = re.lt(im);
        let (least, greatest) = (ordered.select(re, im), ordered.select(im, re));
        let (p, q) = (exact_product(greatest, greatest), exact_product(least, least));
        let sum = exact_sum_ordered(p.high, q.high);
        (Wide { high: sum.high, low: sum.low + (p.low + q.low) }, doublings)
    }

    /// Returns half the logarithm of a square; if `greater_part` is not positive and finite, the logarithm of that.
    fn log_of_size(
        self,
        square: Wide<'e, 'ctx>,
        doublings: Lanes<'e, 'ctx>,
        greater_part: Lanes<'e, 'ctx>,
    ) -> Lanes<'e, 'ctx> {
        let log = with_log_specials(greater_part, log_of_sum(square, Some(doublings)) * 0.5);
        self.is_infinite().select(log.constant(f64::INFINITY), log)
    }

    /// Returns `log(1 + z)`: half the logarithm of `1 + (2 re + re^2 + im^2)` near the origin.
    pub fn log1p(self) -> Self {
        let Complex { re, im } = self;
        let sum = Complex::new(re + 1.0, im);
        let (far_square, doublings) = sum.square_of_size();
        let (p, q) = (exact_product(re, re), exact_product(im, im));
        let squares = exact_sum(p.high, q.high);
        let excess = exact_sum(re * 2.0, squares.high);
        let low = excess.low + (squares.low + (p.low + q.low));
        let near_square = exact_sum(re.constant(1.0), excess.high);
        // Outside, the sum of the squares would lose small parts, and the direct formula is accurate.
        let near = self.greater_part().lt(4.0) & near_square.high.gt(0.25);
        let square = Wide {
            high: near.select(near_square.high, far_square.high),
            low: near.select(near_square.low + low, far_square.low),
        };
        let doublings = near.select(doublings.constant(0.0), doublings);
        Complex::new(sum.log_of_size(square, doublings, sum.greater_part()), sum.arg())
    }

    /// Returns `1 / (1 + e^-z)`, by the exponential that does not overflow.
    pub fn logistic(self) -> Self {
        let right = self.re.ge(0.0);
        let power = self.negate().or_else(right, self).exp();
        let one = self.constant(1.0);
        one.or_else(right, power).divided_by(one.plus(power))
    }

    /// Returns the square root in the right half plane; the imaginary part keeps its sign.
    pub fn sqrt(self) -> Self {
        let Complex { re, im } = self;
        // Scale by an even power of two.
        let even = self.size().exponent & -2;
        let scaled = self.scale((-even).power_of_two_or_zero());
        let root = ((scaled.re.fabs() + scaled.abs()) * 0.5).sqrt();
        // The imaginary part may be much smaller than the real part, so it is scaled only as far as the result
        // requires.
        let other = im.fabs() * (-even.ashr(1)).power_of_two_or_zero() / (root + root);
        let root = root * even.ashr(1).power_of_two_or_zero();
        let right = !re.lt(0.0);
        let result = Complex::new(right.select(root, other), right.select(other, root).copysign(im));
        let (zero, infinity) = (re.constant(0.0), re.constant(f64::INFINITY));
        let nan_or = |x: Lanes<'e, 'ctx>| im.is_nan().select(im, x);
        let endless_right = Complex::new(re, nan_or(zero.copysign(im)));
        let endless_left = Complex::new(nan_or(zero), infinity.copysign(im));
        let result = Complex::new(zero, im).or_else(self.is_zero(), result);
        let result = endless_right.or_else(re.eq(f64::INFINITY), result);
        let result = endless_left.or_else(re.eq(f64::NEG_INFINITY), result);
        Complex::new(infinity, im).or_else(im.fabs().eq(f64::INFINITY), result)
    }

    /// Returns `1 / sqrt z`.
    pub fn rsqrt(self) -> Self {
        self.constant(1.0).divided_by(self.sqrt())
    }

    /// Returns `z^w = e^(w log z)`; 1 for `w = 0` and for `z = 1`, for any other operand; 0 to a positive real power is
    /// 0.
    pub fn power(self, exponent: Self) -> Self {
        let real = exponent.im.eq(0.0);
        let log = self.log();
        let product = log.scale(exponent.re).or_else(real, log.times(exponent));
        let power = product.exp();
        let to_zero = real & exponent.re.gt(0.0);
        let of_zero = self.re.constant_pair(0.0).or_else(to_zero, self.re.constant_pair(f64::NAN));
        let power = of_zero.or_else(self.is_zero(), power);
        let one = exponent.is_zero() | (self.re.eq(1.0) & self.im.eq(0.0));
        self.constant(1.0).or_else(one, power)
    }

    /// Returns `-i log((x + i y) / sqrt(x^2 + y^2))`, which is the angle of the point (`x`, `y`) if both are real;
    /// `self` is `y`.
    pub fn atan2(self, x: Self) -> Self {
        let direction = x.plus(self.times_i());
        let size = x.times(x).plus(self.times(self)).sqrt();
        direction.divided_by(size).log().over_i()
    }

    /// Returns the greater in lexicographic order; the first with a NaN if there is one.
    pub fn maximum(self, other: Self) -> Self {
        let first = self.re.gt(other.re) | (self.re.eq(other.re) & self.im.ge(other.im));
        self.or_else(self.is_nan() | (first & !other.is_nan()), other)
    }

    /// Returns the lesser in lexicographic order; the first with a NaN if there is one.
    pub fn minimum(self, other: Self) -> Self {
        let first = self.re.lt(other.re) | (self.re.eq(other.re) & self.im.le(other.im));
        self.or_else(self.is_nan() | (first & !other.is_nan()), other)
    }
}

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Returns a complex number with this constant in both parts.
    fn constant_pair(self, value: f64) -> Complex<'e, 'ctx> {
        Complex::new(self.constant(value), self.constant(value))
    }
}
