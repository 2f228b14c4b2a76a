//! Cholesky factorisations and triangular solves: small matrices by one kernel, larger ones in blocks.

use super::agrees;

const TYPES: [&str; 6] = ["f32", "f64", "c64", "c128", "f16", "bf16"];

/// A program with matrices `m` of `n` rows that are far from singular, and more lines. `$` stands for the type, `@` for
/// the dimensions of the matrices.
fn program(ty: &str, batch: &str, n: usize, lines: &str) -> String {
    let rank = usize::from(!batch.is_empty());
    let batched = if rank == 0 { "" } else { "lhs_batch_dims={0}, rhs_batch_dims={0}, " };
    let last = rank + 1;
    let real = match ty {
        "c64" => "f32",
        "c128" => "f64",
        _ => ty,
    };
    let (y, weight) = if real == ty { ("copy(x)", format!("{n}")) } else { ("complex(re, no)", format!("({n}, 0)")) };
    let text = format!(
        "HloModule m
        ENTRY main {{
          x = $@ parameter(0)
          re = {real}@ real(x)
          im = {real}@ imag(x)
          no = {real}@ negate(im)
          y = $@ {y}
          p = $@ dot(x, y), {batched}lhs_contracting_dims={{{last}}}, rhs_contracting_dims={{{last}}}
          i = s32@ iota(), iota_dimension={rank}
          j = s32@ iota(), iota_dimension={last}
          d = pred@ compare(i, j), direction=EQ
          w = $@ convert(d)
          n = $[] constant({weight})
          f = $@ broadcast(n), dimensions={{}}
          g = $@ multiply(w, f)
          m = $@ add(p, g)
          {lines}
        }}"
    );
    text.replace('$', ty).replace('@', &format!("[{batch}{n},{n}]"))
}

#[test]
fn factors_of_every_type() {
    for ty in TYPES {
        agrees(&program(ty, "", 5, "ROOT r = $@ cholesky(m), lower=true"));
        agrees(&program(ty, "3,", 40, "ROOT r = $@ cholesky(m)"));
    }
}

#[test]
fn factors_of_every_size() {
    for n in [0, 1, 2, 31, 32, 33, 63, 64, 65, 130] {
        agrees(&program("f32", "2,", n, "ROOT r = $@ cholesky(m), lower=true"));
    }
    for n in [31, 32, 33, 64] {
        agrees(&program("c128", "0,", n, "ROOT r = $@ cholesky(m), lower=true"));
        agrees(&program("c128", "", n, "ROOT r = $@ cholesky(m), lower=true"));
    }
}

#[test]
fn what_is_not_positive_definite_has_no_factor() {
    for (n, bad) in [(3, 0), (40, 39), (64, 10), (100, 70), (100, 99)] {
        for pivot in ["0", "-1", "nan"] {
            let lines = format!(
                "bad = s32[] constant({bad})
                 bads = s32@ broadcast(bad), dimensions={{}}
                 here = pred@ compare(i, bads), direction=EQ
                 pivot = f32[] constant({pivot})
                 pivots = f32@ broadcast(pivot), dimensions={{}}
                 z = $@ select(here, pivots, w)
                 ROOT r = $@ cholesky(z), lower=true"
            );
            agrees(&program("f32", "", n, &lines));
        }
    }
}

#[test]
fn solves_of_every_type() {
    for ty in TYPES {
        for (n, columns) in [(6, 1), (32, 33), (70, 3)] {
            for form in ["lower=true", "unit_diagonal=true", "lower=true, unit_diagonal=true"] {
                let lines = format!(
                    "b = $[{n},{columns}] parameter(1)
                     ROOT r = $[{n},{columns}] triangular-solve(m, b), left_side=true, transpose_a=NO_TRANSPOSE, {form}"
                );
                agrees(&program(ty, "", n, &lines));
            }
        }
    }
}

#[test]
fn solves_of_every_form() {
    for transpose in ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"] {
        for (n, left, shape) in [(9, true, "[2,9,40]"), (9, false, "[2,3,9]"), (129, true, "[2,129,5]")] {
            for lower in [true, false] {
                let lines = format!(
                    "b = ${shape} parameter(1)
                     ROOT r = ${shape} triangular-solve(m, b), left_side={left}, lower={lower}, transpose_a={transpose}"
                );
                agrees(&program("c64", "2,", n, &lines));
                agrees(&program("f32", "2,", n, &lines));
            }
        }
    }
}

/// What the other triangle holds does not count.
#[test]
fn the_other_triangle_is_not_read() {
    for n in [20, 90] {
        let lines = format!(
            "above = pred@ compare(i, j), direction=LT
             nan = $[] constant(nan)
             nans = $@ broadcast(nan), dimensions={{}}
             z = $@ select(above, nans, m)
             b = $[{n},4] parameter(1)
             s = $[{n},4] triangular-solve(z, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
             l = $@ cholesky(z), lower=true
             ROOT r = ($[{n},4], $@) tuple(s, l)"
        );
        agrees(&program("f32", "", n, &lines));
    }
}
