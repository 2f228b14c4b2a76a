//! Scatters of every kind of combiner, element and arrangement.

use xla_tests::agreement::programs::{
    SCATTER_ARRANGEMENTS, SCATTER_POINTS, SCATTER_ROWS, SCATTERS_OF_SEVERAL, scatter_of, scatters_far_out_of_range,
};

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
        // In order.
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

/// A scatter of an array of floats and one of integers, by a combiner of `a`, `k` (before) and `b`, `l` (updates) with
/// results `x` and `y`.
fn of_two(body: &str, [array, indices, updates]: [&str; 3], attributes: &str) -> String {
    format!(
        "HloModule m
        combine {{
          a = f32[] parameter(0)
          k = s32[] parameter(1)
          b = f32[] parameter(2)
          l = s32[] parameter(3)
          {body}
          ROOT r = (f32[], s32[]) tuple(x, y)
        }}
        ENTRY main {{
          p = f32[{array}] parameter(0)
          q = s32[{array}] parameter(1)
          i = {indices} parameter(2)
          u = f32[{updates}] parameter(3)
          v = s32[{updates}] parameter(4)
          ROOT r = (f32[{array}], s32[{array}]) scatter(p, q, i, u, v), {attributes}, to_apply=combine
        }}"
    )
}

/// Combiners of two arrays: each by its own means, and bodies that need the order of updates.
const BODIES_OF_TWO: [&str; 6] = [
    "x = f32[] add(a, b)\n y = s32[] maximum(l, k)",
    "x = f32[] minimum(a, b)\n y = s32[] copy(l)",
    "x = f32[] copy(b)\n y = s32[] copy(l)",
    // The greater, of equals the later, with its number.
    "later = pred[] compare(b, a), direction=GE\n x = f32[] select(later, b, a)\n y = s32[] select(later, l, k)",
    "x = f32[] subtract(b, a)\n y = s32[] add(k, l)",
    "x = f32[] copy(a)\n twice = s32[] add(k, k)\n y = s32[] add(twice, l)",
];

#[test]
fn scatters_of_several_arrays() {
    for body in BODIES_OF_TWO {
        for (shapes, attributes) in SCATTER_ARRANGEMENTS.iter().copied() {
            agrees(&of_two(body, shapes, attributes));
        }
        // One update, few, and more than a block sorts.
        agrees(&of_two(body, ["5", "s32[1,1]", "1"], SCATTER_POINTS));
        agrees(&of_two(body, ["5", "s32[16,1]", "16"], SCATTER_POINTS));
        agrees(&of_two(body, ["5", "s32[17,1]", "17"], SCATTER_POINTS));
        agrees(&of_two(body, ["7", "s32[3000,1]", "3000"], SCATTER_POINTS));
        agrees(&of_two(body, ["1", "s32[1500,1]", "1500"], SCATTER_POINTS));
        agrees(&of_two(body, ["50,3", "s32[700,1]", "700,3"], SCATTER_ROWS));
    }
}

#[test]
fn scatters_whose_order_matters() {
    for (shapes, attributes) in SCATTER_ARRANGEMENTS.iter().copied() {
        agrees(&scatter_of("f32", "ROOT r = f32[] subtract(b, a)", shapes, attributes));
    }
    // Larger elements than can be exchanged.
    agrees(&scatter_of("c128", "ROOT r = c128[] multiply(a, b)", ["9,3", "s32[8,1]", "8,3"], SCATTER_ROWS));
    agrees(&scatter_of(
        "f64",
        "h = f64[] constant(0.5)\n d = f64[] multiply(a, h)\n ROOT r = f64[] add(d, b)",
        ["9", "s64[900,1]", "900"],
        SCATTER_POINTS,
    ));
}

#[test]
fn scatters_that_promise_different_places() {
    let program = |body: &str| {
        format!(
            "HloModule m
            combine {{
              a = f32[] parameter(0)
              k = s16[] parameter(1)
              b = f32[] parameter(2)
              l = s16[] parameter(3)
              {body}
              ROOT r = (f32[], s16[]) tuple(x, y)
            }}
            ENTRY main {{
              p = f32[400] parameter(0)
              q = s16[400] parameter(1)
              n = s32[300,1] iota(), iota_dimension=0
              i = s32[300,1] reverse(n), dimensions={{0}}
              u = f32[300] parameter(2)
              v = s16[300] parameter(3)
              ROOT r = (f32[400], s16[400]) scatter(p, q, i, u, v), {SCATTER_POINTS}, unique_indices=true, to_apply=combine
            }}"
        )
    };
    agrees(&program("x = f32[] subtract(b, a)\n is = pred[] compare(a, b), direction=LT\n y = s16[] select(is, k, l)"));
}

#[test]
fn scatters_to_places_far_out_of_range() {
    scatters_far_out_of_range().iter().for_each(|program| agrees(program));
}

#[test]
fn scatters_of_several_arrays_and_of_one_twice() {
    agrees(SCATTERS_OF_SEVERAL);
}
