//! Scatters of every kind.

use crate::support::native;

/// A scatter of that combiner body (over `a` and `b`), with shapes and attributes as they are written.
fn scatter_of(ty: &str, body: &str, [x, i, u]: [&str; 3], attributes: &str) -> String {
    format!(
        "HloModule m
        combine {{
          a = {ty}[] parameter(0)
          b = {ty}[] parameter(1)
          {body}
        }}
        ENTRY main {{
          x = {ty}[{x}] parameter(0)
          i = {i} parameter(1)
          u = {ty}[{u}] parameter(2)
          ROOT r = {ty}[{x}] scatter(x, i, u), {attributes}, to_apply=combine
        }}"
    )
}

const ADD: &str = "ROOT r = REAL[] add(a, b)";
const POINTS: &str =
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1";
const ROWS: &str =
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1";

#[test]
fn scatters_of_every_element_type() {
    for ty in ["pred", "s4", "u8", "s16", "s32", "u64", "f8e5m2", "bf16", "f16", "f32", "f64", "c64", "c128"] {
        let add = &ADD.replace("REAL", ty);
        let replace = &format!("ROOT r = {ty}[] copy(b)");
        let ordered = &format!("d = {ty}[] add(a, a)\n ROOT r = {ty}[] add(d, b)");
        for body in [add, replace, ordered] {
            if ty == "pred" && body != replace {
                continue;
            }
            native(&scatter_of(ty, body, ["7", "s32[40,1]", "40"], POINTS));
            native(&scatter_of(ty, body, ["7,37", "s64[40,1]", "40,37"], ROWS));
            native(&scatter_of(ty, body, ["7,37", "s8[40,1]", "40,23"], ROWS));
        }
    }
}

