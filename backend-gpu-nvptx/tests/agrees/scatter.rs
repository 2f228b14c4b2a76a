//! Scatters of every kind of combiner, element and arrangement.

use super::agrees;

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

const ROWS: &str =
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1";

#[test]
fn scatters_of_every_element_type_and_combiner() {
    for ty in ["pred", "s4", "u8", "s16", "s32", "u64", "f8e5m2", "bf16", "f32", "f64", "c64", "c128"] {
        for body in ["add(a, b)", "copy(b)", "maximum(b, a)", "multiply(a, b)", "xor(a, b)"] {
            let is_defined = match body {
                "maximum(b, a)" => !ty.starts_with('c'),
                // Products of c128 are of no size that can be exchanged.
                "multiply(a, b)" => ty != "pred" && !ty.starts_with('c'),
                "xor(a, b)" => !ty.starts_with(['f', 'b', 'c']),
                _ => ty != "pred" || body != "add(a, b)",
            };
            if is_defined {
                agrees(&scatter_of(ty, &format!("ROOT r = {ty}[] {body}"), ["7,19", "s32[40,1]", "40,19"], ROWS));
            }
        }
        // In order, by one thread.
        let ordered = format!("d = {ty}[] maximum(a, a)\n ROOT r = {ty}[] subtract(b, d)");
        if !ty.starts_with(['c', 'p']) {
            agrees(&scatter_of(ty, &ordered, ["7,19", "s32[40,1]", "40,19"], ROWS));
        }
    }
}

#[test]
fn scatters_of_every_arrangement() {
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
        (["6,9", "s32[0,1]", "0,9"], ROWS),
        (["0,9", "s32[3,1]", "3,9"], ROWS),
        (["9,40", "s64[300,1]", "300,23"], ROWS),
        // Points of three numbers, named in another order than that of the dimensions, over two dimensions.
        (
            ["3,4,5", "s32[3,9,20]", "9,20"],
            "update_window_dims={}, inserted_window_dims={0,1,2}, scatter_dims_to_operand_dims={2,0,1}, index_vector_dim=0",
        ),
    ];
    for (shapes, attributes) in cases {
        agrees(&scatter_of("f32", "ROOT r = f32[] add(a, b)", shapes, attributes));
        agrees(&scatter_of("s8", "ROOT r = s8[] copy(b)", shapes, attributes));
    }
}

#[test]
fn scatters_to_places_far_out_of_range() {
    let scatter = scatter_of("s32", "ROOT r = s32[] add(a, b)", ["5", "s64[8,1]", "8"], "ATTRIBUTES")
        .replace("ATTRIBUTES", &ROWS.replace("update_window_dims={1}", "update_window_dims={}"))
        .replace(
            "i = s64[8,1] parameter(1)",
            "n = s64[8] constant({-9223372036854775808, 9223372036854775807, -1, 4294967296, 4294967297, 4, 5, 0})
          i = s64[8,1] reshape(n)",
        )
        .replace("parameter(2)", "parameter(1)");
    agrees(&scatter);
}
