//! Tests of window reductions, scans, and select-and-scatter against the reference evaluator.

use crate::native;

/// Element types of every kind and width.
const TYPES: &[&str] = &["pred", "s4", "u8", "s16", "u32", "s64", "f8e4m3fn", "bf16", "f16", "f64"];

/// Returns the literal of the number one in a type.
fn one(ty: &str) -> &'static str {
    match ty {
        "pred" => "true",
        "c64" | "c128" => "(1, 0)",
        _ => "1",
    }
}

/// Returns a combiner of one array, by its operation on `a` and `b` of type `ty`.
fn combiner(name: &str, ty: &str, op: &str) -> String {
    format!("{name} {{ a = {ty}[] parameter(0)\n b = {ty}[] parameter(1)\n ROOT c = {ty}[] {op}(a, b) }}\n")
}

/// Returns a cumulative reduction along the dimension that is padded in `window`.
fn cumulative(ty: &str, op: &str, init: &str, dims: &str, window: &str) -> String {
    format!(
        "HloModule m\n{}ENTRY main {{
          x = {ty}[{dims}] parameter(0)
          init = {ty}[] constant({init})
          ROOT r = {ty}[{dims}] reduce-window(x, init), window={{{window}}}, to_apply=f }}",
        combiner("f", ty, op)
    )
}

#[test]
fn running_totals_of_every_type() {
    for &ty in TYPES {
        let (op, init) = if ty == "pred" { ("or", "false") } else { ("maximum", "1") };
        for (dims, window) in [
            ("3,37", "size=1x37 pad=0_0x36_0"),
            ("3,37", "size=1x37 pad=0_0x0_36"),
            ("19,5", "size=19x1 pad=18_0x0_0"),
            ("19,150", "size=19x1 pad=0_18x0_0"),
            ("2", "size=2 pad=1_0"),
        ] {
            native(&cumulative(ty, op, init, dims, window));
        }
    }
}

#[test]
fn running_sums_and_products() {
    for (ty, op) in
        [("s32", "add"), ("u8", "multiply"), ("f32", "add"), ("c64", "add"), ("c128", "multiply"), ("s64", "xor")]
    {
        for window in [
            "size=1x20x1 pad=0_0x19_0x0_0",
            "size=1x20x1 pad=0_0x0_19x0_0",
            "size=1x20x1 pad=0_0x0_19x0_0 rhs_reversal=0x1x0",
        ] {
            for dims in ["2,20,7", "3,20,1"] {
                native(&cumulative(ty, op, one(ty), dims, window));
            }
        }
    }
}

#[test]
fn running_totals_of_any_combiner_keep_their_order() {
    for window in ["size=1x33 pad=0_0x32_0", "size=1x33 pad=0_0x0_32 rhs_reversal=0x1", "size=1x33 pad=0_0x0_32"] {
        native(&cumulative("s32", "subtract", "5", "4,33", window));
        native(&cumulative("f32", "subtract", "5", "4,33", window));
    }
}

/// Combiner that selects the greatest element of a window and its index.
const BEST: &str = "best { v = f32[] parameter(0)
      i = s32[] parameter(1)
      w = f32[] parameter(2)
      j = s32[] parameter(3)
      p = pred[] compare(v, w), direction=GE
      a = f32[] select(p, v, w)
      b = s32[] select(p, i, j)
      ROOT t = (f32[], s32[]) tuple(a, b) }\n";

#[test]
fn several_arrays_in_one_window() {
    for (dims, out, window) in [
        ("9,11", "9,11", "size=9x1 pad=8_0x0_0"),
        ("9,11", "9,11", "size=1x11 pad=0_0x10_0"),
        ("9,11", "5,6", "size=3x3 stride=2x2 pad=1_1x1_1"),
        ("9,11", "9,9", "size=3x2 pad=1_1x-1_0"),
    ] {
        native(&format!(
            "HloModule m\n{BEST}ENTRY main {{
              x = f32[{dims}] parameter(0)
              i = s32[{dims}] iota(), iota_dimension=1
              low = f32[] constant(-inf)
              zero = s32[] constant(0)
              ROOT r = (f32[{out}], s32[{out}]) reduce-window(x, i, low, zero), window={{{window}}}, to_apply=best }}"
        ));
    }
}

