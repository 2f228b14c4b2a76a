//! Special functions of CHLO, expressed in HLO's operations.
//!
//! `f32` and `f64` are computed in their own precision. Narrower floats are computed in `f32` and rounded once.

mod bessel;
mod bits;
#[allow(clippy::excessive_precision, reason = "coefficients as published")]
mod error_functions;
mod formula;
mod gamma;
mod zeta;

use xla_hlo::ops::{BinaryOp, UnaryOp};
use xla_hlo::{ElementType, Error, InstrId, Result};

use self::formula::{Formula, Term};
use super::call::Call;
use super::context::Lowering;

/// Lowers a special function.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    Some(match call.name {
        "bessel_i1e" => function(lowering, call, bessel::i1e),
        "digamma" => function(lowering, call, gamma::digamma),
        "erf_inv" => function(lowering, call, error_functions::inverse),
        "erfc" => function(lowering, call, error_functions::complement),
        "lgamma" => function(lowering, call, gamma::log_gamma),
        "polygamma" => function_of_two(lowering, call, zeta::polygamma),
        "zeta" => function_of_two(lowering, call, zeta::zeta),
        "next_after" => exact(lowering, call, bits::next_after),
        "conj" => exact(lowering, call, |[z]| conjugate(z)),
        "is_inf" => exact(lowering, call, |[x]| x.abs().equals(f64::INFINITY)),
        "is_neg_inf" => exact(lowering, call, |[x]| x.equals(f64::NEG_INFINITY)),
        "is_pos_inf" => exact(lowering, call, |[x]| x.equals(f64::INFINITY)),
        "cbrt" => exact(lowering, call, |[z]| cube_root(z)),
        "square" => exact(lowering, call, |[x]| square(x)),
        _ => return None,
    })
}

/// Lowers a formula that is accurate in the operands' own type.
fn exact<const N: usize>(
    lowering: &mut Lowering<'_>,
    call: &Call<'_>,
    write: fn([Term<'_>; N]) -> Term<'_>,
) -> Result<InstrId> {
    let operands: [InstrId; N] = call.exactly()?;
    let formula = Formula::new(lowering);
    formula.finish(write(operands.map(|operand| formula.term(operand))))
}

/// Lowers a function of one float, computed in at least `f32`.
fn function(lowering: &mut Lowering<'_>, call: &Call<'_>, write: fn(Term<'_>) -> Term<'_>) -> Result<InstrId> {
    let [x] = call.exactly()?;
    let formula = Formula::new(lowering);
    let (ty, wide) = types(call)?;
    formula.finish(write(formula.term(x).convert(wide)).convert(ty))
}

/// Lowers a function of two floats, computed in at least `f32`.
fn function_of_two(
    lowering: &mut Lowering<'_>,
    call: &Call<'_>,
    write: for<'t> fn(Term<'t>, Term<'t>) -> Term<'t>,
) -> Result<InstrId> {
    let [x, y] = call.exactly()?;
    let formula = Formula::new(lowering);
    let (ty, wide) = types(call)?;
    formula.finish(write(formula.term(x).convert(wide), formula.term(y).convert(wide)).convert(ty))
}

/// Returns the type of the result and the type of the computation.
fn types(call: &Call<'_>) -> Result<(ElementType, ElementType)> {
    match call.shape().element_type() {
        Some(ty) if ty.is_float() => Ok((ty, if ty == ElementType::F64 { ty } else { ElementType::F32 })),
        _ => Err(Error::invalid_argument(format!("the result {} must have float elements", call.shape()))),
    }
}

/// Computes `x x`. For complex numbers, this is `(re + im) (re - im) + 2 re im i`, which avoids premature overflow. If
/// both parts are finite and of equal magnitude, the real part is 0, although `re + im` may overflow.
fn square(x: Term<'_>) -> Term<'_> {
    if !x.element_type().is_complex() {
        return x * x;
    }
    let (re, im) = (x.real(), x.imag());
    let product = re * im;
    let cancels = re.abs().equals(im.abs()).and(re.abs().is_less(f64::INFINITY));
    cancels.select(0.0, (re + im) * (re - im)).binary(BinaryOp::Complex, product + product)
}

/// Computes the principal cube root of a complex number from its polar form.
fn cube_root(z: Term<'_>) -> Term<'_> {
    let angle = z.imag().binary(BinaryOp::Atan2, z.real()) / 3.0;
    let (radius, sine) = (z.abs().unary(UnaryOp::Cbrt), angle.sin());
    // A zero sine gives a zero imaginary part even if the radius is infinite, where the product would be NaN.
    let im = sine.equals(0.0).select(sine, radius * sine);
    (radius * angle.cos()).binary(BinaryOp::Complex, im)
}

fn conjugate(z: Term<'_>) -> Term<'_> {
    if z.element_type().is_complex() { z.real().binary(BinaryOp::Complex, -z.imag()) } else { z }
}
