//! The error function, approximated by a series and a polynomial.

use xla_hlo::ops::{BinaryOp, CompareDirection, UnaryOp};
use xla_hlo::{InstrId, Result, Scalar};

use super::formulas::Formulas;

/// Number of terms of the series around zero; the next term is below the last place of `f64` at 1.
const TERMS: u32 = 19;

/// Coefficients of `erfc(x) e^(x^2)` for `x` from 1 to 6 as a polynomial in `(48 / (x + 2) - 11) / 5`, which falls from
/// 1 to -1; constant term first.
///
/// Interpolated at Chebyshev nodes from the continued fraction of the function; the first omitted term is below 1e-16.
#[allow(clippy::excessive_precision, reason = "as computed")]
const SCALED_COMPLEMENT: [f64; 16] = [
    0.22142954022993183,
    0.16189356804102498,
    0.03856057042517874,
    0.005588816281840166,
    0.00019713917780514592,
    -8.079220427462583e-05,
    -7.340518555040183e-06,
    1.9795619124999447e-06,
    1.6350179460631947e-07,
    -7.005356310476165e-08,
    -5.937660037041645e-10,
    2.6248050467077982e-09,
    -2.62603022660457e-10,
    -7.455229922986861e-11,
    1.8386443409457165e-11,
    4.416605969836951e-13,
];

/// Emits the odd function that is `x` times a series in `x^2` for `|x| < 1`, and otherwise `1 - e^(-x^2) p` with the
/// polynomial `p` of [`SCALED_COMPLEMENT`].
pub(super) fn write(formulas: &mut Formulas<'_, '_>, x: InstrId) -> Result<InstrId> {
    let magnitude = formulas.abs(x)?;
    // For `|x| >= 6`, the result rounds to 1.
    let magnitude = formulas.at.binary_with(BinaryOp::Minimum, magnitude, Scalar::Float(6.0))?;
    let square = formulas.multiply(magnitude, magnitude)?;
    let near = polynomial(formulas, square, &series())?;
    let near = formulas.multiply(x, near)?;

    let shifted = formulas.plus(magnitude, 2.0)?;
    let numerator = formulas.constant(x, 48.0 / 5.0)?;
    let ratio = formulas.divide(numerator, shifted)?;
    let place = formulas.plus(ratio, -11.0 / 5.0)?;
    let scaled = polynomial(formulas, place, &SCALED_COMPLEMENT)?;
    let negative = formulas.at.unary(UnaryOp::Negate, square)?;
    let e = formulas.unary(UnaryOp::Exponential, negative)?;
    let complement = formulas.multiply(e, scaled)?;
    let one = formulas.constant(x, 1.0)?;
    let far = formulas.at.binary(BinaryOp::Subtract, one, complement)?;
    let far = formulas.odd(x, far)?;
    let is_near = formulas.compare(magnitude, CompareDirection::Lt, 1.0)?;
    formulas.at.select(is_near, near, far)
}

/// Returns the coefficients of `erf(x) / x` in powers of `x^2`: `2 / sqrt(pi) (-1)^k / (k! (2k + 1))`.
fn series() -> Vec<f64> {
    let mut factor = std::f64::consts::FRAC_2_SQRT_PI;
    (0..TERMS)
        .map(|k| {
            let coefficient = factor / f64::from(2 * k + 1);
            factor /= -f64::from(k + 1);
            coefficient
        })
        .collect()
}

/// Emits the polynomial with these coefficients, constant term first, by Horner's rule.
fn polynomial(formulas: &mut Formulas<'_, '_>, x: InstrId, coefficients: &[f64]) -> Result<InstrId> {
    let Some((&last, rest)) = coefficients.split_last() else { return formulas.constant(x, 0.0) };
    let mut sum = formulas.constant(x, last)?;
    for &coefficient in rest.iter().rev() {
        let product = formulas.multiply(sum, x)?;
        sum = formulas.plus(product, coefficient)?;
    }
    Ok(sum)
}
