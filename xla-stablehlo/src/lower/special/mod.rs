//! Special functions of CHLO, which HLO does not have: each put in terms of what HLO has.
//!
//! `f32` and `f64` are computed in their own arithmetic, narrower floats in `f32` and rounded once.

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

/// A formula that is right in every type as it stands.
fn exact<const N: usize>(
    lowering: &mut Lowering<'_>,
    call: &Call<'_>,
    write: fn([Term<'_>; N]) -> Term<'_>,
) -> Result<InstrId> {
    let operands: [InstrId; N] = call.exactly()?;
    let formula = Formula::new(lowering);
    formula.finish(write(operands.map(|operand| formula.term(operand))))
}

/// A function of one float.
fn function(lowering: &mut Lowering<'_>, call: &Call<'_>, write: fn(Term<'_>) -> Term<'_>) -> Result<InstrId> {
    let [x] = call.exactly()?;
    let formula = Formula::new(lowering);
    let (ty, wide) = types(call)?;
    formula.finish(write(formula.term(x).convert(wide)).convert(ty))
}

/// A function of two floats.
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

/// Type of the result, and the one that it is computed in.
fn types(call: &Call<'_>) -> Result<(ElementType, ElementType)> {
    match call.shape().element_type() {
        Some(ty) if ty.is_float() => Ok((ty, if ty == ElementType::F64 { ty } else { ElementType::F32 })),
        _ => Err(Error::invalid_argument(format!("a result of {}, which is not of floats", call.shape()))),
    }
}

/// `x x`; of complex numbers `(re + im) (re - im) + 2 re im i`, which overflows later. The squares of finite parts of
/// one magnitude cancel, though their sum may overflow.
fn square(x: Term<'_>) -> Term<'_> {
    if !x.element_type().is_complex() {
        return x * x;
    }
    let (re, im) = (x.real(), x.imag());
    let product = re * im;
    let cancels = re.abs().equals(im.abs()).and(re.abs().is_less(f64::INFINITY));
    cancels.select(0.0, (re + im) * (re - im)).binary(BinaryOp::Complex, product + product)
}

/// The principal cube root of a complex number, by its polar form.
fn cube_root(z: Term<'_>) -> Term<'_> {
    let angle = z.imag().binary(BinaryOp::Atan2, z.real()) / 3.0;
    let (radius, sine) = (z.abs().unary(UnaryOp::Cbrt), angle.sin());
    // An endless number without an imaginary part has a root without one.
    let im = sine.equals(0.0).select(sine, radius * sine);
    (radius * angle.cos()).binary(BinaryOp::Complex, im)
}

fn conjugate(z: Term<'_>) -> Term<'_> {
    if z.element_type().is_complex() { z.real().binary(BinaryOp::Complex, -z.imag()) } else { z }
}
