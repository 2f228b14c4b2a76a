//! Compares every lowering with the reference evaluator, for every element type and with edge values. The host fallback
//! is forbidden.

use crate::support::{native, tame, values};
use xla_hlo::ElementType;

/// Element types: at least one of each kind, width and special case.
const TYPES: [ElementType; 14] = [
    ElementType::Pred,
    ElementType::S4,
    ElementType::S8,
    ElementType::S32,
    ElementType::S64,
    ElementType::U2,
    ElementType::U16,
    ElementType::U64,
    ElementType::F8E4M3FN,
    ElementType::F16,
    ElementType::BF16,
    ElementType::F32,
    ElementType::F64,
    ElementType::C64,
];

/// Runs a program for each type whose operation `applies`; the type's name replaces `T` before dimensions.
fn each(text: &str, applies: impl Fn(ElementType) -> bool) {
    TYPES
        .into_iter()
        .filter(|&ty| applies(ty))
        .for_each(|ty| native(&text.replace("T[", &format!("{}[", ty.name())), &values));
}

/// Like [`each`], with small numbers.
fn each_tame(text: &str, applies: impl Fn(ElementType) -> bool) {
    TYPES
        .into_iter()
        .filter(|&ty| applies(ty))
        .for_each(|ty| native(&text.replace("T[", &format!("{}[", ty.name())), &tame));
}

fn is_number(ty: ElementType) -> bool {
    ty != ElementType::Pred
}

#[test]
fn elementwise_chains() {
    each(
        "HloModule m
        ENTRY main {
          x = T[5,11] parameter(0)
          y = T[5,11] parameter(1)
          c = T[] parameter(2)
          b = T[5,11] broadcast(c), dimensions={}
          p = pred[5,11] compare(x, y), direction=EQ
          s = T[5,11] select(p, x, b)
          m = T[5,11] multiply(s, y)
          ROOT r = T[5,11] add(m, x)
        }",
        is_number,
    );
}

#[test]
fn orders_and_bounds() {
    each(
        "HloModule m
        ENTRY main {
          x = T[37] parameter(0)
          y = T[37] parameter(1)
          lo = T[] parameter(2)
          hi = T[] parameter(3)
          a = T[37] maximum(x, y)
          b = T[37] minimum(a, y)
          k = T[37] clamp(lo, b, hi)
          ROOT p = pred[37] compare(k, x), direction=LT
        }",
        |ty| !ty.is_complex(),
    );
}

#[test]
fn conversions() {
    for from in TYPES.into_iter().filter(|ty| !ty.is_complex()) {
        each(
            &format!(
                "HloModule m
                ENTRY main {{
                  x = {}[3,2,9] parameter(0)
                  ROOT r = T[3,2,9] convert(x)
                }}",
                from.name()
            ),
            |_| true,
        );
    }
}

#[test]
fn transcendental_functions() {
    for op in ["exponential", "tanh", "log", "sine", "sqrt", "rsqrt", "logistic", "floor", "negate"] {
        let text = format!("HloModule m\nENTRY main {{ x = T[4,8] parameter(0)\n ROOT r = T[4,8] {op}(x) }}");
        each(&text, |ty| ty.is_float());
    }
}

#[test]
fn movement_alone() {
    for op in [
        "T[6,5,4] transpose(x), dimensions={2,1,0}",
        "T[5,4,6] transpose(x), dimensions={1,0,2}",
        "T[4,5,6] reverse(x), dimensions={0,2}",
        "T[2,2,3] slice(x), slice={[1:4:2], [2:5:2], [0:5:2]}",
        "T[4,7,5,6] broadcast(x), dimensions={0,2,3}",
        "T[120] reshape(x)",
        "T[10,12] reshape(x)",
        "T[1,4,1,30] reshape(x)",
        "T[8,5,6] concatenate(x, x), dimension={0}",
        "T[4,5,18] concatenate(x, x, x), dimensions={2}",
        "T[4,5,6] copy(x)",
    ] {
        let op = op.replace("dimension={0}", "dimensions={0}");
        each(&format!("HloModule m\nENTRY main {{ x = T[4,5,6] parameter(0)\n ROOT r = {op} }}"), |_| true);
    }
}

