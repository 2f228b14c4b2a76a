//! Tests of sorts and top-k.

use xla_tests::agreement::programs::{BY_PART, BY_SIZE_THEN_PLACE, sort_of};

use crate::native;

#[test]
fn sorts_by_keys_of_every_width() {
    let types = [
        ("pred", ""),
        ("s4", ""),
        ("u8", ""),
        ("s16", ""),
        ("s32", ""),
        ("u64", ""),
        ("f8e5m2", ", type=TOTALORDER"),
        ("bf16", ", type=TOTALORDER"),
        ("f32", ""),
        ("f64", ", type=TOTALORDER"),
    ];
    for (ty, order) in types {
        for direction in ["LT", "GT"] {
            let before = format!("ROOT r = pred[] compare(a, b), direction={direction}{order}");
            native(&sort_of(ty, "700", 0, &before));
            native(&sort_of(ty, "3,11,5", 1, &before));
        }
    }
    native(&sort_of("f32", "40000", 0, "ROOT r = pred[] compare(b, a), direction=GT"));
    native(&sort_of("s64", "3,20000", 1, "ROOT r = pred[] compare(a, b), direction=LT"));
}

#[test]
fn sorts_by_any_comparator() {
    for (dims, dimension) in [("1", 0), ("0,3", 1), ("300", 0), ("4,70,3", 1), ("20000", 0)] {
        native(&sort_of("f32", dims, dimension, BY_SIZE_THEN_PLACE));
    }
    native(&sort_of("c64", "2,90", 1, BY_PART));
    native(&sort_of("c128", "90", 0, &BY_PART.replace("f32", "f64")));
}

#[test]
fn sorts_one_array_with_special_values() {
    for (count, order) in [(50, "LT"), (3000, "GT"), (50_000, "LT")] {
        native(&format!(
            "HloModule m
            before {{
              a = f32[] parameter(0)
              b = f32[] parameter(1)
              quiet = f32[] constant(nan)
              zero = f32[] constant(0)
              na = pred[] compare(a, a), direction=NE
              za = pred[] compare(a, zero), direction=EQ
              sa = f32[] select(za, zero, a)
              ka = f32[] select(na, quiet, sa)
              nb = pred[] compare(b, b), direction=NE
              zb = pred[] compare(b, zero), direction=EQ
              sb = f32[] select(zb, zero, b)
              kb = f32[] select(nb, quiet, sb)
              ROOT r = pred[] compare(ka, kb), direction={order}, type=TOTALORDER
            }}
            ENTRY main {{
              x = f32[{count}] parameter(0)
              rough = f32[{count}] round-nearest-even(x)
              odd = f32[{count}] divide(x, rough)
              sorted = f32[{count}] sort(odd), dimensions={{0}}, is_stable=true, to_apply=before
              signs = f32[{count}] multiply(rough, rough)
              zeros = f32[{count}] negate(signs)
              ROOT r = f32[{count}] add(sorted, zeros)
            }}"
        ));
    }
}

#[test]
fn the_best_of_rows() {
    for ty in ["f32", "bf16", "s8", "u32", "f64", "s64", "pred", "f8e4m3fn", "u4"] {
        for (dims, rows, k) in [("2000", "", 5), ("7,300", "7,", 20), ("3,4,40", "3,4,", 40), ("2,9", "2,", 0)] {
            for largest in [true, false] {
                native(&format!(
                    "HloModule m
                    ENTRY main {{
                      x = {ty}[{dims}] parameter(0)
                      ROOT r = ({ty}[{rows}{k}], s32[{rows}{k}]) topk(x), k={k}, largest={largest}
                    }}"
                ));
            }
        }
    }
}
