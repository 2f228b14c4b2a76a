//! Tests of Cholesky decompositions and triangular solves: small matrices by one kernel, larger ones in blocks.

use xla_tests::agreement::programs::linalg::{decompositions, solves};

use super::agrees;

const TYPES: [&str; 4] = ["f32", "f64", "c64", "c128"];

#[test]
fn factors_of_every_size() {
    for ty in TYPES {
        for (batch, n) in [(2, 0), (0, 3), (3, 1), (5, 4), (2, 31), (1, 32), (2, 33), (1, 64), (2, 65), (1, 130)] {
            agrees(&decompositions(ty, batch, n));
        }
    }
}

#[test]
fn solves_in_every_form() {
    for ty in TYPES {
        for (batch, n, m) in
            [(1, 0, 3), (2, 3, 0), (0, 2, 2), (3, 1, 1), (2, 5, 3), (1, 32, 33), (1, 45, 64), (1, 64, 2), (2, 100, 1)]
        {
            agrees(&solves(ty, batch, n, m));
        }
    }
}

/// Diagonal matrix with one element that is not positive, in any block.
#[test]
fn what_is_not_positive_definite_has_no_factor() {
    for (n, place) in [(3, 0), (40, 39), (64, 10), (100, 70), (100, 99)] {
        for pivot in ["0", "-1", "nan"] {
            agrees(&format!(
                "HloModule m
                ENTRY main {{
                  i = s32[{n},{n}] iota(), iota_dimension=0
                  j = s32[{n},{n}] iota(), iota_dimension=1
                  e = pred[{n},{n}] compare(i, j), direction=EQ
                  d = f32[{n},{n}] convert(e)
                  k = s32[] constant({place})
                  ks = s32[{n},{n}] broadcast(k), dimensions={{}}
                  is = pred[{n},{n}] compare(i, ks), direction=EQ
                  here = pred[{n},{n}] and(is, e)
                  p = f32[] constant({pivot})
                  ps = f32[{n},{n}] broadcast(p), dimensions={{}}
                  a = f32[{n},{n}] select(here, ps, d)
                  ROOT l = f32[{n},{n}] cholesky(a), lower=true
                }}"
            ));
        }
    }
}

/// The values of the other triangle are ignored.
#[test]
fn the_other_triangle_is_not_read() {
    for n in [20, 90] {
        agrees(&format!(
            "HloModule m
            ENTRY main {{
              i = s32[{n},{n}] iota(), iota_dimension=0
              j = s32[{n},{n}] iota(), iota_dimension=1
              e = pred[{n},{n}] compare(i, j), direction=EQ
              d = f32[{n},{n}] convert(e)
              above = pred[{n},{n}] compare(i, j), direction=LT
              no = f32[] constant(nan)
              nos = f32[{n},{n}] broadcast(no), dimensions={{}}
              a = f32[{n},{n}] select(above, nos, d)
              b = f32[{n},4] parameter(0)
              x = f32[{n},4] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
              l = f32[{n},{n}] cholesky(a), lower=true
              ROOT r = (f32[{n},4], f32[{n},{n}]) tuple(x, l)
            }}"
        ));
    }
}
