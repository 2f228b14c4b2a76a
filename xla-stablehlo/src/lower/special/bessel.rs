//! Modified Bessel function.

use xla_hlo::ElementType;

use super::formula::Term;

/// `e^-|x| I_1(x)`, where `I_1` is the modified Bessel function of the first kind.
///
/// Uses two Chebyshev series, split at `|x| = 8`. The coefficients were interpolated at the Chebyshev nodes with 40
/// digits.
pub(super) fn i1e(x: Term<'_>) -> Term<'_> {
    let magnitude = x.abs();
    let near = chebyshev(magnitude / 4.0 - 1.0, &NEAR) * magnitude;
    let far = chebyshev(16.0 / magnitude - 1.0, &FAR) / magnitude.sqrt();
    magnitude.is_at_most(8.0).select(near, far) * x.sign()
}

/// Evaluates the sum of `c[k] T_k(t)` with Clenshaw's recurrence.
fn chebyshev<'t>(t: Term<'t>, coefficients: &[f64]) -> Term<'t> {
    // Terms below a hundredth of an ulp of the sum are skipped because they only cost time.
    let smallest = if t.element_type() == ElementType::F64 { 0.0 } else { 1e-10 };
    let count = coefficients.iter().rposition(|c| c.abs() > smallest).unwrap_or(0) + 1;
    let twice = t + t;
    let (mut last, mut before) = (t.constant(0.0), t.constant(0.0));
    for &coefficient in coefficients[1..count].iter().rev() {
        (last, before) = (twice * last - before + coefficient, last);
    }
    t * last - before + coefficients[0]
}

/// Chebyshev coefficients of `e^-y I_1(y) / y` in `y / 4 - 1`, for `y <= 8`.
const NEAR: [f64; 28] = [
    0.12629359322181682,
    -0.17641651835783406,
    0.1026436586898471,
    -0.05294598120809499,
    0.024726449030626516,
    -0.010564084894626197,
    0.004156422944312888,
    -0.0015135724506312532,
    0.0005122859561685758,
    -0.00016176081582589674,
    4.781565107550054e-05,
    -1.3273163656039436e-05,
    3.4702513081376785e-06,
    -8.568720264695455e-07,
    2.0032947535521353e-07,
    -4.445059128796328e-08,
    9.381537386495773e-09,
    -1.8872497517228294e-09,
    3.625590281552117e-10,
    -6.663489723502027e-11,
    1.1736186298890901e-11,
    -1.9839743977649436e-12,
    3.223793365945575e-13,
    -5.042185504727912e-14,
    7.600684294735408e-15,
    -1.1055969477353862e-15,
    1.5536319577362005e-16,
    -2.111421214358166e-17,
];

/// Chebyshev coefficients of `e^-y I_1(y) sqrt(y)` in `16 / y - 1`, for `y >= 8`.
const FAR: [f64; 23] = [
    0.38928811750914005,
    -0.009761097491361469,
    -0.00011058893876262371,
    -3.882564808877691e-06,
    -2.512236237870209e-07,
    -2.6314688468895196e-08,
    -3.835380385964237e-09,
    -5.589743462196584e-10,
    -1.8974958123505413e-11,
    3.2526035830154884e-11,
    1.4125807436613782e-11,
    2.0356285441470896e-12,
    -7.198551776245908e-13,
    -4.0835511110921974e-13,
    -2.1015418427726643e-14,
    4.272440016711951e-14,
    1.0420276984128802e-14,
    -3.8144030724370075e-15,
    -1.8803547755107825e-15,
    3.3082023109209285e-16,
    2.96262899764595e-16,
    -3.209525921993424e-17,
    -4.6503053684893586e-17,
];
