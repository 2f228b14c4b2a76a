//! Tests of scans with every combiner: short, long, in tiles, from either end.

use super::agrees;

/// Returns running totals of a type along one dimension, written as a window with padding.
fn scan_of(ty: &str, combiner: &str, init: &str, dims: &str, window: &str) -> String {
    format!(
        "HloModule m
        combine {{
          a = {ty}[] parameter(0)
          b = {ty}[] parameter(1)
          ROOT r = {ty}[] {combiner}(a, b)
        }}
        ENTRY main {{
          x = {ty}[{dims}] parameter(0)
          y = {ty}[{dims}] parameter(1)
          m = {ty}[{dims}] minimum(x, y)
          init = {ty}[] constant({init})
          ROOT r = {ty}[{dims}] reduce-window(m, init), window={{{window}}}, to_apply=combine
        }}"
    )
}

#[test]
fn scans_of_every_element_type() {
    for ty in ["s8", "u16", "s32", "u64", "bf16", "f32", "f64"] {
        let (combiner, init) = if ty == "bf16" { ("maximum", "-100") } else { ("add", "3") };
        agrees(&scan_of(ty, combiner, init, "2,600", "size=1x600 pad=0_0x599_0"));
        agrees(&scan_of(ty, combiner, init, "2,601", "size=1x601 pad=0_0x0_600"));
    }
    for combiner in ["maximum", "and", "xor"] {
        agrees(&scan_of("s32", combiner, "-7", "3,1000", "size=1x1000 pad=0_0x999_0"));
    }
}

#[test]
fn scans_of_complex_numbers() {
    let scan = scan_of("c64", "add", "(1, -2)", "2,300", "size=1x300 pad=0_0x299_0");
    agrees(&scan.replace("minimum(", "add("));
}

#[test]
fn scans_in_tiles_of_every_element_type() {
    let kinds = [
        ("pred", "and", "true"),
        ("pred", "or", "false"),
        ("s4", "xor", "3"),
        ("s8", "add", "-7"),
        ("u8", "maximum", "0"),
        ("u16", "multiply", "3"),
        ("s32", "minimum", "100"),
        ("s64", "add", "5"),
        ("u64", "xor", "9"),
        ("f8e5m2", "minimum", "4"),
        ("f16", "maximum", "-4"),
        ("bf16", "minimum", "100"),
        ("f32", "add", "3"),
        ("f64", "add", "-0.25"),
        ("f64", "maximum", "-1"),
        ("c64", "add", "(1, -2)"),
        ("c128", "add", "(0, 1)"),
    ];
    for (ty, combiner, init) in kinds {
        for (dims, window) in [
            ("12000", "size=12000 pad=11999_0"),
            ("12001", "size=12001 pad=0_12000"),
            ("2,9001", "size=1x9001 pad=0_0x9000_0"),
            ("3,9000", "size=1x9000 pad=0_0x0_8999"),
            ("8200,3", "size=8200x1 pad=8199_0x0_0"),
        ] {
            let scan = scan_of(ty, combiner, init, dims, window);
            agrees(&if ty.starts_with(['c', 'p']) { scan.replace("= minimum(", "= add(") } else { scan });
        }
    }
}

#[test]
fn scans_of_more_tiles_than_a_group_has() {
    agrees(&scan_of("f32", "add", "1", "600001", "size=600001 pad=600000_0"));
    agrees(&scan_of("u64", "add", "1", "600001", "size=600001 pad=0_600000"));
    agrees(&scan_of("s16", "maximum", "1", "2,600001", "size=1x600001 pad=0_0x600000_0"));
}

#[test]
fn scans_in_tiles_keep_zeros_and_what_is_no_number() {
    // Zeros, then a subnormal number, infinities of both signs and NaN.
    let program = |combiner: &str, init: &str, zero: &str| {
        format!(
            "HloModule m
            combine {{
              a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT r = f32[] {combiner}(a, b)
            }}
            ENTRY main {{
              n = s32[20000] iota(), iota_dimension=0
              low = s32[] constant(0)
              seven = s32[] constant(7)
              lows = s32[20000] broadcast(low), dimensions={{}}
              from = s32[] constant(9000)
              froms = s32[20000] broadcast(from), dimensions={{}}
              later = s32[20000] subtract(n, froms)
              sevens = s32[20000] broadcast(seven), dimensions={{}}
              kinds = s32[20000] clamp(lows, later, sevens)
              table = f32[8] constant({{-0, {zero}, -0, 1e-40, -inf, 3, inf, nan}})
              x = f32[20000] gather(table, kinds), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}
              init = f32[] constant({init})
              ROOT r = f32[20000] reduce-window(x, init), window={{size=20000 pad=19999_0}}, to_apply=combine
            }}"
        )
    };
    // The minimum and the maximum of two zeros may have either sign.
    let kinds = [("add", "-0", "0"), ("add", "0", "0"), ("minimum", "inf", "-0"), ("maximum", "-inf", "-0")];
    for (combiner, init, zero) in kinds {
        agrees(&program(combiner, init, zero));
    }
}

#[test]
fn scans_in_tiles_and_along_outer_dimensions() {
    agrees(&scan_of("s32", "add", "1", "12000", "size=12000 pad=11999_0"));
    agrees(&scan_of("f32", "add", "1", "2,9001", "size=1x9001 pad=0_0x0_9000"));
    agrees(&scan_of("s64", "add", "1", "300,5", "size=300x1 pad=299_0x0_0"));
    agrees(&scan_of("s64", "add", "1", "20,5", "size=20x1 pad=19_0x0_0"));
}
