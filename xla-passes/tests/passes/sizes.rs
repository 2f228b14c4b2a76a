//! Tests of sizes and costs on both sides of the limits of passes.

use xla_hlo::text::parse_module;
use xla_hlo::{Module, Opcode, verify};
use xla_passes::{DotProfile, PassContext, PassOptions, TargetProfile, registry};

/// Runs a pass on an entry computation.
fn run(pass: &str, text: &str, profile: &TargetProfile) -> Module {
    let mut module = parse_module(text).unwrap_or_else(|error| panic!("{error} in {text}"));
    verify::check(&module).unwrap();
    let cx = PassContext::new(profile).with_options(PassOptions { verify: true, ..PassOptions::default() });
    registry::pipeline([pass]).unwrap().run(&mut module, &cx).unwrap();
    module
}

fn count(module: &Module, opcode: Opcode) -> usize {
    module.entry().iter().filter(|(_, i)| i.opcode() == opcode).count()
}

#[test]
fn elements_of_evaluated_iotas() {
    for (elements, left) in [(1024, 0), (1025, 1)] {
        let text =
            format!("ENTRY e {{ i = f32[{elements}] iota(), iota_dimension=0  ROOT s = f32[{elements}] sqrt(i) }}");
        let module = run("fold-constants", &text, &TargetProfile::generic());
        assert_eq!(count(&module, Opcode::Sqrt), left, "{elements}");
        // The large array is the operand.
        let text = format!(
            "ENTRY e {{ i = f32[{elements}] iota(), iota_dimension=0  ROOT s = f32[1] slice(i), slice={{[1:2]}} }}"
        );
        let module = run("fold-constants", &text, &TargetProfile::generic());
        assert_eq!(count(&module, Opcode::Slice), left, "{elements}");
    }
}

#[test]
fn bytes_of_evaluated_pads() {
    for (elements, left) in [(1 << 14, 0), ((1 << 14) + 1, 1)] {
        let text = format!(
            "ENTRY e {{ c = f32[2] constant({{1,2}})  z = f32[] constant(3)
             ROOT p = f32[{elements}] pad(c, z), padding=0_{} }}",
            elements - 2
        );
        let module = run("fold-constants", &text, &TargetProfile::generic());
        assert_eq!(count(&module, Opcode::Pad), left, "{elements}");
    }
}

#[test]
fn instructions_of_unrolled_loops() {
    // Six instructions of the loop itself, and the chain.
    for (chain, left) in [(512 / 8 - 6, 0), (512 / 8 - 5, 1)] {
        let steps: String = (1..=chain).map(|i| format!("x{i} = f32[] negate(x{})\n", i - 1)).collect();
        let text = format!(
            "HloModule m
            body {{ s = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
              x0 = f32[] get-tuple-element(s), index=1  one = s32[] constant(1)  n = s32[] add(i, one)
              {steps} ROOT t = (s32[], f32[]) tuple(n, x{chain}) }}
            condition {{ s = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
              c = s32[] constant(8)  ROOT l = pred[] compare(i, c), direction=LT }}
            ENTRY e {{ x = f32[] parameter(0)  z = s32[] constant(0)  t = (s32[], f32[]) tuple(z, x)
              ROOT w = (s32[], f32[]) while(t), condition=condition, body=body }}"
        );
        let module = run("unroll-loops", &text, &TargetProfile::generic());
        assert_eq!(count(&module, Opcode::While), left, "{chain}");
    }
}

/// Dots with a common left operand, and properties of the target.
struct Dots {
    /// Number of dots.
    count: usize,
    /// Sizes of each dot.
    m: usize,
    k: usize,
    n: usize,
    /// Whether the right operands are constants.
    known: bool,
    /// Whether results are negated, so that slices are fused with their users.
    fused: bool,
    launch_seconds: f64,
    merge_bytes: usize,
}

