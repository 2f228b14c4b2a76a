//! Arrays so large that each thread computes as many elements as the widest access has.

use super::agrees;

/// Enough elements for the widest accesses of all types, and some that only narrower ones divide.
const SIZES: &[usize] = &[1 << 20, (1 << 18) + 4];

#[test]
fn elements_of_one_type() {
    for element in ["pred", "s8", "u8", "f8e4m3fn", "s16", "bf16", "f16", "s32", "f32", "f64", "c64"] {
        for &size in SIZES {
            agrees(&format!(
                "HloModule m
                ENTRY main {{
                  x = {element}[{size}] parameter(0)
                  y = {element}[{size}] parameter(1)
                  p = pred[{size}] compare(x, y), direction=NE
                  ROOT r = {element}[{size}] select(p, y, x)
                }}"
            ));
        }
    }
}

#[test]
fn elements_of_several_types() {
    for [narrow, wide] in [["bf16", "f32"], ["s8", "f32"], ["f16", "f64"], ["pred", "f64"], ["u16", "s64"]] {
        for &size in SIZES {
            agrees(&format!(
                "HloModule m
                ENTRY main {{
                  x = {narrow}[{size}] parameter(0)
                  y = {wide}[{size}] parameter(1)
                  w = {wide}[{size}] convert(x)
                  s = {wide}[{size}] maximum(w, y)
                  p = pred[{size}] compare(w, y), direction=EQ
                  ROOT r = ({wide}[{size}], pred[{size}]) tuple(s, p)
                }}"
            ));
        }
    }
}
