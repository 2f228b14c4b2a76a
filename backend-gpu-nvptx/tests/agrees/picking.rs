//! Tests of top-k.

use super::agrees;

fn top_k(ty: &str, rows: &str, length: usize, k: usize, largest: bool) -> String {
    format!(
        "HloModule m
        ENTRY main {{
          x = {ty}[{rows}{length}] parameter(0)
          ROOT r = ({ty}[{rows}{k}], s32[{rows}{k}]) topk(x), k={k}, largest={largest}
        }}"
    )
}

#[test]
fn elements_of_every_type() {
    for ty in ["s8", "u8", "s16", "u16", "s32", "u32", "f16", "bf16", "f32", "s64", "f64", "pred", "f8e5m2"] {
        agrees(&top_k(ty, "3,", 300, 5, true));
        agrees(&top_k(ty, "3,", 300, 5, false));
    }
}

#[test]
fn rows_of_every_length() {
    for (rows, length, k) in [
        ("", 1, 1),
        ("5,", 7, 7),
        ("9,", 64, 2),
        ("2,3,", 129, 64),
        ("2,", 1031, 65),
        ("", 5000, 8),
        ("2,", 4096, 1),
        ("0,", 40, 3),
        ("4,", 10, 0),
        ("3,", 0, 0),
    ] {
        agrees(&top_k("f32", rows, length, k, true));
        agrees(&top_k("s32", rows, length, k, false));
    }
}

#[test]
fn the_best_may_all_be_one_threads() {
    for every in [32, 256, 1024] {
        agrees(&format!(
            "HloModule m
            ENTRY main {{
              place = s32[2,8192] iota(), iota_dimension=1
              every = s32[] constant({every})
              each = s32[2,8192] broadcast(every), dimensions={{}}
              rest = s32[2,8192] remainder(place, each)
              seven = s32[] constant(7)
              sevens = s32[2,8192] broadcast(seven), dimensions={{}}
              here = pred[2,8192] compare(rest, sevens), direction=EQ
              minus = s32[2,8192] negate(place)
              x = s32[2,8192] select(here, place, minus)
              ROOT r = (s32[2,20], s32[2,20]) topk(x), k=20, largest=true
            }}"
        ));
    }
}

#[test]
fn more_than_a_few_are_selected_by_digits() {
    // Keys of every width from 4 bits on, with more equal keys than a block sorts.
    for ty in ["pred", "s4", "u8", "s16", "bf16", "f32", "u32", "s64", "f64", "f8e4m3fn"] {
        for largest in [true, false] {
            agrees(&top_k(ty, "3,", 1300, 20, largest));
            agrees(&top_k(ty, "2,", 300, 300, largest));
        }
    }
    for (rows, length, k) in [("", 9000, 1024), ("2,", 2600, 129), ("3,", 257, 9), ("", 1500, 1025)] {
        agrees(&top_k("f32", rows, length, k, true));
        agrees(&top_k("s64", rows, length, k, false));
    }
}

#[test]
fn chunks_of_long_rows_are_merged() {
    for ty in ["f32", "s8", "f64"] {
        agrees(&top_k(ty, "2,", 20_011, 3, true));
        agrees(&top_k(ty, "", 33_000, 100, false));
    }
}

#[test]
fn of_many_equal_elements_the_first_are_taken() {
    for (value, k) in [("0", 9), ("-1", 200), ("nan", 33)] {
        for largest in [true, false] {
            agrees(&format!(
                "HloModule m
                ENTRY main {{
                  value = f32[] constant({value})
                  most = f32[2,40000] broadcast(value), dimensions={{}}
                  place = f32[2,40000] iota(), iota_dimension=1
                  modulus = f32[] constant(977)
                  each = f32[2,40000] broadcast(modulus), dimensions={{}}
                  rest = f32[2,40000] remainder(place, each)
                  zero = f32[] constant(0)
                  zeros = f32[2,40000] broadcast(zero), dimensions={{}}
                  seldom = pred[2,40000] compare(rest, zeros), direction=EQ
                  x = f32[2,40000] select(seldom, place, most)
                  ROOT r = (f32[2,{k}], s32[2,{k}]) topk(x), k={k}, largest={largest}
                }}"
            ));
        }
    }
}