const DOTS: Dots =
    Dots { count: 2, m: 8, k: 8, n: 1, known: false, fused: true, launch_seconds: 0.0, merge_bytes: 1 << 20 };

impl Dots {
    /// Returns the number of dots after merging, for a target with a bandwidth of one byte per second.
    fn left(&self) -> usize {
        let Dots { count: dots, m, k, n, known, fused, launch_seconds, merge_bytes } = *self;
        let mut lines = vec![format!("x = s8[{m},{k}] parameter(0)")];
        let row = |i: usize| format!("{{{}}}", vec![(i + 1).to_string(); n].join(","));
        let value = format!("{{{}}}", (0..k).map(row).collect::<Vec<_>>().join(","));
        for i in 0..dots {
            lines.push(match known {
                true => format!("w{i} = s8[{k},{n}] constant({value})"),
                false => format!("w{i} = s8[{k},{n}] parameter({})", i + 1),
            });
            lines.push(format!(
                "d{i} = s8[{m},{n}] dot(x, w{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
            ));
            lines.push(format!("n{i} = s8[{m},{n}] negate(d{i})"));
        }
        let results: Vec<String> = (0..dots).map(|i| format!("{}{i}", if fused { "n" } else { "d" })).collect();
        let types = vec![format!("s8[{m},{n}]"); dots].join(", ");
        let text = format!("ENTRY e {{ {}\n ROOT t = ({types}) tuple({}) }}", lines.join("\n"), results.join(", "));
        let dot = DotProfile { merge_bytes, ..TargetProfile::generic().dot };
        let profile = TargetProfile { dot, launch_seconds, cache_bandwidth: 1.0, ..TargetProfile::generic() };
        count(&run("merge-dots", &text, &profile), Opcode::Dot)
    }
}

#[test]
fn dots_are_merged_where_that_saves_time() {
    let cases = [
        // Two right operands are read and written; the left one is read once less.
        (Dots { m: 4, ..DOTS }, 2),
        (Dots { m: 5, ..DOTS }, 1),
        (Dots { m: 8, n: 2, ..DOTS }, 2),
        (Dots { m: 9, n: 2, ..DOTS }, 1),
        // Three dots save two reads.
        (Dots { count: 3, m: 3, ..DOTS }, 3),
        (Dots { count: 3, m: 4, ..DOTS }, 1),
        // Constants are concatenated at compile time.
        (Dots { m: 1, known: true, ..DOTS }, 1),
        // Slices of the result are read and written as well.
        (Dots { m: 8, fused: false, ..DOTS }, 2),
        (Dots { m: 9, fused: false, ..DOTS }, 1),
        (Dots { m: 8, k: 4, known: true, fused: false, ..DOTS }, 2),
        (Dots { m: 8, k: 5, known: true, fused: false, ..DOTS }, 1),
        // One kernel fewer for dots, one more to concatenate operands.
        (Dots { m: 5, launch_seconds: 100.0, ..DOTS }, 1),
        (Dots { m: 4, launch_seconds: 100.0, ..DOTS }, 2),
        (Dots { count: 3, m: 1, launch_seconds: 100.0, ..DOTS }, 1),
        (Dots { count: 3, m: 1, launch_seconds: 32.0, ..DOTS }, 3),
        (Dots { count: 3, m: 1, launch_seconds: 33.0, ..DOTS }, 1),
        // One kernel for each slice, as for the separate dots.
        (Dots { m: 8, k: 4, known: true, fused: false, launch_seconds: 100.0, ..DOTS }, 2),
        // Bytes of the operands and result of each dot.
        (Dots { merge_bytes: 8 * 8 + 8 + 8, ..DOTS }, 1),
        (Dots { merge_bytes: 8 * 8 + 8 + 8 - 1, ..DOTS }, 2),
        (Dots { merge_bytes: 0, ..DOTS }, 2),
    ];
    for (i, (dots, left)) in cases.into_iter().enumerate() {
        assert_eq!(dots.left(), left, "case {i}");
    }
}
