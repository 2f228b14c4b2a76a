//! Tests of sorts, top-k, scatters and random state in programs compiled ahead of time, which call no library.

use std::fmt::Write;

use xla_service::AotCompilationOptions;
use xla_tests::agreement::programs::{
    BY_PART, BY_SIZE_THEN_PLACE, SCATTER_ARRANGEMENTS, SCATTER_POINTS, SCATTER_ROWS, scatter_of,
    scatters_far_out_of_range, sort_of,
};

use crate::ahead_of_time::{agrees, agrees_on, compile, link, run};

/// Element types with an order.
const ORDERED: &[&str] = &[
    "pred",
    "s2",
    "s4",
    "s8",
    "s16",
    "s32",
    "s64",
    "u2",
    "u4",
    "u8",
    "u16",
    "u32",
    "u64",
    "f4e2m1fn",
    "f8e3m4",
    "f8e4m3",
    "f8e4m3fn",
    "f8e4m3fnuz",
    "f8e4m3b11fnuz",
    "f8e5m2",
    "f8e5m2fnuz",
    "f8e8m0fnu",
    "bf16",
    "f16",
    "f32",
    "f64",
];

/// Builder of an entry that returns several values, each with its shape and operation.
#[derive(Default)]
struct Several {
    computations: String,
    parameters: String,
    lines: String,
    results: Vec<(String, String)>,
}

impl Several {
    /// Adds an array as a parameter, and returns its name.
    fn parameter(&mut self, shape: &str) -> String {
        let number = self.parameters.lines().count();
        let _ = writeln!(self.parameters, "p{number} = {shape} parameter({number})");
        format!("p{number}")
    }

    /// Adds a result, and returns its name.
    fn result(&mut self, shape: &str, operation: &str) -> String {
        let name = format!("r{}", self.results.len());
        let _ = writeln!(self.lines, "{name} = {shape} {operation}");
        self.results.push((shape.to_string(), name.clone()));
        name
    }

    fn text(&self) -> String {
        let shapes: Vec<&str> = self.results.iter().map(|(shape, _)| &shape[..]).collect();
        let names: Vec<&str> = self.results.iter().map(|(_, name)| &name[..]).collect();
        let Several { computations, parameters, lines, .. } = self;
        let (shapes, names) = (shapes.join(", "), names.join(", "));
        format!(
            "HloModule several\n{computations}ENTRY main {{\n{parameters}{lines}ROOT all = ({shapes}) tuple({names})\n}}"
        )
    }
}

/// Returns a comparator `before_...` of the first of two arrays, or of a single array, by one comparison.
fn comparator(ty: &str, direction: &str, order: &str, is_alone: bool) -> String {
    let others = if is_alone { "" } else { "i = s32[] parameter(2)\n  j = s32[] parameter(3)\n" };
    format!(
        "before_{direction}_{is_alone} {{\n  a = {ty}[] parameter(0)\n  b = {ty}[] parameter(1)\n  {others}
        ROOT r = pred[] compare(a, b), direction={direction}{order}\n}}\n"
    )
}

#[test]
fn sorts_by_keys_of_every_type() {
    for &ty in ORDERED {
        let is_float = ty.starts_with('f') || ty.starts_with('b');
        let orders: &[&str] = match ty {
            // Negative inputs are NaN, which a plain comparison does not order.
            "f8e8m0fnu" => &[", type=TOTALORDER"],
            _ if is_float => &["", ", type=TOTALORDER"],
            _ => &[""],
        };
        for order in orders {
            let mut program = Several::default();
            for direction in ["LT", "GT"] {
                program.computations += &comparator(ty, direction, order, true);
                program.computations += &comparator(ty, direction, order, false);
            }
            for (dims, dimension) in
                [("1", 0), ("9", 0), ("700", 0), ("3,11,5", 1), ("2,300,3", 1), ("0,4", 1), ("4,0", 1)]
            {
                let shape = format!("{ty}[{dims}]");
                let x = program.parameter(&shape);
                for direction in ["LT", "GT"] {
                    let sort = format!("dimensions={{{dimension}}}, is_stable=true, to_apply=before_{direction}");
                    program.result(&shape, &format!("sort({x}), {sort}_true"));
                    let places = format!("s32[{dims}]");
                    let of = program.result(&places, &format!("iota(), iota_dimension={dimension}"));
                    program.result(&format!("({shape}, {places})"), &format!("sort({x}, {of}), {sort}_false"));
                }
            }
            // The code does not depend on features of the processor.
            agrees_on(None, &flat(&program));
        }
    }
}

