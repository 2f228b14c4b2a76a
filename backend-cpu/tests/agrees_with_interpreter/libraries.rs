//! Tests of operations computed by runtime library functions, against the reference evaluator.

use xla_tests::agreement::programs::linalg::{decompositions, solves};

use crate::native;

/// Checks transforms of every kind over dimensions, after outer ones, in both precisions.
fn transforms(outer: &str, dims: &[usize]) {
    let list = |dims: &[usize]| dims.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let length = list(dims);
    let mut half = dims.to_vec();
    let last = half.last_mut().expect("a dimension");
    *last = if *last == 0 { 0 } else { *last / 2 + 1 };
    let half = list(&half);
    for (real, complex) in [("f32", "c64"), ("f64", "c128")] {
        native(&format!(
            "HloModule m
            ENTRY main {{
              x = {complex}[{outer}{length}] parameter(0)
              y = {real}[{outer}{length}] parameter(1)
              z = {complex}[{outer}{half}] parameter(2)
              a = {complex}[{outer}{length}] fft(x), fft_type=FFT, fft_length={{{length}}}
              b = {complex}[{outer}{length}] fft(x), fft_type=IFFT, fft_length={{{length}}}
              c = {complex}[{outer}{half}] fft(y), fft_type=RFFT, fft_length={{{length}}}
              d = {real}[{outer}{length}] fft(z), fft_type=IRFFT, fft_length={{{length}}}
              ROOT t = ({complex}[{outer}{length}], {complex}[{outer}{length}], {complex}[{outer}{half}], {real}[{outer}{length}])
                tuple(a, b, c, d)
            }}"
        ));
    }
}

#[test]
fn transforms_of_one_dimension() {
    for n in [0, 1, 2, 3, 8, 15, 17, 60] {
        transforms("3,2,", &[n]);
    }
    transforms("0,", &[4]);
    transforms("", &[16]);
}

#[test]
fn transforms_of_several_dimensions() {
    for dims in [&[5, 4][..], &[1, 6], &[6, 1], &[0, 4], &[4, 0], &[3, 4, 5], &[2, 1, 3], &[7, 3, 40]] {
        transforms("2,", dims);
    }
}

#[test]
fn decompositions_of_all_sizes() {
    for ty in ["f32", "f64", "c64", "c128"] {
        for (batch, n) in [(2, 0), (0, 3), (3, 1), (5, 4), (2, 31), (1, 33), (2, 100), (1, 150)] {
            native(&decompositions(ty, batch, n));
        }
    }
}

#[test]
fn solves_in_every_form() {
    for ty in ["f32", "f64", "c64", "c128"] {
        for (batch, n, m) in
            [(1, 0, 3), (2, 3, 0), (0, 2, 2), (3, 1, 1), (2, 5, 3), (1, 32, 7), (1, 45, 130), (1, 100, 1)]
        {
            native(&solves(ty, batch, n, m));
        }
    }
}

#[test]
fn solves_on_several_threads() {
    native(&solves("f32", 1, 70, 200));
    native(&solves("f64", 40, 20, 20));
}

/// Checks contractions of one type with `epilogue`, which reads the result `d`, a bias `v` and another array `r`, each
/// of shape `ARRAY`.
fn contractions_and(ty: &str, epilogue: &str) {
    let dot = "x = T[3,40,24] parameter(0)
          w = T[24,56] parameter(1)
          d = ARRAY dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}";
    let convolution = "x = T[3,20,20,8] parameter(0)
          w = T[3,3,8,56] parameter(1)
          d = ARRAY convolution(x, w), window={size=3x3 stride=2x5 pad=1_0x0_0}, dim_labels=b01f_01io->b01f";
    for (contraction, dims, last) in [(dot, "3,40,56", 2), (convolution, "3,10,4,56", 3)] {
        let text = format!(
            "HloModule m
            ENTRY main {{
              {contraction}
              b = T[56] parameter(2)
              r = ARRAY parameter(3)
              v = ARRAY broadcast(b), dimensions={{{last}}}
              {epilogue}
            }}"
        );
        native(&text.replace("ARRAY", &format!("{ty}[{dims}]")).replace("T[", &format!("{ty}[")));
    }
}

#[test]
fn contractions_with_what_is_done_to_their_results() {
    for ty in ["f32", "f64", "c64", "s32"] {
        contractions_and(ty, "ROOT s = ARRAY add(d, v)");
    }
    for ty in ["f32", "f64"] {
        let chain =
            "s = ARRAY add(d, v)\n t = ARRAY tanh(s)\n u = ARRAY multiply(t, r)\n ROOT o = ARRAY subtract(u, d)";
        contractions_and(ty, chain);
    }
}
