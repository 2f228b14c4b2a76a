//! Tests of scatters with combiners, element types and dimension roles of every kind.

use xla_tests::agreement::programs::{
    SCATTER_ARRANGEMENTS, SCATTER_POINTS, SCATTER_ROWS, scatter_of, scatters_far_out_of_range,
};

use super::agrees;

#[test]
fn scatters_of_every_element_type_and_combiner() {
    for ty in ["pred", "s4", "u8", "s16", "s32", "u64", "f8e5m2", "bf16", "f32", "f64", "c64", "c128"] {
        for body in ["add(a, b)", "copy(b)", "maximum(b, a)", "multiply(a, b)", "xor(a, b)"] {
            let is_defined = match body {
                "maximum(b, a)" => !ty.starts_with('c'),
                // c128 is too large for an atomic exchange of products.
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
        // Ordered combiner.
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

/// Returns a scatter of an array of floats and an array of integers, by a combiner of `a`, `k` (before) and `b`, `l`
/// (updates) with results `x` and `y`.
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

/// Combiners of two arrays: separable ones, and bodies that depend on the order of updates.
const BODIES_OF_TWO: [&str; 6] = [
    "x = f32[] add(a, b)\n y = s32[] maximum(l, k)",
    "x = f32[] minimum(a, b)\n y = s32[] copy(l)",
    "x = f32[] copy(b)\n y = s32[] copy(l)",
    // Selects the greater element with its number; of equal ones the later.
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
    // Elements that are too large for an atomic exchange.
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

/// Shapes of scatters that use copies in shared memory: of points, also to one element, and of rows.
const MANY_TO_FEW: [([&str; 3], &str); 4] = [
    (["17", "s32[20001,1]", "20001"], SCATTER_POINTS),
    (["1", "s64[20480,1]", "20480"], SCATTER_POINTS),
    (["900", "s32[70000,1]", "70000"], SCATTER_POINTS),
    (["7,19", "s32[4000,1]", "4000,19"], SCATTER_ROWS),
];

/// Returns a scatter whose updates are bounded, so that thousands of them are exact in any order.
fn bounded_scatter_of(ty: &str, body: &str, shapes: [&str; 3], attributes: &str, bounds: [&str; 2]) -> String {
    let updates = format!("{ty}[{}]", shapes[2]);
    let dims = shapes[2];
    let [low, high] = bounds;
    let bounded = format!(
        "v = {updates} parameter(2)
          low = {ty}[] constant({low})
          lows = {ty}[{dims}] broadcast(low), dimensions={{}}
          high = {ty}[] constant({high})
          highs = {ty}[{dims}] broadcast(high), dimensions={{}}
          u = {updates} clamp(lows, v, highs)"
    );
    scatter_of(ty, body, shapes, attributes).replace(&format!("u = {updates} parameter(2)"), &bounded)
}

#[test]
fn scatters_of_many_updates_to_few_places() {
    for (shapes, attributes) in MANY_TO_FEW {
        for ty in ["pred", "s4", "u8", "s16", "s32", "u32", "s64", "u64"] {
            for body in ["add", "multiply", "minimum", "maximum", "and", "or", "xor"] {
                if ty != "pred" || ["and", "or", "xor"].contains(&body) {
                    agrees(&scatter_of(ty, &format!("ROOT r = {ty}[] {body}(a, b)"), shapes, attributes));
                }
            }
        }
        for ty in ["f8e5m2", "f16", "bf16", "f32", "f64"] {
            for body in ["minimum(a, b)", "maximum(b, a)"] {
                agrees(&scatter_of(ty, &format!("ROOT r = {ty}[] {body}"), shapes, attributes));
            }
            agrees(&bounded_scatter_of(
                ty,
                &format!("ROOT r = {ty}[] multiply(a, b)"),
                shapes,
                attributes,
                ["-1", "-1"],
            ));
        }
        for ty in ["f32", "f64", "c64", "c128"] {
            agrees(&scatter_of(ty, &format!("ROOT r = {ty}[] add(a, b)"), shapes, attributes));
        }
    }
}

#[test]
fn scatters_of_many_narrow_floats_to_few_places() {
    // Sums of few multiples of 0.25 are exact.
    let sums = [
        "ROOT r = bf16[] add(a, b)",
        "c = f32[] convert(a)\n d = f32[] convert(b)\n e = f32[] add(c, d)\n ROOT r = bf16[] convert(e)",
    ];
    for body in sums {
        for ty in ["bf16", "f16"] {
            let shapes = ["33", "s32[8000,1]", "8000"];
            agrees(&bounded_scatter_of(ty, &body.replace("bf16", ty), shapes, SCATTER_POINTS, ["-0.25", "0.25"]));
        }
    }
    // An identity that is computed in a narrower type would round existing elements.
    let narrow = "c = bf16[] convert(a)\n d = bf16[] convert(b)\n e = bf16[] maximum(c, d)\n ROOT r = f32[] convert(e)";
    agrees(&scatter_of("f32", narrow, ["17", "s32[20001,1]", "20001"], SCATTER_POINTS));
}

#[test]
fn scatters_of_many_updates_to_few_places_of_several_arrays() {
    for body in BODIES_OF_TWO {
        agrees(&of_two(body, ["17", "s32[20001,1]", "20001"], SCATTER_POINTS));
    }
}

#[test]
fn copies_keep_zeros_and_what_is_no_number() {
    // Updates of indices 0 to 16, some of them only by zeros; the others are zeros of both signs or NaNs.
    let program = |combiner: &str, zero: &str| {
        format!(
            "HloModule m
            combine {{
              a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT r = f32[] {combiner}(a, b)
            }}
            ENTRY main {{
              before = f32[6] constant({{-0, {zero}, nan, -inf, inf, -0}})
              tiles = f32[6,6] broadcast(before), dimensions={{1}}
              x = f32[36] reshape(tiles)
              i = s32[20001,1] parameter(0)
              j = s32[20001] reshape(i)
              mask = s32[] constant(7)
              masks = s32[20001] broadcast(mask), dimensions={{}}
              kinds = s32[20001] and(j, masks)
              table = f32[8] constant({{-0, {zero}, -0, 1e-42, inf, -inf, nan, -2}})
              u = f32[20001] gather(table, kinds), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}
              ROOT r = f32[36] scatter(x, i, u), {SCATTER_POINTS}, to_apply=combine
            }}"
        )
    };
    // The minimum and the maximum of two zeros may have either sign.
    for (combiner, zero) in [("add", "0"), ("minimum", "-0"), ("maximum", "-0")] {
        agrees(&program(combiner, zero));
    }
}