#[test]
fn windows_of_every_shape() {
    for (out, window) in [
        ("2,6,4,20", "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x0_1x0_0"),
        ("2,11,8,22", "size=1x2x2x3 pad=0_0x0_1x1_0x2_2 rhs_dilate=1x1x2x1"),
        ("2,19,9,20", "size=1x3x1x1 lhs_dilate=1x2x1x1 pad=0_0x0_0x0_0x0_0"),
        ("2,11,9,39", "size=1x1x1x3 lhs_dilate=1x1x1x2 pad=0_0x0_0x0_0x1_1"),
        ("2,9,9,20", "size=1x4x1x1 pad=0_0x-1_2x0_0x0_0 rhs_reversal=0x1x0x0"),
        ("2,21,9,20", "size=1x3x1x1 pad=0_0x6_6x0_0x0_0"),
        ("2,11,9,20", "size=1x40x1x1 stride=1x3x1x1 pad=0_0x30_29x0_0x0_0"),
    ] {
        for (ty, op, init) in
            [("f32", "maximum", "-inf"), ("s32", "add", "3"), ("bf16", "minimum", "1"), ("f64", "subtract", "0")]
        {
            native(&format!(
                "HloModule m\n{}ENTRY main {{
                  x = {ty}[2,11,9,20] parameter(0)
                  init = {ty}[] constant({init})
                  ROOT r = {ty}[{out}] reduce-window(x, init), window={{{window}}}, to_apply=f }}",
                combiner("f", ty, op)
            ));
        }
    }
}

/// Returns a select-and-scatter by a comparison and a combiner.
fn select_and_scatter(ty: &str, compare: &str, combine: &str, dims: &str, source: &str, window: &str) -> String {
    format!(
        "HloModule m
        select {{ a = {ty}[] parameter(0)
          b = {ty}[] parameter(1)
          ROOT p = pred[] compare(a, b), direction={compare} }}
        {}ENTRY main {{
          x = {ty}[{dims}] parameter(0)
          s = {ty}[{source}] parameter(1)
          init = {ty}[] constant({})
          ROOT r = {ty}[{dims}] select-and-scatter(x, s, init), window={{{window}}}, select=select, scatter=f }}",
        combiner("f", ty, combine),
        one(ty)
    )
}

#[test]
fn selections_scattered() {
    for (source, window) in [
        ("2,4,4,5", "size=1x2x2x1 stride=1x2x2x1"),
        ("2,5,5,5", "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0"),
        ("2,7,6,5", "size=1x3x3x1 pad=0_0x0_0x0_-1x0_0"),
        ("2,9,9,4", "size=1x1x1x2"),
        ("1,9,9,5", "size=2x1x1x1"),
        ("2,5,9,5", "size=1x3x1x1 rhs_dilate=1x2x1x1"),
        ("2,13,9,5", "size=1x3x1x1 pad=0_0x3_3x0_0x0_0"),
        ("2,15,9,5", "size=1x3x1x1 lhs_dilate=1x2x1x1"),
        ("2,7,9,5", "size=1x3x1x1 rhs_reversal=0x1x0x0"),
    ] {
        for (ty, compare, combine) in
            [("f32", "GE", "add"), ("s32", "LT", "add"), ("f64", "NE", "subtract"), ("u8", "GE", "maximum")]
        {
            native(&select_and_scatter(ty, compare, combine, "2,9,9,5", source, window));
        }
    }
}

