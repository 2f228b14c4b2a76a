//! Dot products: element types and accumulators.

use crate::eval::Evaluator;
use crate::eval::parallel::ELEMENT;
use crate::literal::float_format::{FloatFormat, FloatSpecials, widen};
use crate::{ElementKind, ElementType, Result, Scalar};

/// Orders element types by precision: truth values, integers, floats, complex numbers, by width each.
pub(super) fn precision(ty: ElementType) -> (u8, usize) {
    match ty.kind() {
        ElementKind::Pred => (0, 0),
        ElementKind::Signed | ElementKind::Unsigned => (1, ty.bit_width()),
        ElementKind::Float => (2, ty.bit_width()),
        ElementKind::Complex => (3, ty.bit_width()),
    }
}

/// The one of two element types that holds all the other's values; `None` where neither does.
pub(super) fn common_type(a: ElementType, b: ElementType) -> Option<ElementType> {
    [(a, b), (b, a)].into_iter().find(|&(from, to)| holds(to, from)).map(|(_, to)| to)
}

/// The type in which products of elements of two types are summed before the sum is converted to `result`: the result's
/// own where that is wider, else the operands'. A float of fewer than 32 bits that would be rounded twice is summed as
/// f32.
pub(super) fn sum_type(lhs: ElementType, rhs: ElementType, result: ElementType) -> ElementType {
    let natural = if precision(rhs) > precision(lhs) { rhs } else { lhs };
    if natural == result || precision(result) > precision(natural) {
        result
    } else if natural.is_float() && natural.bit_width() < 32 {
        ElementType::F32
    } else {
        natural
    }
}

/// Whether every value of type `from` is one of type `to`.
fn holds(to: ElementType, from: ElementType) -> bool {
    use ElementKind::*;
    let digits = |ty: ElementType| ty.bit_width() - usize::from(ty.kind() == Signed);
    match (from.kind(), to.kind()) {
        _ if from == to => true,
        (Pred, _) => true,
        (_, Pred) => false,
        (Complex, _) => to.is_complex() && to.bit_width() > from.bit_width(),
        (_, Complex) => holds(to.real_part(), from),
        (Signed | Unsigned, Float) => {
            FloatFormat::of(to).is_some_and(|format| digits(from) <= format.mantissa_bits as usize + 1)
        }
        (Signed, Unsigned) => false,
        (Unsigned | Signed, Signed) | (Unsigned, Unsigned) => digits(from) <= digits(to),
        (Float, Float) => float_holds(to, from),
        (Float, Signed | Unsigned) => false,
    }
}

fn float_holds(to: ElementType, from: ElementType) -> bool {
    let Some(wide) = FloatFormat::of(to) else { return false };
    // Powers of two from 2^-127 to 2^127.
    let Some(narrow) = FloatFormat::of(from) else { return wide.exponent_bits >= 8 };
    let has_infinity = |format: &FloatFormat| matches!(format.specials, FloatSpecials::Ieee);
    narrow.mantissa_bits <= wide.mantissa_bits
        && widen(from, narrow.greatest()) <= widen(to, wide.greatest())
        && widen(from, 1) >= widen(to, 1)
        && (has_infinity(&wide) || !has_infinity(&narrow))
}

/// Accumulates products of elements.
pub(super) trait Domain: Copy + Send + Sync {
    /// The sum of nothing.
    const ZERO: Self;

    /// An operand's element, converted as if to the result's type where that changes the kind of number.
    fn from_element(element: Scalar, result: ElementType) -> Self;

    /// `self + x * y`.
    fn plus_product(self, x: Self, y: Self) -> Self;

    /// The sum before it is rounded or wrapped to the result's type.
    fn to_element(self, result: ElementType) -> Scalar;
}

