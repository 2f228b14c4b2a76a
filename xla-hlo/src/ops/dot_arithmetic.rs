//! Arithmetic of dot products: element types and accumulators.

use crate::eval::Evaluator;
use crate::eval::parallel::ELEMENT;
use crate::literal::float_format::{FloatFormat, FloatSpecials, widen};
use crate::ops::{Convert, ElementFunction, Op};
use crate::{ElementKind, ElementType, Error, Literal, Result, Scalar};

/// Returns a key that orders element types by precision: booleans, integers, floats, complex numbers, each by width.
pub(super) fn precision(ty: ElementType) -> (u8, usize) {
    match ty.kind() {
        ElementKind::Pred => (0, 0),
        ElementKind::Signed | ElementKind::Unsigned => (1, ty.bit_width()),
        ElementKind::Float => (2, ty.bit_width()),
        ElementKind::Complex => (3, ty.bit_width()),
    }
}

/// Returns the one of two element types that represents all values of the other; `None` if neither does.
pub(super) fn common_type(a: ElementType, b: ElementType) -> Option<ElementType> {
    [(a, b), (b, a)].into_iter().find(|&(from, to)| holds(to, from)).map(|(_, to)| to)
}

/// Returns the accumulator type of a sum of products that is then converted to `result`. It is `result` if that is the
/// more precise operand type or more precise than both. Otherwise it is the more precise operand type, or f32 instead
/// of a float of fewer than 32 bits, so that a sum is not rounded twice.
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

/// Returns the type that an evaluator uses to round or wrap a sum of type `sum`, before it converts the sum to
/// `result`.
///
/// If both types belong to the same class (integers, floats, ...), this is `result`, so that a sum is rounded only
/// once; otherwise it is `sum`.
pub(super) fn rounded_sum_type(sum: ElementType, result: ElementType) -> ElementType {
    let class = |ty: ElementType| precision(ty).0;
    if class(sum) == class(result) { result } else { sum }
}

/// Converts an array to another element type; complex numbers that become real lose their imaginary part.
pub(super) fn converted(array: Literal, to: ElementType) -> Result<Literal> {
    let shape = array.array_shape().clone();
    let from = shape.element_type();
    if from == to {
        return Ok(array);
    }
    let real = if to.is_complex() { from } else { from.real_part() };
    let convert = ElementFunction::new(&Op::from(Convert), &[real], to)?
        .ok_or_else(|| Error::internal("convert is not an elementwise function"))?;
    Literal::from_fn(&shape.with_element_type(to), |i| match array.get(i) {
        Scalar::Complex(re, _) if !to.is_complex() => convert.apply(&[Scalar::Float(re)]),
        element => convert.apply(&[element]),
    })
}

/// Whether type `to` represents every value of type `from`.
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
    // A float type without a `FloatFormat` (`f8e8m0fnu`) holds the powers of two from 2^-127 to 2^127.
    let Some(narrow) = FloatFormat::of(from) else { return wide.exponent_bits >= 8 };
    let has_infinity = |format: &FloatFormat| matches!(format.specials, FloatSpecials::Ieee);
    narrow.mantissa_bits <= wide.mantissa_bits
        && widen(from, narrow.greatest()) <= widen(to, wide.greatest())
        && widen(from, 1) >= widen(to, 1)
        && (has_infinity(&wide) || !has_infinity(&narrow))
}

/// Accumulator for products of elements.
pub(super) trait Domain: Copy + Send + Sync {
    /// The empty sum.
    const ZERO: Self;

    /// Converts an element of an operand; its class is never higher than the accumulator's.
    fn from_element(element: Scalar) -> Self;

    /// Returns `self + x * y`.
    fn plus_product(self, x: Self, y: Self) -> Self;

    /// Returns the sum before it is rounded or wrapped to the result type.
    fn to_element(self, result: ElementType) -> Scalar;
}

/// Decodes the bytes of an array of type `ty` with [`Domain::from_element`].
pub(super) fn elements<T: Domain>(ev: &mut Evaluator<'_>, ty: ElementType, bytes: &[u8]) -> Result<Vec<T>> {
    let width = ty.byte_width();
    let element = |i: usize| T::from_element(Scalar::read(ty, &bytes[i * width..]));
    ev.values(bytes.len() / width, ELEMENT, T::ZERO, element)
}

/// Accumulator of real results: products of mantissas up to 24 bits are exact, and the sum is rounded to the result
/// type once.
impl Domain for f64 {
    const ZERO: f64 = 0.0;

    fn from_element(element: Scalar) -> f64 {
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

/// Accumulator of complex results: real and imaginary part.
impl Domain for (f64, f64) {
    const ZERO: (f64, f64) = (0.0, 0.0);

    fn from_element(element: Scalar) -> (f64, f64) {
        match element {
            Scalar::Complex(re, im) => (re, im),
            real => (f64::from_element(real), 0.0),
        }
    }

    fn plus_product(self, x: (f64, f64), y: (f64, f64)) -> (f64, f64) {
        (self.0 + (x.0 * y.0 - x.1 * y.1), self.1 + (x.0 * y.1 + x.1 * y.0))
    }

    fn to_element(self, _: ElementType) -> Scalar {
        Scalar::Complex(self.0, self.1)
    }
}

/// Accumulator of boolean results: true if both elements of any pair are true.
impl Domain for bool {
    const ZERO: bool = false;

    fn from_element(element: Scalar) -> bool {
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

/// Integer accumulator modulo 2^64; narrower integer types are obtained by a further modulus.
#[derive(Clone, Copy)]
pub(super) struct Wrapping(u64);

impl Domain for Wrapping {
    const ZERO: Wrapping = Wrapping(0);

    fn from_element(element: Scalar) -> Wrapping {
        Wrapping(match element {
            Scalar::Pred(p) => u64::from(p),
            Scalar::Signed(v) => v as u64,
            Scalar::Unsigned(v) => v,
            Scalar::Float(v) | Scalar::Complex(v, _) => v as i64 as u64,
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