#[test]
fn padding() {
    for (dims, padding) in [("9,12", "2_3x1_5"), ("3,4", "-1_0x1_-3"), ("4,0", "0_0x-3_-3")] {
        each(
            &format!(
                "HloModule m
                ENTRY main {{
                  x = T[4,6] parameter(0)
                  z = T[] parameter(1)
                  ROOT r = T[{dims}] pad(x, z), padding={padding}
                }}"
            ),
            |_| true,
        );
    }
}

#[test]
fn iotas() {
    each(
        "HloModule m
        ENTRY main {
          i = T[3,70] iota(), iota_dimension=1
          j = T[3,70] iota(), iota_dimension=0
          x = T[3,70] parameter(0)
          a = T[3,70] add(i, x)
          ROOT r = T[3,70] add(a, j)
        }",
        is_number,
    );
}

#[test]
fn boxes_at_dynamic_places() {
    for index in ["s32", "u8", "s64"] {
        each(
            &format!(
                "HloModule m
                ENTRY main {{
                  x = T[9,10] parameter(0)
                  u = T[3,5] parameter(1)
                  i = {index}[] parameter(2)
                  j = {index}[] parameter(3)
                  s = T[4,5] dynamic-slice(x, i, j), dynamic_slice_sizes={{4,5}}
                  w = T[9,10] dynamic-update-slice(x, u, j, i)
                  ROOT r = (T[4,5], T[9,10]) tuple(s, w)
                }}"
            ),
            |_| true,
        );
    }
}

#[test]
fn boxes_at_a_vector_of_starts() {
    each(
        "HloModule m
        ENTRY main {
          x = T[9,10] parameter(0)
          u = T[3,5] parameter(1)
          i = s32[2] parameter(2)
          s = T[4,5] dynamic-slice(x, i), dynamic_slice_sizes={4,5}
          w = T[9,10] dynamic-update-slice(x, u, i)
          ROOT r = (T[4,5], T[9,10]) tuple(s, w)
        }",
        |_| true,
    );
}

#[test]
fn reduces_of_any_dimensions() {
    for (kept, reduced) in
        [("5,6,7", ""), ("6,7", "0"), ("5,7", "1"), ("5,6", "2"), ("7", "0,1"), ("6", "2,0"), ("", "0,1,2")]
    {
        each_tame(
            &format!(
                "HloModule m
                f {{ a = T[] parameter(0)
                  b = T[] parameter(1)
                  ROOT c = T[] add(a, b) }}
                ENTRY main {{
                  x = T[5,6,7] parameter(0)
                  i = T[] parameter(1)
                  ROOT r = T[{kept}] reduce(x, i), dimensions={{{reduced}}}, to_apply=f
                }}"
            ),
            |ty| is_number(ty) && ty != ElementType::F8E4M3FN,
        );
    }
}

#[test]
fn reduces_by_any_operation() {
    for op in ["maximum", "minimum", "multiply", "and", "or", "xor"] {
        let is_bits = matches!(op, "and" | "or" | "xor");
        for dims in ["45", "3,15", "9,1,5", "0,4"] {
            let reduction = format!(
                "HloModule m
                f {{ a = T[] parameter(0)
                  b = T[] parameter(1)
                  ROOT c = T[] {op}(b, a) }}
                ENTRY main {{
                  x = T[{dims}] parameter(0)
                  i = T[] parameter(1)
                  ROOT r = T[KEPT] reduce(x, i), dimensions={{0}}, to_apply=f
                }}"
            );
            let kept = dims.split_once(',').map_or("", |(_, kept)| kept);
            let applies = |ty: ElementType| match is_bits {
                true => ty.is_integer() || ty == ElementType::Pred,
                false => !ty.is_complex() && ty != ElementType::F8E4M3FN && (is_number(ty) || op != "multiply"),
            };
            let text = reduction.replace("[KEPT]", &format!("[{kept}]"));
            if op == "multiply" { each_tame(&text, applies) } else { each(&text, applies) }
        }
    }
}