#[test]
fn scatters_of_every_arrangement() {
    let add = &ADD.replace("REAL", "f32");
    let cases = [
        // Windows of two dimensions, some outside.
        (
            ["9,12", "s32[2,30]", "3,30,5"],
            "update_window_dims={0,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=0",
        ),
        // Batches, and an index without a dimension of its own.
        (
            ["4,20", "s32[30,4]", "30,4"],
            "update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1}, index_vector_dim=2",
        ),
        // Unsigned indices, columns.
        (
            ["6,9", "u8[11,1]", "6,11"],
            "update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1",
        ),
        // One window at a place that is not named.
        (
            ["6,9", "s32[0]", "4,9"],
            "update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=0",
        ),
        // Nothing at all.
        (
            ["6,9", "s32[0,1]", "0,9"],
            "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        (
            ["0,9", "s32[3,1]", "3,9"],
            "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        // Large enough for several threads.
        (["8", "s32[50000,1]", "50000"], POINTS),
        (["9,40", "s32[3000,1]", "3000,40"], ROWS),
        (["9,80", "s32[3000,1]", "3000,80"], ROWS),
        (
            ["90,7,3", "s32[300,90,1]", "300,90,2"],
            "update_window_dims={2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1}, index_vector_dim=2",
        ),
        // Several windows of few elements, which must not be taken for runs beyond their array.
        (
            ["7,7", "s32[31,2]", "31,2,2"],
            "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1",
        ),
        (
            ["7", "s32[31,1]", "31,3"],
            "update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
        ),
        // Points of three numbers, named in another order than that of the dimensions, over two dimensions.
        (
            ["3,4,5", "s32[3,9,20]", "9,20"],
            "update_window_dims={}, inserted_window_dims={0,1,2}, scatter_dims_to_operand_dims={2,0,1}, index_vector_dim=0",
        ),
    ];
    for (shapes, attributes) in cases {
        native(&scatter_of("f32", add, shapes, attributes));
    }
}

#[test]
fn scatters_by_indices_of_every_type() {
    let add = &ADD.replace("REAL", "f32");
    for ty in ["s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"] {
        native(&scatter_of("f32", add, ["5", &format!("{ty}[40]"), "40"], POINTS));
        native(&scatter_of("f32", add, ["5,3", &format!("{ty}[40,1]"), "40,3"], ROWS));
    }
}

#[test]
fn scatters_to_places_far_out_of_range() {
    for (ty, numbers) in [
        ("s64", "-9223372036854775808, 9223372036854775807, -1, 4294967296, 4294967297, 4, 5, 0"),
        ("u64", "18446744073709551615, 9223372036854775808, 9223372036854775807, 4294967296, 1, 4, 5, 0"),
        ("s32", "-2147483648, 2147483647, -1, -5, 1, 4, 5, 0"),
        ("u32", "4294967295, 2147483648, 2147483647, 65536, 1, 4, 5, 0"),
        ("s8", "-128, 127, -1, -5, 1, 4, 5, 0"),
        ("u8", "255, 128, 127, 6, 1, 4, 5, 0"),
    ] {
        // Single elements, and windows of three, the last of which fits at 2.
        for (update, window, inserted) in [("8", "", "0"), ("8,3", "1", "")] {
            native(&format!(
                "HloModule m
                combine {{
                  a = f32[] parameter(0)
                  b = f32[] parameter(1)
                  ROOT r = f32[] add(a, b)
                }}
                ENTRY main {{
                  x = f32[5] parameter(0)
                  u = f32[{update}] parameter(1)
                  i = {ty}[8] constant({{{numbers}}})
                  ROOT r = f32[5] scatter(x, i, u), update_window_dims={{{window}}}, inserted_window_dims={{{inserted}}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=combine
                }}"
            ));
        }
    }
}

#[test]
fn scatters_of_several_arrays_of_different_types() {
    for (places, update) in [("s32[20,1]", "20"), ("s32[0,1]", "0")] {
        native(&format!(
            "HloModule m
            all {{
              a = pred[] parameter(0)
              b = s4[] parameter(1)
              c = bf16[] parameter(2)
              d = c64[] parameter(3)
              e = pred[] parameter(4)
              f = s4[] parameter(5)
              g = bf16[] parameter(6)
              h = c64[] parameter(7)
              x = pred[] xor(a, e)
              y = s4[] select(e, f, b)
              z = bf16[] add(c, g)
              w = c64[] multiply(d, h)
              ROOT t = (pred[], s4[], bf16[], c64[]) tuple(x, y, z, w)
            }}
            ENTRY main {{
              a = pred[6] parameter(0)
              b = s4[6] parameter(1)
              c = bf16[6] parameter(2)
              d = c64[6] parameter(3)
              i = {places} parameter(4)
              e = pred[{update}] parameter(5)
              f = s4[{update}] parameter(6)
              g = bf16[{update}] parameter(7)
              h = c64[{update}] parameter(8)
              ROOT t = (pred[6], s4[6], bf16[6], c64[6]) scatter(a, b, c, d, i, e, f, g, h), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=all
            }}"
        ));
    }
}

#[test]
fn scatters_of_several_arrays_and_of_one_twice() {
    native(
        "HloModule m
        both {
          a = f32[] parameter(0)
          b = s32[] parameter(1)
          c = f32[] parameter(2)
          d = s32[] parameter(3)
          x = f32[] multiply(a, c)
          y = s32[] maximum(b, d)
          ROOT t = (f32[], s32[]) tuple(x, y)
        }
        sum {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT r = f32[] add(a, b)
        }
        ENTRY main {
          x = f32[6,3] parameter(0)
          y = s32[6,3] parameter(1)
          i = s32[5,1] parameter(2)
          u = f32[5,3] parameter(3)
          v = s32[5,3] parameter(4)
          j = s32[6,1] parameter(5)
          r = (f32[6,3], s32[6,3]) scatter(x, y, i, u, v), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=both
          p = f32[6,3] get-tuple-element(r), index=0
          q = s32[6,3] get-tuple-element(r), index=1
          z = f32[6,3] tanh(x)
          w = f32[6,3] scatter(z, j, z), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
          ROOT t = (f32[6,3], s32[6,3], f32[6,3]) tuple(p, q, w)
        }",
    );
}