/// Returns the program with tuple results replaced by their elements.
fn flat(program: &Several) -> String {
    let mut flat = Several {
        computations: program.computations.clone(),
        parameters: program.parameters.clone(),
        lines: program.lines.clone(),
        results: Vec::new(),
    };
    for (shape, name) in &program.results {
        match shape.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            None => flat.results.push((shape.clone(), name.clone())),
            Some(elements) => {
                for (index, element) in elements.split(", ").enumerate() {
                    let part = format!("{name}_{index}");
                    let _ = writeln!(flat.lines, "{part} = {element} get-tuple-element({name}), index={index}");
                    flat.results.push((element.to_string(), part));
                }
            }
        }
    }
    flat.text()
}

#[test]
fn sorts_special_values() {
    let special = "{nan, -0, 1, inf, 0, -nan, -inf, -1, 1e-45, -1e-45, nan, 0, -0, 3.4e38, -inf, inf}";
    let canonical = "quiet = f32[] constant(nan)
        zero = f32[] constant(0)
        na = pred[] compare(a, a), direction=NE
        za = pred[] compare(a, zero), direction=EQ
        sa = f32[] select(za, zero, a)
        ka = f32[] select(na, quiet, sa)
        nb = pred[] compare(b, b), direction=NE
        zb = pred[] compare(b, zero), direction=EQ
        sb = f32[] select(zb, zero, b)
        kb = f32[] select(nb, quiet, sb)\n";
    for repeats in [1, 40] {
        for root in ["compare(a, b), direction=GT, type=TOTALORDER", "compare(ka, kb), direction=LT, type=TOTALORDER"] {
            let count = 16 * repeats;
            agrees(&format!(
                "HloModule m
                before {{ a = f32[] parameter(0)
                  b = f32[] parameter(1)
                  i = s32[] parameter(2)
                  j = s32[] parameter(3)
                  {canonical}
                  ROOT r = pred[] {root} }}
                alone {{ a = f32[] parameter(0)
                  b = f32[] parameter(1)
                  {canonical}
                  ROOT r = pred[] {root} }}
                ENTRY main {{
                  c = f32[16] constant({special})
                  b = f32[{repeats},16] broadcast(c), dimensions={{1}}
                  x = f32[{count}] reshape(b)
                  y = s32[{count}] iota(), iota_dimension=0
                  s = (f32[{count}], s32[{count}]) sort(x, y), dimensions={{0}}, is_stable=true, to_apply=before
                  v = f32[{count}] get-tuple-element(s), index=0
                  w = s32[{count}] get-tuple-element(s), index=1
                  u = f32[{count}] sort(x), dimensions={{0}}, is_stable=true, to_apply=alone
                  k = (f32[{repeats},3], s32[{repeats},3]) topk(b), k=3, largest=true
                  kv = f32[{repeats},3] get-tuple-element(k), index=0
                  kp = s32[{repeats},3] get-tuple-element(k), index=1
                  bits = u32[{count}] bitcast-convert(v)
                  ROOT t = (f32[{count}], s32[{count}], u32[{count}], f32[{repeats},3], s32[{repeats},3], f32[{count}]) tuple(v, w, bits, kv, kp, u)
                }}"
            ));
        }
    }
}

#[test]
fn sorts_by_any_comparator() {
    for (dims, dimension) in [("1", 0), ("0,3", 1), ("8", 0), ("300", 0), ("4,70,3", 1), ("20000", 0)] {
        agrees(&parts(&sort_of("f32", dims, dimension, BY_SIZE_THEN_PLACE), "f32", dims));
    }
    agrees(&parts(&sort_of("c64", "2,90", 1, BY_PART), "c64", "2,90"));
    agrees(&parts(&sort_of("c128", "90", 0, &BY_PART.replace("f32", "f64")), "c128", "90"));
}

/// Returns the program with the two arrays of its result in a tuple that the entry creates.
fn parts(text: &str, ty: &str, dims: &str) -> String {
    let shapes = format!("({ty}[{dims}], s32[{dims}])");
    let (before, after) = text.rsplit_once("ROOT r").unwrap();
    let (sort, _) = after.rsplit_once('}').unwrap();
    format!(
        "{before} s {sort}
          v = {ty}[{dims}] get-tuple-element(s), index=0
          w = s32[{dims}] get-tuple-element(s), index=1
          ROOT t = {shapes} tuple(v, w)
        }}"
    )
}

