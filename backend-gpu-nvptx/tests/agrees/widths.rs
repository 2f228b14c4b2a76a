//! Tests of arrays large enough that each thread computes a full vector of the widest access.

use super::agrees;

/// Sizes with enough elements for the widest accesses of all types, and one that only narrower accesses divide.
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

/// Fusions of a thousand instructions and more, with few live values and with more than fit in registers: a thread
/// computes fewer elements, or there are several kernels.
#[test]
fn large_fusions() {
    for (ty, alive, count) in [("f32", 6, 3000), ("f32", 90, 1500), ("bf16", 60, 1000), ("s32", 300, 1500)] {
        let mut lines = format!("x = {ty}[SIZE] parameter(0)\ny = {ty}[SIZE] parameter(1)\n");
        let mut values = vec!["x".to_string(), "y".to_string()];
        let mut random = 1u32;
        for number in 0..count {
            let mut next = |bound: usize| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (random >> 8) as usize % bound
            };
            let operation = ["maximum", "subtract", "minimum", "add"][next(4)];
            let (a, b) = (&values[next(values.len())], &values[next(values.len())]);
            lines += &format!("v{number} = {ty}[SIZE] {operation}({a}, {b})\n");
            if values.len() < alive {
                values.push(format!("v{number}"));
            } else {
                values[number % alive] = format!("v{number}");
            }
        }
        for (number, value) in values.iter().enumerate() {
            let before = if number == 0 { "x".to_string() } else { format!("s{}", number - 1) };
            lines += &format!("s{number} = {ty}[SIZE] maximum({before}, {value})\n");
        }
        lines += &format!("ROOT r = {ty}[SIZE] negate(s{})", values.len() - 1);
        agrees(&format!("HloModule m\nENTRY main {{\n{lines}\n}}").replace("SIZE", "65544"));
    }
}
