//! Scatters of every kind of combiner, element and arrangement.

use xla_tests::agreement::programs::{SCATTER_ARRANGEMENTS, SCATTER_ROWS, scatter_of, scatters_far_out_of_range};

use super::agrees;

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
                agrees(&scatter_of(
                    ty,
                    &format!("ROOT r = {ty}[] {body}"),
                    ["7,19", "s32[40,1]", "40,19"],
                    SCATTER_ROWS,
                ));
            }
        }
        // In order, by one thread.
        let ordered = format!("d = {ty}[] maximum(a, a)\n ROOT r = {ty}[] subtract(b, d)");
        if !ty.starts_with(['c', 'p']) {
            agrees(&scatter_of(ty, &ordered, ["7,19", "s32[40,1]", "40,19"], SCATTER_ROWS));
        }
    }
}

#[test]
fn scatters_of_every_arrangement() {
    for (shapes, attributes) in SCATTER_ARRANGEMENTS.iter().copied() {
        agrees(&scatter_of("f32", "ROOT r = f32[] add(a, b)", shapes, attributes));
        agrees(&scatter_of("s8", "ROOT r = s8[] copy(b)", shapes, attributes));
    }
}

#[test]
fn scatters_to_places_far_out_of_range() {
    scatters_far_out_of_range().iter().for_each(|program| agrees(program));
}