/// The elements of an array of type `ty`, from its bytes, as [`Domain::from_element`] takes them.
pub(super) fn elements<T: Domain>(
    ev: &mut Evaluator<'_>,
    ty: ElementType,
    bytes: &[u8],
    result: ElementType,
) -> Result<Vec<T>> {
    let width = ty.byte_width();
    let element = |i: usize| T::from_element(Scalar::read(ty, &bytes[i * width..]), result);
    ev.values(bytes.len() / width, ELEMENT, T::ZERO, element)
}

/// Real results: products of up to 24-bit mantissas are exact, sums are rounded to the result's type once.
impl Domain for f64 {
    const ZERO: f64 = 0.0;

    fn from_element(element: Scalar, _: ElementType) -> f64 {
        match element {
            Scalar::Pred(p) => f64::from(u8::from(p)),
            Scalar::Signed(v) => v as f64,
            Scalar::Unsigned(v) => v as f64,
            Scalar::Float(v) | Scalar::Complex(v, _) => v,
        }
    }

    fn plus_product(self, x: f64, y: f64) -> f64 {
        self + x * y
    }

    fn to_element(self, _: ElementType) -> Scalar {
        Scalar::Float(self)
    }
}

/// Complex results: real and imaginary part.
impl Domain for (f64, f64) {
    const ZERO: (f64, f64) = (0.0, 0.0);

    fn from_element(element: Scalar, result: ElementType) -> (f64, f64) {
        match element {
            Scalar::Complex(re, im) => (re, im),
            real => (f64::from_element(real, result), 0.0),
        }
    }

    fn plus_product(self, x: (f64, f64), y: (f64, f64)) -> (f64, f64) {
        (self.0 + (x.0 * y.0 - x.1 * y.1), self.1 + (x.0 * y.1 + x.1 * y.0))
    }

    fn to_element(self, _: ElementType) -> Scalar {
        Scalar::Complex(self.0, self.1)
    }
}

/// Truth values: some pair is true in both.
impl Domain for bool {
    const ZERO: bool = false;

    fn from_element(element: Scalar, _: ElementType) -> bool {
        match element {
            Scalar::Pred(p) => p,
            Scalar::Signed(v) => v != 0,
            Scalar::Unsigned(v) => v != 0,
            Scalar::Float(v) => v != 0.0,
            Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }

    fn plus_product(self, x: bool, y: bool) -> bool {
        self || (x && y)
    }

    fn to_element(self, _: ElementType) -> Scalar {
        Scalar::Pred(self)
    }
}

/// An integer modulo 2^64, of which every narrower integer type is a further modulus.
#[derive(Clone, Copy)]
pub(super) struct Wrapping(u64);

impl Domain for Wrapping {
    const ZERO: Wrapping = Wrapping(0);

    fn from_element(element: Scalar, result: ElementType) -> Wrapping {
        Wrapping(match element {
            Scalar::Pred(p) => u64::from(p),
            Scalar::Signed(v) => v as u64,
            Scalar::Unsigned(v) => v,
            Scalar::Float(v) | Scalar::Complex(v, _) => saturate(v, result),
        })
    }

    fn plus_product(self, x: Wrapping, y: Wrapping) -> Wrapping {
        Wrapping(self.0.wrapping_add(x.0.wrapping_mul(y.0)))
    }

    fn to_element(self, result: ElementType) -> Scalar {
        match result.kind() {
            ElementKind::Signed => Scalar::Signed(self.0 as i64),
            ElementKind::Unsigned | ElementKind::Pred | ElementKind::Float | ElementKind::Complex => {
                Scalar::Unsigned(self.0)
            }
        }
    }
}

/// A float as an integer of that type: truncated, saturated, NaN as 0.
fn saturate(v: f64, ty: ElementType) -> u64 {
    let bits = ty.bit_width();
    match ty.kind() {
        ElementKind::Signed => (v as i64).clamp(i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)) as u64,
        ElementKind::Unsigned | ElementKind::Pred | ElementKind::Float | ElementKind::Complex => {
            (v as u64).min(u64::MAX >> (64 - bits))
        }
    }
}
