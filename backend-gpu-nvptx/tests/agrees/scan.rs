//! Scans with every combiner: short, long, in chunks, from either end.

use super::agrees;

/// Running totals of that type along one dimension, written as a window with padding, of a sum.
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
fn scans_in_chunks_and_along_outer_dimensions() {
    agrees(&scan_of("s32", "add", "1", "12000", "size=12000 pad=11999_0"));
    agrees(&scan_of("f32", "add", "1", "2,9001", "size=1x9001 pad=0_0x0_9000"));
    agrees(&scan_of("s64", "add", "1", "300,5", "size=300x1 pad=299_0x0_0"));
    agrees(&scan_of("s64", "add", "1", "20,5", "size=20x1 pad=19_0x0_0"));
}