#[test]
fn a_reduction_of_an_expression() {
    each_tame(
        "HloModule m
        f { a = T[] parameter(0)
          b = T[] parameter(1)
          ROOT c = T[] add(a, b) }
        ENTRY main {
          x = T[13,10] parameter(0)
          y = T[10] parameter(1)
          z = T[] constant(0)
          b = T[13,10] broadcast(y), dimensions={1}
          p = T[13,10] multiply(x, b)
          q = T[13,10] add(p, b)
          ROOT r = T[13] reduce(q, z), dimensions={1}, to_apply=f
        }",
        |ty| is_number(ty) && !ty.is_complex() && ty != ElementType::F8E4M3FN,
    );
}

#[test]
fn contractions() {
    for (left, right, result, dims) in [
        ("5,7", "7,9", "5,9", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        ("7,5", "9,7", "5,9", "lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
        ("7", "7", "", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        ("7", "7,3", "3", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        ("4,0", "0,3", "4,3", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        ("4", "6", "4,6", "lhs_contracting_dims={}, rhs_contracting_dims={}"),
        ("2,3", "4,5", "2,3,4,5", "lhs_contracting_dims={}, rhs_contracting_dims={}"),
        (
            "2,3,5",
            "2,5",
            "2,3",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
        ),
        ("4,2,5,3", "5,6,4,3", "2,6", "lhs_contracting_dims={0,2,3}, rhs_contracting_dims={2,0,3}"),
    ] {
        each_tame(
            &format!(
                "HloModule m
                ENTRY main {{
                  x = T[{left}] parameter(0)
                  y = T[{right}] parameter(1)
                  ROOT r = T[{result}] dot(x, y), {dims}
                }}"
            ),
            |_| true,
        );
    }
}

#[test]
fn contractions_of_several_types() {
    for (left, right, result) in
        [("bf16", "bf16", "f32"), ("s8", "s8", "s32"), ("f16", "f32", "f32"), ("f8e5m2", "f8e4m3fn", "f32")]
    {
        native(
            &format!(
                "HloModule m
                ENTRY main {{
                  x = {left}[9,21] parameter(0)
                  y = {right}[21,10] parameter(1)
                  ROOT r = {result}[9,10] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
                }}"
            ),
            &tame,
        );
    }
}

#[test]
fn loops_run_on_the_device() {
    native(include_str!("programs/loops_run_on_the_device.hlo"), &values);
}

#[test]
fn empty_and_scalar_arrays() {
    for dims in ["", "0", "0,5", "5,0,3", "1,1"] {
        each(
            &format!(
                "HloModule m
                ENTRY main {{
                  x = T[{dims}] parameter(0)
                  ROOT r = T[{dims}] add(x, x)
                }}"
            ),
            is_number,
        );
    }
}

#[test]
fn padding_between_elements() {
    for (dims, padding) in [("10,13", "1_2_1x-1_3_1"), ("8,20", "-2_0_2x1_3_2")] {
        each(
            &format!(
                "HloModule m
                ENTRY main {{
                  x = T[4,6] parameter(0)
                  z = T[] parameter(1)
                  ROOT r = T[{dims}] pad(x, z), padding={padding}
                }}"
            ),
            |_| true,
        );
    }
}

#[test]
fn gathers_of_rows_and_of_boxes() {
    for index in ["s32", "u8", "s64"] {
        each(
            &format!(
                "HloModule m
                ENTRY main {{
                  x = T[7,10] parameter(0)
                  i = {index}[5] parameter(1)
                  j = {index}[2,3,4] parameter(2)
                  k = {index}[7,3] parameter(3)
                  rows = T[5,10] gather(x, i), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}},
                    index_vector_dim=1, slice_sizes={{1,10}}
                  boxes = T[3,2,4,9] gather(x, j), offset_dims={{0,3}}, collapsed_slice_dims={{}}, start_index_map={{1,0}},
                    index_vector_dim=0, slice_sizes={{3,9}}
                  own = T[7,3] gather(x, k), offset_dims={{}}, collapsed_slice_dims={{1}}, start_index_map={{1}},
                    operand_batching_dims={{0}}, start_indices_batching_dims={{0}}, index_vector_dim=2, slice_sizes={{1,1}}
                  ROOT r = (T[5,10], T[3,2,4,9], T[7,3]) tuple(rows, boxes, own)
                }}"
            )
            .replace("T[3,2,4,9]", "T[3,3,4,9]"),
            |_| true,
        );
    }
}

#[test]
fn scatters_of_rows_and_of_elements() {
    for combiner in ["add(a, b)", "maximum(b, a)", "parameter(1)"] {
        let root = match combiner {
            "parameter(1)" => "a = T[] parameter(0)\n ROOT b = T[] parameter(1)".to_string(),
            _ => format!("a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT c = T[] {combiner}"),
        };
        each_tame(
            &format!(
                "HloModule m
                f {{ {root} }}
                ENTRY main {{
                  x = T[7,10] parameter(0)
                  i = s32[5,1] parameter(1)
                  u = T[5,10] parameter(2)
                  j = s32[2,6] parameter(3)
                  v = T[6,2,3] parameter(4)
                  rows = T[7,10] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}},
                    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f
                  boxes = T[7,10] scatter(x, j, v), update_window_dims={{1,2}}, inserted_window_dims={{}},
                    scatter_dims_to_operand_dims={{1,0}}, index_vector_dim=0, to_apply=f
                  ROOT r = (T[7,10], T[7,10]) tuple(rows, boxes)
                }}"
            ),
            |ty| is_number(ty) && !(combiner.starts_with("max") && ty.is_complex()),
        );
    }
}

#[test]
fn reduces_over_windows() {
    for op in ["add", "maximum", "minimum"] {
        for (result, window) in [
            ("4,8", "size=2x3"),
            ("3,5", "size=3x2 stride=1x2 pad=0_0x1_0"),
            ("4,10", "size=3x4 pad=2_1x1_2 rhs_dilate=2x1"),
            ("5,10", "size=1x10 pad=0_0x9_0"),
        ] {
            each_tame(
                &format!(
                    "HloModule m
                    f {{ a = T[] parameter(0)
                      b = T[] parameter(1)
                      ROOT c = T[] {op}(a, b) }}
                    ENTRY main {{
                      x = T[5,10] parameter(0)
                      i = T[] parameter(1)
                      ROOT r = T[{result}] reduce-window(x, i), window={{{window}}}, to_apply=f
                    }}"
                ),
                |ty| is_number(ty) && ty != ElementType::F8E4M3FN && !(op != "add" && ty.is_complex()),
            );
        }
    }
}

#[test]
fn reduces_by_any_computation() {
    for (kept, reduced) in [("5,9", "1"), ("3,9", "0"), ("", "0,1,2")] {
        each(
            &format!(
                "HloModule m
                f {{ a = T[] parameter(0)
                  i = s32[] parameter(1)
                  b = T[] parameter(2)
                  j = s32[] parameter(3)
                  g = pred[] compare(b, a), direction=GT
                  v = T[] select(g, b, a)
                  k = s32[] select(g, j, i)
                  ROOT t = (T[], s32[]) tuple(v, k) }}
                ENTRY main {{
                  x = T[5,3,9] parameter(0)
                  i = s32[5,3,9] iota(), iota_dimension=2
                  v = T[] parameter(1)
                  k = s32[] constant(-1)
                  ROOT r = (T[{kept}], s32[{kept}]) reduce(x, i, v, k), dimensions={{{reduced}}}, to_apply=f
                }}"
            ),
            |ty| !ty.is_complex(),
        );
    }
}
