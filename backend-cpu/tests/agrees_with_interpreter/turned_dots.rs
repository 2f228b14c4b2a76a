//! Tests of dots whose right operand is contiguous along K, as are transposed weights: vector sums along K.

use std::fmt::Write;

use crate::ahead_of_time::agrees;
use crate::native;

/// Element types that are multiplied without conversion.
const TYPES: &[&str] = &["f32", "f64", "s32", "u32", "s64", "u64", "bf16", "f16", "c64"];

/// M, N and K: below the size of a tile, equal to it, and with remainders of each dimension.
const SIZES: &[[usize; 3]] = &[
    [2, 2, 2100],
    [2, 40, 128],
    [3, 3, 1001],
    [3, 43, 79],
    [5, 17, 97],
    [7, 13, 127],
    [8, 8, 128],
    [9, 31, 255],
    [13, 6, 161],
    [16, 5, 111],
    [1, 70, 130],
];

/// Returns dots of given sizes and a type, in one program.
fn dots(ty: &str, sizes: &[[usize; 3]]) -> String {
    let (mut lines, mut shapes, mut names) = (String::new(), Vec::new(), Vec::new());
    for (number, [m, n, k]) in sizes.iter().enumerate() {
        let (left, right) = (2 * number, 2 * number + 1);
        let _ = write!(
            lines,
            "x{number} = {ty}[{m},{k}] parameter({left})
             w{number} = {ty}[{n},{k}] parameter({right})
             d{number} = {ty}[{m},{n}] dot(x{number}, w{number}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
            "
        );
        shapes.push(format!("{ty}[{m},{n}]"));
        names.push(format!("d{number}"));
    }
    format!(
        "HloModule turned\nENTRY main {{\n{lines}ROOT all = ({}) tuple({})\n}}",
        shapes.join(", "),
        names.join(", ")
    )
}

#[test]
fn every_size_of_every_type() {
    for ty in TYPES {
        let text = dots(ty, SIZES);
        native(&text);
        agrees(&text);
    }
}

#[test]
fn several_dimensions_of_each_kind() {
    let text = include_str!("../../../tests/conformance/programs/kernels/dot_of_several_dimensions_of_each_kind.hlo");
    native(text);
    agrees(text);
}

#[test]
fn what_follows_is_computed_of_sums() {
    let text = include_str!("../../../tests/conformance/programs/kernels/dot_by_rows_with_an_epilogue.hlo");
    native(text);
    agrees(text);
}

#[test]
fn work_of_many_columns_is_shared() {
    native(&dots("f32", &[[4, 999, 517], [61, 130, 400]]));
}

/// The last vector of K overlaps the previous ones. The overlapping elements were added before, and must not be
/// multiplied by zero.
#[test]
fn infinities_before_the_remainder_are_added_once() {
    let row: Vec<&str> = (0..67).map(|k| if k == 60 { "inf" } else { "1" }).collect();
    let text = format!(
        "HloModule infinities
        ENTRY main {{
          x = f32[2,67] constant({{{{ {0} }}, {{ {0} }}}})
          w = f32[70,67] parameter(0)
          a = f32[70,67] abs(w)
          o = f32[] constant(1)
          ob = f32[70,67] broadcast(o), dimensions={{}}
          p = f32[70,67] add(a, ob)
          l = f32[70,67] copy(p)
          ROOT d = f32[2,70] dot(x, l), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
        }}",
        row.join(", ")
    );
    native(&text);
    agrees(&text);
}
