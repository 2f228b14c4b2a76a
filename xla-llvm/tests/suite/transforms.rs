//! Tests of Fourier transforms as one kernel, against the evaluator at each x86 level that this machine executes.

use crate::guarded::check_within;

/// Largest difference: operands are small integers, so sums of some hundred terms are below 1000.
const LIMIT: f64 = 1e-3;

/// Compares a transform of the last dimensions of an array with the evaluator.
fn transform(kind: &str, ty: [&str; 2], batch: &str, dims: &[usize]) {
    let list = |dims: &[usize]| dims.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let (last, outer) = dims.split_last().unwrap();
    let [real, complex] = ty;
    let full = format!("{batch}{}", list(dims));
    let half = format!("{complex}[{batch}{}]", list(&[outer, &[last / 2 + 1]].concat()));
    let (operand, result) = match kind {
        "RFFT" => (format!("{real}[{full}]"), half),
        "IRFFT" => (half, format!("{real}[{full}]")),
        _ => (format!("{complex}[{full}]"), format!("{complex}[{full}]")),
    };
    let text = format!(
        "HloModule transform
         ENTRY main {{
           x = {operand} parameter(0)
           ROOT y = {result} fft(x), fft_type={kind}, fft_length={{{}}}
         }}\n",
        list(dims)
    );
    check_within(&text, "fft", LIMIT);
}

const SINGLE: [&str; 2] = ["f32", "c64"];

/// Powers of two, mixed radices, a prime that is one radix, and one that is a convolution; lines one by one and in
/// blocks of a vector's width, the last of them not full.
#[test]
fn lines() {
    for n in [1, 2, 8, 15, 31, 37, 60, 64] {
        transform("FFT", SINGLE, "", &[n]);
    }
    for (batch, n) in [("3,", 60), ("37,", 8), ("21,", 15), ("17,", 37)] {
        transform("IFFT", SINGLE, batch, &[n]);
    }
    transform("FFT", ["f64", "c128"], "5,", &[24]);
}

/// Columns in blocks, the last of them not full, of one pass and several and by convolution.
#[test]
fn columns() {
    for dims in [&[5, 33][..], &[64, 3], &[37, 3], &[3, 4, 5], &[5, 1], &[1, 6]] {
        transform("FFT", SINGLE, "", dims);
    }
}

/// Real transforms of even lengths are complex ones of half the length; of odd lengths, pairs of lines are one.
#[test]
fn real_numbers() {
    for kind in ["RFFT", "IRFFT"] {
        for (batch, dims) in [
            ("", &[1][..]),
            ("", &[2]),
            ("3,", &[15]),
            ("2,", &[64]),
            ("", &[74]),
            ("19,", &[8]),
            ("", &[4, 6]),
            ("2,", &[3, 5]),
        ] {
            transform(kind, SINGLE, batch, dims);
        }
    }
}
