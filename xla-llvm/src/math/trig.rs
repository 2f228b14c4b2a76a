//! Sine, cosine and tangent.

use std::f64::consts::FRAC_PI_2;

use super::by_precision;
use super::huge_angle::reduce_huge;
use super::wide::{exact_product, exact_sum_ordered};
use crate::lanes::{Lanes, Scalar};

/// `pi / 2` in parts. Without FMA, each part is short enough that its product with a quotient below the limit is exact.
struct Reduction {
    parts: &'static [f64],
    /// Magnitudes from this limit on are reduced in integer arithmetic.
    limit: f64,
}

const FUSED_F32: Reduction =
    Reduction { parts: &[1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15], limit: 131072.0 };
const FUSED_F64: Reduction =
    Reduction { parts: &[FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33], limit: 1073741824.0 };
const PLAIN_F32: Reduction = Reduction {
    parts: &[1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12],
    limit: 8192.0,
};
const PLAIN_F64: Reduction = Reduction {
    parts: &[1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32],
    limit: 1048576.0,
};

/// Coefficients of `(sin r - r) / r^3` and `(cos r - 1 + r^2/2) / r^4` in `r^2` on `|r| <= pi / 4`.
const SINE_F32: &[f64] = &[-0.16666654, 0.008332106, -0.0001950789];
const SINE_F64: &[f64] = &[
    -0.1666666666666663,
    0.008333333333321745,
    -0.00019841269829238553,
    2.7557313486759348e-06,
    -2.5050725116606508e-08,
    1.5894842665322702e-10,
];
const COSINE_F32: &[f64] = &[0.041666646, -0.0013887305, 2.4431425e-05];
const COSINE_F64: &[f64] = &[
    0.04166666666666659,
    -0.0013888888888872186,
    2.480158728829539e-05,
    -2.7557314015122104e-07,
    2.0875678084653463e-09,
    -1.1357336704679859e-11,
];

/// Reduced magnitude `x = q pi / 2 + r` with `|r| <= pi / 4`: the sine and cosine of `r`, and `q`, of which only the
/// two lowest bits matter.
struct Octant<'e, 'ctx> {
    quadrant: Lanes<'e, 'ctx>,
    sine: Lanes<'e, 'ctx>,
    cosine: Lanes<'e, 'ctx>,
}

/// Reduces a magnitude to `[k, r, low]` with the value `k pi / 2 + r + low`.
fn reduce<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> [Lanes<'e, 'ctx>; 3] {
    let fused = x.float_abilities().fma;
    let Reduction { parts, limit } = match fused {
        true => by_precision(x, &FUSED_F32, &FUSED_F64),
        false => by_precision(x, &PLAIN_F32, &PLAIN_F64),
    };
    let k = x.nearest_multiple(std::f64::consts::FRAC_2_PI);
    let [exact @ .., main, last] = parts else {
        return [k, x, x];
    };
    // These steps are exact. The rounding error of the next step is added to the second word, with the last part.
    let before = exact.iter().fold(x, |r, &part| k.fma(-part, r));
    let product = exact_product(k, k.constant(*main));
    let r = exact_sum_ordered(before, -product.high);
    let low = k.fma(-last, r.low - product.low);
    let r = r.high;
    // Infinity and NaN are not below the limit either.
    let huge = !x.lt(*limit);
    huge.rarely([k, r, low], || {
        let scalar = x.scalar();
        let [k, r, low] = x.to_float(Scalar::F64).lane_by_lane("xla.reduce_huge_angle", reduce_huge);
        let main = r.to_float(scalar);
        [k.to_float(scalar), main, (r - main.to_float(Scalar::F64) + low).to_float(scalar)]
    })
}

fn octant<'e, 'ctx>(magnitude: Lanes<'e, 'ctx>) -> Octant<'e, 'ctx> {
    let [k, r, low] = reduce(magnitude);
    let z = r * r;
    let sine = (z * r).fma(z.polynomial(by_precision(r, SINE_F32, SINE_F64)), low) + r;
    // cos(r + low) = cos r - r low
    let small = (z * z).fma(z.polynomial(by_precision(r, COSINE_F32, COSINE_F64)), -(r * low));
    let half = z * 0.5;
    let cosine = half.constant(1.0) - half;
    // Add back the rounding error of 1 - z/2, which is computed exactly.
    let cosine = cosine + ((cosine.constant(1.0) - cosine - half) + small);
    Octant { quadrant: k.small_to_int(), sine, cosine }
}

impl<'e, 'ctx> Octant<'e, 'ctx> {
    /// Whether sine and cosine are swapped.
    fn odd(&self) -> Lanes<'e, 'ctx> {
        (self.quadrant & 1).ne(0)
    }
}

/// Negates `x` where the second bit of `quadrant` is set, and again where `sign` is negative.
fn with_sign<'e, 'ctx>(
    x: Lanes<'e, 'ctx>,
    quadrant: Lanes<'e, 'ctx>,
    sign: Option<Lanes<'e, 'ctx>>,
) -> Lanes<'e, 'ctx> {
    let top = i64::from(x.scalar().bits()) - 2;
    let mut flip = quadrant << top;
    if let Some(sign) = sign {
        flip = flip ^ sign.bits();
    }
    (x.bits() ^ (flip & (1_i64 << (top + 1)))).as_float()
}

/// Returns `sin x` for any finite `x`. Error at most 0.9 ulp (f32) and 0.8 ulp (f64).
pub fn sin<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let octant = octant(x.fabs());
    with_sign(octant.odd().select(octant.cosine, octant.sine), octant.quadrant, Some(x))
}

/// Returns `cos x` for any finite `x`. Error at most 0.9 ulp (f32) and 0.8 ulp (f64).
pub fn cos<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let octant = octant(x.fabs());
    with_sign(octant.odd().select(octant.sine, octant.cosine), octant.quadrant + 1, None)
}

/// Returns `sin x` and `cos x`, which share most of their work.
pub fn sin_cos<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> (Lanes<'e, 'ctx>, Lanes<'e, 'ctx>) {
    let octant = octant(x.fabs());
    let odd = octant.odd();
    let sine = with_sign(odd.select(octant.cosine, octant.sine), octant.quadrant, Some(x));
    let cosine = with_sign(odd.select(octant.sine, octant.cosine), octant.quadrant + 1, None);
    (sine, cosine)
}

/// Returns `tan x` for any finite `x`. Error at most 2.25 ulp (f32) and 1.85 ulp (f64).
pub fn tan<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    let octant = octant(x.fabs());
    let odd = octant.odd();
    let quotient = odd.select(octant.cosine, octant.sine) / odd.select(octant.sine, octant.cosine);
    with_sign(quotient, octant.quadrant << 1, Some(x))
}
