//! Roots of unity in the direction of a transform.

use xla_hlo::ops::Fft;

/// Returns `exp(sign 2 pi i k / n)`.
pub(super) fn root(k: usize, n: usize, sign: f64) -> (f64, f64) {
    let (re, im) = Fft::root(k, n);
    (re, -sign * im)
}

/// Returns the [chirp](Fft::chirp) of a transform, or its conjugate for the inverse one.
pub(super) fn chirp(n: usize, inverse: bool) -> Vec<(f64, f64)> {
    let sign = if inverse { -1.0 } else { 1.0 };
    Fft::chirp(n).into_iter().map(|(re, im)| (re, sign * im)).collect()
}
