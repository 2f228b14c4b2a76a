//! Roots of unity and constants derived from them.

use std::f64::consts::TAU;

/// Returns cosine and sine of the angle `2 pi k / n`, the sine multiplied by `sign`.
pub(super) fn root(k: usize, n: usize, sign: f64) -> [f64; 2] {
    let angle = TAU * k as f64 / n as f64;
    [exact(angle.cos()), sign * exact(angle.sin())]
}

/// Rounds to zero values that are nonzero only because multiples of `pi / 2` are not exact.
fn exact(x: f64) -> f64 {
    if x.abs() < 1e-15 { 0.0 } else { x }
}

/// Returns `exp(-pi i j^2 / n)` for each `j`, or the conjugates.
pub(super) fn chirp(n: usize, inverse: bool) -> Vec<[f64; 2]> {
    let sign = if inverse { 1.0 } else { -1.0 };
    // Lengths are far from values whose squares overflow.
    (0..n).map(|j| root(j * j % (2 * n), 2 * n, sign)).collect()
}

/// Returns the transform of the conjugate chirp at positive and negative indices, padded to `size` and divided by it.
pub(super) fn kernel(chirp: &[[f64; 2]], size: usize) -> Vec<[f64; 2]> {
    let mut values = vec![[0.0; 2]; size];
    for (j, &[re, im]) in chirp.iter().enumerate() {
        let scaled = [re / size as f64, -im / size as f64];
        values[j] = scaled;
        values[(size - j) % size] = scaled;
    }
    transform(&values)
}

/// Returns the transform of a line whose length is a power of two.
fn transform(x: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let n = x.len();
    if n <= 1 {
        return x.to_vec();
    }
    let [even, odd] = [0, 1].map(|first| transform(&x.iter().skip(first).step_by(2).copied().collect::<Vec<_>>()));
    let one = |k: usize| {
        let ([a, b], [c, d], [cos, sin]) = (even[k % (n / 2)], odd[k % (n / 2)], root(k, n, -1.0));
        [a + c * cos - d * sin, b + c * sin + d * cos]
    };
    (0..n).map(one).collect()
}