#[test]
fn selections_of_every_type() {
    for &ty in TYPES {
        let combine = if ty == "pred" { "or" } else { "maximum" };
        native(&select_and_scatter(ty, "GE", combine, "3,8,70", "3,4,70", "size=1x3x1 stride=1x2x1 pad=0_0x0_1x0_0"));
        native(&select_and_scatter(ty, "GE", combine, "3,8", "3,4", "size=1x3 stride=1x2 pad=0_0x0_1"));
    }
    for ty in ["c64", "c128"] {
        native(&select_and_scatter(ty, "EQ", "add", "8,7", "4,7", "size=3x1 stride=2x1 pad=0_1x0_0"));
    }
}

#[test]
fn nothing_to_select_from() {
    native(&select_and_scatter("f32", "GE", "add", "4,3", "0,3", "size=5x1"));
    native(&select_and_scatter("f32", "GE", "add", "4,0", "2,0", "size=3x1"));
    native(&select_and_scatter("f32", "GE", "add", "0,3", "2,3", "size=2x1 pad=2_1x0_0"));
}

#[test]
fn columns_of_every_type() {
    for &ty in TYPES {
        let op = if ty == "pred" { "xor" } else { "maximum" };
        native(&format!(
            "HloModule m\n{}ENTRY main {{
              x = {ty}[3,37,530] parameter(0)
              init = {ty}[] constant({})
              a = {ty}[3,530] reduce(x, init), dimensions={{1}}, to_apply=f
              b = {ty}[530] reduce(x, init), dimensions={{1,0}}, to_apply=f
              ROOT t = ({ty}[3,530], {ty}[530]) tuple(a, b) }}",
            combiner("f", ty, op),
            one(ty)
        ));
    }
}

#[test]
fn columns_in_order_and_of_several_arrays() {
    native(&format!(
        "HloModule m\n{BEST}{}ENTRY main {{
          x = f32[70,129] parameter(0)
          y = f32[70] parameter(1)
          z = c64[40,64] parameter(2)
          yb = f32[70,129] broadcast(y), dimensions={{0}}
          w = f32[70,129] multiply(x, yb)
          i = s32[70,129] iota(), iota_dimension=0
          low = f32[] constant(-inf)
          zero = s32[] constant(0)
          init = c64[] constant((1, 2))
          c = c64[64] reduce(z, init), dimensions={{0}}, to_apply=f
          r = (f32[129], s32[129]) reduce(w, i, low, zero), dimensions={{0}}, to_apply=best
          ROOT t = (c64[64], (f32[129], s32[129])) tuple(c, r) }}",
        combiner("f", "c64", "subtract")
    ));
}

#[test]
fn neighbouring_reductions_of_any_combiner() {
    for dims in ["100,33", "3,33", "1,33", "70,2"] {
        let (rows, _) = dims.split_once(',').expect("two dimensions");
        native(&format!(
            "HloModule m\n{BEST}{}ENTRY main {{
              x = f32[{dims}] parameter(0)
              i = s32[{dims}] iota(), iota_dimension=1
              low = f32[] constant(-inf)
              zero = s32[] constant(0)
              d = f32[{rows}] reduce(x, low), dimensions={{1}}, to_apply=g
              r = (f32[{rows}], s32[{rows}]) reduce(x, i, low, zero), dimensions={{1}}, to_apply=best
              v = f32[{rows}] get-tuple-element(r), index=0
              p = s32[{rows}] get-tuple-element(r), index=1
              ROOT t = (f32[{rows}], s32[{rows}], f32[{rows}]) tuple(v, p, d) }}",
            combiner("g", "f32", "power")
        ));
    }
}

#[test]
fn large_reductions_are_split() {
    for (dims, kept, reduced) in
        [("1000003", "", "0"), ("2,500009", "2", "1"), ("4096,2,100", "100", "0,1"), ("8,65536", "", "0,1")]
    {
        for (ty, op) in [("s32", "add"), ("f32", "maximum"), ("u8", "xor")] {
            native(&format!(
                "HloModule m\n{}ENTRY main {{
                  x = {ty}[{dims}] parameter(0)
                  init = {ty}[] constant(1)
                  ROOT r = {ty}[{kept}] reduce(x, init), dimensions={{{reduced}}}, to_apply=f }}",
                combiner("f", ty, op)
            ));
        }
    }
}
