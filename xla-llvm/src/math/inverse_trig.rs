//! Inverse circular functions.

use std::f64::consts::FRAC_PI_2;

use super::by_precision;
use crate::lanes::Lanes;

const HALF_PI: (f64, f64) = (FRAC_PI_2, 6.123233995736766e-17);
const HALF_PI_F32: (f64, f64) = (1.5707963705062866, -4.371138828673793e-08);

/// Coefficients of `(asin x - x) / x^3` in `x^2` on `|x| <= 1/2`.
const ASIN_F32: &[f64] = &[0.16666754, 0.07495252, 0.04547604, 0.024152087, 0.042211823];
const ASIN_F64: &[f64] = &[
    0.16666666666665383,
    0.07500000000342945,
    0.044642856823545546,
    0.03038195932913159,
    0.022371753566352633,
    0.017359770546040418,
    0.013884603299752177,
    0.01217325162101358,
    0.006510957890231982,
    0.019573656551454252,
    -0.016293732427567927,
    0.0319587625080469,
];

/// Coefficients of `(atan t - t) / t^3` in `t^2` on `|t| <= 1/2`.
const ATAN_F32: &[f64] = &[-0.33333328, 0.19999556, -0.1427315, 0.109488375, -0.080108255, 0.03906766];
const ATAN_F64: &[f64] = &[
    -0.33333333333333315,
    0.19999999999993823,
    -0.14285714285006562,
    0.11111111070531628,
    -0.09090907720845093,
    0.07692277939059557,
    -0.06666228747649154,
    0.058778473849772264,
    -0.05230228580981772,
    0.045902362059910405,
    -0.0371374399012405,
    0.0236809888693003,
    -0.008381690138297999,
];

/// Returns `pi / 2` in two parts with the lanes' precision.
fn half_pi(x: Lanes<'_, '_>) -> (f64, f64) {
    by_precision(x, HALF_PI_F32, HALF_PI)
}

/// Result `asin s = main + rest` for the reduced argument `s` in `[0, 1/2]`: the magnitude itself, or above one half
/// (where `far` is set) `sqrt((1 - x) / 2)`, for which `asin x = pi/2 - 2 asin s`.
struct HalfArc<'e, 'ctx> {
    far: Lanes<'e, 'ctx>,
    main: Lanes<'e, 'ctx>,
    rest: Lanes<'e, 'ctx>,
}

fn half_arc<'e, 'ctx>(magnitude: Lanes<'e, 'ctx>) -> HalfArc<'e, 'ctx> {
    let far = magnitude.gt(0.5);
    let z = far.select(magnitude.fma(-0.5, 0.5), magnitude * magnitude);
    let main = far.select(z.sqrt(), magnitude);
    let rest = main * z * z.polynomial(by_precision(z, ASIN_F32, ASIN_F64));
    HalfArc { far, main, rest }
}

/// Returns `asin x`, NaN beyond 1. Error at most 1.95 ulp (f32) and 1.6 ulp (f64).
pub fn asin<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let HalfArc { far, main, rest } = half_arc(x.fabs());
    let (high, low) = half_pi(x);
    let beyond = main.fma(-2.0, high) - rest.fma(2.0, -low);
    far.select(beyond, main + rest).copysign(x)
}

/// Returns `acos x`, NaN beyond 1. Error at most 1.2 ulp.
pub fn acos<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let HalfArc { far, main, rest } = half_arc(x.fabs());
    let (high, low) = half_pi(x);
    // Near zero pi/2 - asin x; near one 2 asin s; near minus one pi - 2 asin s.
    let negative = x.lt(0.0);
    let scale = far.select(x.constant(2.0), 1.0);
    let offset = far.select(negative.select(x.constant(2.0), 0.0), 1.0);
    let toward = far.select(x, -x);
    let (main, rest) = ((main * scale).copysign(toward), (rest * scale).copysign(toward));
    offset.fma(high, main) + offset.fma(low, rest)
}

/// Returns the angle for the quotient `least / greatest` of two magnitudes, unfolded to the quadrant: `pi / 2` minus
/// the angle if the two are `swapped`, and `pi` minus that if the abscissa is negative.
fn unfolded_angle<'e, 'ctx>(
    least: Lanes<'e, 'ctx>,
    greatest: Lanes<'e, 'ctx>,
    swapped: Lanes<'e, 'ctx>,
    negative: Option<Lanes<'e, 'ctx>>,
) -> Lanes<'e, 'ctx> {
    // Above one half, atan q = pi/4 + atan((q - 1) / (q + 1)); still a single division.
    let far = (least * 2.0).gt(greatest);
    let numerator = far.select(least - greatest, least);
    let denominator = far.select(least + greatest, greatest);
    let t = numerator / denominator;
    let z = t * t;
    let angle = (t * z).fma(z.polynomial(by_precision(z, ATAN_F32, ATAN_F64)), t);
    // In multiples of pi/4: base + sign * angle.
    let far = far.select(t.constant(1.0), 0.0);
    let mut base = swapped.select(far.constant(2.0) - far, far);
    let mut flip = swapped;
    if let Some(negative) = negative {
        base = negative.select(base.constant(4.0) - base, base);
        flip = flip ^ negative;
    }
    let angle = flip.select(-angle, angle);
    let (high, low) = half_pi(t);
    base.fma(high * 0.5, base.fma(low * 0.5, angle))
}

/// Returns `atan x`. Error at most 1.6 ulp (f32) and 1.4 ulp (f64).
pub fn atan<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let (magnitude, one) = (x.fabs(), x.constant(1.0));
    let swapped = magnitude.gt(one);
    unfolded_angle(swapped.select(one, magnitude), swapped.select(magnitude, one), swapped, None).copysign(x)
}

/// Returns the angle of the point (`x`, `y`) in (-pi, pi], with the signs of zeros and infinities as in C. Error at
/// most 1.85 ulp (f32) and 1.65 ulp (f64).
pub fn atan2<'e, 'ctx>(y: Lanes<'e, 'ctx>, x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let (up, along) = (y.fabs(), x.fabs());
    let swapped = up.gt(along);
    let (least, greatest) = (swapped.select(along, up), swapped.select(up, along));
    // Scale huge magnitudes down so that their sum is finite, and tiny ones up so that their difference is not
    // subnormal. Replace infinities by a point with the same angle.
    let (huge, tiny, grow) = by_precision(x, (1e30, 1e-25, 2f64.powi(48)), (1e300, 1e-280, 2f64.powi(96)));
    let (shrink, infinity) = (0.0625, x.constant(f64::INFINITY));
    let scale = greatest.lt(tiny).select(x.constant(grow), 1.0);
    let scale = greatest.gt(huge).select(x.constant(shrink), scale);
    let infinite = greatest.eq(infinity);
    let corner = least.eq(infinity).select(x.constant(1.0), 0.0);
    let least = infinite.select(corner, least * scale);
    let greatest = infinite.select(x.constant(1.0), greatest * scale);
    // 0 / 0 counts as 0.
    let greatest = greatest.eq(0.0).select(x.constant(1.0), greatest);
    let negative = x.bits().lt(0);
    let angle = unfolded_angle(least, greatest, swapped, Some(negative)).copysign(y);
    y.unordered(x).select(x.constant(f64::NAN), angle)
}