/// No element is lost, whatever the comparator: the sorted indices are all indices.
#[test]
fn sorts_end_whatever_the_comparator_says() {
    let odd = [
        "ROOT r = pred[] constant(true)",
        "ROOT r = pred[] compare(i, j), direction=LE",
        "p = s32[] multiply(i, j)\n q = s32[] xor(p, i)\n k = s32[] constant(5)\n m = s32[] and(q, k)\n ROOT r = pred[] compare(m, k), direction=NE",
    ];
    for before in odd {
        for count in [2, 9, 17, 1000] {
            agrees(&format!(
                "HloModule m
                before {{ a = f32[] parameter(0)
                  b = f32[] parameter(1)
                  i = s32[] parameter(2)
                  j = s32[] parameter(3)
                  {before} }}
                least {{ a = s32[] parameter(0)
                  b = s32[] parameter(1)
                  ROOT r = pred[] compare(a, b), direction=LT }}
                ENTRY main {{
                  x = f32[{count}] parameter(0)
                  y = s32[{count}] iota(), iota_dimension=0
                  s = (f32[{count}], s32[{count}]) sort(x, y), dimensions={{0}}, to_apply=before
                  places = s32[{count}] get-tuple-element(s), index=1
                  ROOT r = s32[{count}] sort(places), dimensions={{0}}, to_apply=least
                }}"
            ));
        }
    }
}

#[test]
fn the_best_of_rows() {
    for &ty in ORDERED {
        let mut program = Several::default();
        for (dims, rows, k) in
            [("2000", "", 5), ("7,300", "7,", 20), ("3,4,40", "3,4,", 40), ("2,9", "2,", 0), ("5,1", "5,", 1)]
        {
            let x = program.parameter(&format!("{ty}[{dims}]"));
            for largest in [true, false] {
                let shape = format!("({ty}[{rows}{k}], s32[{rows}{k}])");
                program.result(&shape, &format!("topk({x}), k={k}, largest={largest}"));
            }
        }
        agrees(&flat(&program));
    }
}

const ADD: &str = "ROOT r = REAL[] add(a, b)";

#[test]
fn scatters_of_every_element_type() {
    let others = ["c64", "c128"];
    for ty in ORDERED.iter().chain(&others).filter(|ty| **ty != "pred" && **ty != "f8e8m0fnu") {
        let ordered = &format!("d = {ty}[] add(a, a)\n ROOT r = {ty}[] add(d, b)");
        agrees(&scatter_of(ty, ordered, ["7,37", "s8[40,1]", "40,23"], SCATTER_ROWS));
        agrees(&scatter_of(ty, &format!("ROOT r = {ty}[] copy(b)"), ["7", "s32[40,1]", "40"], SCATTER_POINTS));
    }
    agrees(&scatter_of("pred", "ROOT r = pred[] copy(b)", ["7,37", "s8[40,1]", "40,23"], SCATTER_ROWS));
}

#[test]
fn scatters_of_every_arrangement() {
    let add = &ADD.replace("REAL", "f32");
    for &(shapes, attributes) in SCATTER_ARRANGEMENTS {
        agrees(&scatter_of("f32", add, shapes, attributes));
    }
    for ty in ["s4", "u8", "s16", "u32", "s64", "u64"] {
        agrees(&scatter_of("f32", add, ["5,3", &format!("{ty}[40,1]"), "40,3"], SCATTER_ROWS));
    }
    scatters_far_out_of_range().iter().for_each(|program| agrees(program));
    // Nothing to combine: the result is a copy.
    agrees(&scatter_of("f64", &ADD.replace("REAL", "f64"), ["5", "s32[0,1]", "0"], SCATTER_POINTS));
}

#[test]
fn scatters_of_several_arrays_and_in_place() {
    agrees(include_str!(
        "../../../tests/conformance/programs/kernels/scatters_of_several_arrays_and_of_their_operands.hlo"
    ));
}

