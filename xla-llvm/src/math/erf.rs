//! The error function.

use super::exp::exp;
use crate::lanes::{Lanes, Scalar};

const TWO_OVER_ROOT_PI: (f64, f64) = (1.128379225730896, -5.8635382771399236e-08);

/// `erf x / x` in `x^2` up to where the result rounds to 1; the numerator without its first coefficient.
const NUMERATOR_F32: &[f64] = &[0.19077013, 0.05278832, 0.0037789473, 0.0002847853, 2.0418995e-06];
const DENOMINATOR_F32: &[f64] = &[1.0, 0.50239843, 0.11425169, 0.014996149, 0.0011650375, 3.8002454e-05];

/// `erf x / x` in `x^2` up to 0.88.
const NEAR_F64: &[f64] = &[
    1.1283791670955126,
    -0.37612638903183276,
    0.11283791670930697,
    -0.026866170640227643,
    0.00522397757479361,
    -0.0008548323959844357,
    0.00012055216887392844,
    -1.4922805077481483e-05,
    1.6416803395308297e-06,
    -1.5908022244789821e-07,
    1.2058493316703893e-08,
    -3.8373021581238515e-10,
];

/// `erfc x e^(x^2)` in `(x - 3) / (x + 3)` from 0.88 up to 5.93.
const FAR_F64: &[f64] = &[
    0.1790011511813897,
    -0.32623356004303045,
    0.24560380171297885,
    -0.15011593648877325,
    0.07166583725804479,
    -0.024392500079173412,
    0.004269121710612911,
    0.000707629704885921,
    -0.000597633687095395,
    4.337050937061801e-05,
    5.9751301638672865e-05,
    -1.9655280580536904e-05,
    -1.5135821219031898e-05,
    -2.4535002128330487e-06,
];

/// `erf x`. Error at most 3 ulp (f32) and 1 ulp (f64).
pub fn erf<'e, 'ctx>(x: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
    if x.scalar() != Scalar::F64 {
        let x = x.within(-3.93, 3.93);
        let z = x * x;
        // 2 / sqrt(pi) in two parts, as f32 is unlucky with it.
        let rest = z.fma(z.polynomial(NUMERATOR_F32), TWO_OVER_ROOT_PI.1);
        return x.fma(TWO_OVER_ROOT_PI.0, x * rest) / z.polynomial(DENOMINATOR_F32);
    }
    let magnitude = x.constant(5.93).lesser(x.fabs());
    let near = x * (x * x).polynomial(NEAR_F64);
    let t = (magnitude - 3.0) / (magnitude + 3.0);
    let far = x.constant(1.0) - exp(-(magnitude * magnitude)) * t.polynomial(FAR_F64);
    magnitude.lt(0.88).select(near, far.copysign(x))
}