/// Compares all kinds of transform of given dimensions, for some batches. Operands are small, so that sums of rounding
/// errors are within the tolerance.
fn transforms(real: &str, complex: &str, batches: &str, dims: &[usize]) {
    let (&last, outer) = dims.split_last().unwrap();
    let outer: String = outer.iter().map(|n| format!("{n},")).collect();
    let (length, half) = (format!("{outer}{last}"), if last == 0 { 0 } else { last / 2 + 1 });
    let (full, half) = (format!("{batches}{length}"), format!("{batches}{outer}{half}"));
    agrees(&format!(
        "HloModule f
        ENTRY main {{
          p = {complex}[{full}] parameter(0)
          q = {real}[{full}] parameter(1)
          r = {complex}[{half}] parameter(2)
          c = {complex}[] constant((0.015625, 0))
          s = {real}[] constant(0.015625)
          cf = {complex}[{full}] broadcast(c), dimensions={{}}
          sf = {real}[{full}] broadcast(s), dimensions={{}}
          ch = {complex}[{half}] broadcast(c), dimensions={{}}
          x = {complex}[{full}] multiply(p, cf)
          y = {real}[{full}] multiply(q, sf)
          z = {complex}[{half}] multiply(r, ch)
          a = {complex}[{full}] fft(x), fft_type=FFT, fft_length={{{length}}}
          b = {complex}[{full}] fft(x), fft_type=IFFT, fft_length={{{length}}}
          e = {complex}[{half}] fft(y), fft_type=RFFT, fft_length={{{length}}}
          d = {real}[{full}] fft(z), fft_type=IRFFT, fft_length={{{length}}}
          ROOT t = ({complex}[{full}], {complex}[{full}], {complex}[{half}], {real}[{full}]) tuple(a, b, e, d)
        }}"
    ));
}

#[test]
fn fourier_transforms_of_every_kind() {
    for (real, complex) in [("f32", "c64"), ("f64", "c128")] {
        // Powers of two, mixed radices, a prime computed as one radix, and a length computed by convolution.
        for n in [0, 1, 2, 31, 64, 74, 120, 243] {
            transforms(real, complex, "", &[n]);
        }
        // Lines one by one, and in blocks that are not full.
        transforms(real, complex, "2,3,", &[60]);
        transforms(real, complex, "37,", &[8]);
        transforms(real, complex, "21,", &[15]);
        // Columns in blocks, the last of them not full.
        transforms(real, complex, "", &[5, 33]);
        transforms(real, complex, "2,", &[4, 5, 6]);
        // Columns of several passes, and columns computed by convolution.
        transforms(real, complex, "", &[64, 3]);
        transforms(real, complex, "", &[37, 3]);
        // Dimensions of one element.
        transforms(real, complex, "2,", &[5, 1]);
        transforms(real, complex, "", &[1, 6]);
    }
}

/// Quotients by 3 and 5 are products with a reciprocal in two parts, of which both must be positive.
#[test]
fn inverse_fourier_transforms_keep_infinities() {
    for (real, complex) in [("f32", "c64"), ("f64", "c128")] {
        for n in [3, 5] {
            let half = n / 2 + 1;
            agrees(&format!(
                "HloModule f
                ENTRY main {{
                  p = {complex}[] parameter(0)
                  i = {complex}[1] constant({{(inf, 0)}})
                  zero = {complex}[] constant((0, 0))
                  x = {complex}[{half}] pad(i, zero), padding=0_{}
                  ROOT r = {real}[{n}] fft(x), fft_type=IRFFT, fft_length={{{n}}}
                }}",
                half - 1
            ));
        }
    }
}

#[test]
fn random_state_is_the_callers() {
    let text = "HloModule draws
        ENTRY main {
          ROOT r = u64[2] rng-get-and-update-state(), delta=3
        }";
    let files = compile(text, &AotCompilationOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = "#include \"draws.h\"
static _Alignas(64) unsigned char memory[DRAWS_ARENA_SIZE + 1];
int main(void) {
  uint64_t state[2] = {UINT64_MAX, 5}, drawn[2] = {0, 0};
  draws_call call = {0};
  call.abi = DRAWS_ABI, call.arena = memory, call.arena_size = DRAWS_ARENA_SIZE, call.result = drawn;
  if (draws(&call) != DRAWS_NULL_RANDOM_STATE) return 1;
  call.random_state = state;
  if (draws(&call) != DRAWS_OK || drawn[0] != UINT64_MAX || drawn[1] != 5 || state[0] != 2 || state[1] != 6) return 2;
  return draws(&call) == DRAWS_OK && drawn[0] == 2 && drawn[1] == 6 && state[0] == 5 && state[1] == 6 ? 0 : 3;
}
";
    let program = link(folder.path(), &files, "cc", source);
    assert_eq!(run(&program, &[]).0, Some(0));
}
