//! Tests of limits of the passes: short programs that would otherwise grow or compile without bound.

use std::fmt::Write;

use xla_hlo::text::parse_module;
use xla_hlo::{Error, Module, Op, Result, verify};
use xla_passes::{PassContext, PassOptions, TargetProfile, registry, stages};

use crate::support::{difference, evaluate};

fn parse(text: &str) -> Module {
    let module = parse_module(text).unwrap();
    verify::check(&module).unwrap();
    module
}

fn run(module: &mut Module, passes: &str) -> Result<()> {
    run_for(&TargetProfile::generic(), module, passes)
}

fn run_for(profile: &TargetProfile, module: &mut Module, passes: &str) -> Result<()> {
    let cx = PassContext::new(profile).with_options(PassOptions { verify: true, ..PassOptions::default() });
    let pipeline = match passes {
        "standard" => stages::standard(profile),
        "canonicalize" => stages::canonicalize(profile),
        names => registry::pipeline(names.split(", ")).unwrap(),
    };
    pipeline.run(module, &cx).map(|_| ())
}

/// Returns `depth` functions, each of which calls the previous one twice, in instructions that `step` returns for the
/// callee's name.
fn doubling(depth: usize, step: impl Fn(&str) -> String, entry: &str) -> Module {
    let mut text = "HloModule m\nf0 { p = f32[] parameter(0)  ROOT r = f32[] negate(p) }\n".to_string();
    for i in 1..=depth {
        let callee = format!("f{}", i - 1);
        writeln!(text, "f{i} {{ p = f32[] parameter(0)  {} }}", step(&callee)).unwrap();
    }
    parse(&format!("{text}{entry}"))
}

fn assert_exhausted(result: Result<()>, message: &str) {
    let error = result.expect_err(message);
    assert!(matches!(error, Error::ResourceExhausted(_)), "{error}");
    assert!(error.to_string().contains(message), "{error}");
    assert!(error.to_string().contains("262144 instructions"), "{error}");
}

#[test]
fn nested_maps_without_end() {
    let map = |callee: &str| {
        format!(
            "a = f32[] map(p), dimensions={{}}, to_apply={callee}  \
             ROOT r = f32[] map(a), dimensions={{}}, to_apply={callee}"
        )
    };
    let entry = "ENTRY e { x = f32[4] parameter(0)  ROOT r = f32[4] map(x), dimensions={0}, to_apply=f40 }";
    for passes in ["inline-maps", "standard"] {
        assert_exhausted(run(&mut doubling(40, map, entry), passes), "inlining f");
    }
}

#[test]
fn nested_maps_with_calls_without_end() {
    let call = |callee: &str| {
        format!(
            "c = f32[] call(p), to_apply={callee}  n = f32[] negate(c)  \
             ROOT r = f32[] map(n), dimensions={{}}, to_apply={callee}"
        )
    };
    let entry = "ENTRY e { x = f32[4] parameter(0)  ROOT r = f32[4] map(x), dimensions={0}, to_apply=f40 }";
    assert_exhausted(run(&mut doubling(40, call, entry), "standard"), "inlining f");
}

#[test]
fn calls_of_different_values_without_end() {
    let call = |callee: &str| {
        format!("a = f32[] call(p), to_apply={callee}  b = f32[] sine(a)  ROOT r = f32[] call(b), to_apply={callee}")
    };
    let entry = "ENTRY e { x = f32[] parameter(0)  ROOT r = f32[] call(x), to_apply=f40 }";
    assert_exhausted(run(&mut doubling(40, call, entry), "standard"), "for each of its calls");
}

#[test]
fn functions_that_call_two_others() {
    let mut text = "HloModule m\nf0 { ROOT x = f32[] parameter(0) }\n\
                    f1 { x = f32[] parameter(0)  ROOT r = f32[] negate(x) }\n"
        .to_string();
    for i in 2..=26 {
        write!(
            text,
            "f{i} {{ x = f32[] parameter(0)  a = f32[] call(x), to_apply=f{}  b = f32[] call(x), to_apply=f{}\n \
             ROOT r = f32[] add(a, b) }}\n",
            i - 1,
            i - 2
        )
        .unwrap();
    }
    let before = parse(&format!("{text}ENTRY e {{ x = f32[] parameter(0)  ROOT r = f32[] call(x), to_apply=f26 }}"));
    let mut after = before.clone();
    run(&mut after, "canonicalize").unwrap();
    assert!(after.instruction_count() < 40, "{after}");
    let (old, new) = (evaluate(&before, 0, false, 1 << 24), evaluate(&after, 0, false, 1 << 24));
    assert_eq!(difference(&old.unwrap(), &new.unwrap(), false), None);
}

#[test]
fn functions_that_call_one_another_once_are_inlined_however_deep() {
    let call = |callee: &str| format!("a = f32[] call(p), to_apply={callee}  ROOT r = f32[] add(a, p)");
    let entry = "ENTRY e { x = f32[] parameter(0)  ROOT r = f32[] call(x), to_apply=f3000 }";
    let mut module = doubling(3000, call, entry);
    run(&mut module, "inline-calls, dead-code").unwrap();
    assert_eq!(module.len(), 1);
    assert_eq!(module.instruction_count(), 1 + 1 + 3000);
}

#[test]
fn maps_of_functions_that_map_one_another_once_are_inlined_however_deep() {
    const DEPTH: usize = 900;
    let mut text = "HloModule m\nf0 { x = f32[] parameter(0)\n ROOT y = f32[] sine(x) }\n".to_string();
    for i in 1..DEPTH {
        let callee = i - 1;
        write!(text, "f{i} {{ x = f32[] parameter(0)\n c = f32[] constant(0.{i})\n d = f32[] add(x, c)\n").unwrap();
        writeln!(text, " ROOT y = f32[] map(d), dimensions={{}}, to_apply=f{callee} }}").unwrap();
    }
    let last = DEPTH - 1;
    let entry = format!("ROOT y = f32[2,3] map(x), dimensions={{0,1}}, to_apply=f{last}");
    let text = text + &format!("ENTRY e {{ x = f32[2,3] parameter(0)\n {entry} }}\n");
    let (before, mut module) = (parse(&text), parse(&text));
    run(&mut module, "inline-maps, dead-code").unwrap();
    assert!(module.entry().iter().all(|(_, i)| !matches!(i.op(), Op::Map(_))));
    assert!(module.instruction_count() < 5 * DEPTH, "{} instructions", module.instruction_count());
    let (old, new) = (evaluate(&before, 0, false, 1 << 24), evaluate(&module, 0, false, 1 << 24));
    assert_eq!(difference(&old.unwrap(), &new.unwrap(), false), None);
}

#[test]
fn functions_that_call_one_twice() {
    let call = |callee: &str| {
        format!("a = f32[] call(p), to_apply={callee}  b = f32[] call(p), to_apply={callee}  ROOT r = f32[] add(a, b)")
    };
    let entry = "ENTRY e { x = f32[] parameter(0)  ROOT r = f32[] call(x), to_apply=f60 }";
    let mut module = doubling(60, call, entry);
    run(&mut module, "standard").unwrap();
    assert!(module.instruction_count() < 200, "{module}");
}

#[test]
fn rows_normalized_in_a_chain() {
    let mut text = "HloModule m
        max { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT r = f32[] maximum(x, y) }
        ENTRY e {
          v0 = f32[9,50] parameter(0)
          z = f32[] constant(-inf)\n"
        .to_string();
    for i in 0..50 {
        writeln!(text, "m{i} = f32[9] reduce(v{i}, z), dimensions={{1}}, to_apply=max").unwrap();
        writeln!(text, "b{i} = f32[9,50] broadcast(m{i}), dimensions={{0}}").unwrap();
        writeln!(text, "v{} = f32[9,50] subtract(v{i}, b{i})", i + 1).unwrap();
    }
    let before = parse(&format!("{text}ROOT r = f32[9,50] negate(v50) }}"));
    let mut after = before.clone();
    let mut profile = TargetProfile::generic();
    profile.fusion.row_kernels = true;
    run_for(&profile, &mut after, "standard").unwrap();
    let reductions = |module: &Module| module.entry().iter().filter(|(_, i)| matches!(i.op(), Op::Reduce(_))).count();
    assert_eq!((reductions(&before), reductions(&after)), (50, 0), "{after}");
    let (old, new) = (evaluate(&before, 0, false, 1 << 24), evaluate(&after, 0, false, 1 << 24));
    assert_eq!(difference(&old.unwrap(), &new.unwrap(), false), None);
}

#[test]
fn large_reduction_of_a_constant() {
    let text = include_str!("programs/large_reduction_of_a_constant.hlo");
    let mut module = parse(text);
    run(&mut module, "standard").unwrap();
    let is_left = |op: &Op| matches!(op, Op::Reduce(_) | Op::ReduceWindow(_) | Op::Dot(_));
    let left = module.iter().flat_map(|(_, computation)| computation.iter()).filter(|(_, i)| is_left(i.op())).count();
    assert_eq!(left, 4, "each is more work than there is a budget for:\n{module}");
}

#[test]
fn many_small_dots_of_constants() {
    let mut text = "HloModule m\nENTRY e { z = f32[32,32] parameter(0)\n".to_string();
    for i in 1..=1000 {
        write!(
            text,
            "a{i} = f32[32,32] iota(), iota_dimension=0\n\
             d{i} = f32[32,32] dot(a{i}, a{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n\
             s{i} = f32[32,32] add({}, d{i})\n",
            if i == 1 { "z".to_string() } else { format!("s{}", i - 1) }
        )
        .unwrap();
    }
    let mut module = parse(&format!("{text} ROOT r = f32[32,32] add(s1000, z) }}"));
    run(&mut module, "fold-constants").unwrap();
    let left = module.entry().iter().filter(|(_, i)| matches!(i.op(), Op::Dot(_))).count();
    assert!((500..1000).contains(&left), "each dot is cheap, but not all of them: {left} are left");
}

#[test]
fn concatenation_of_many_slices() {
    const SLICES: usize = 4000;
    let mut text = "HloModule m\nENTRY e { x = f32[100000] parameter(0)  o = s32[4000] parameter(1)\n".to_string();
    for i in 0..SLICES {
        write!(
            text,
            "s{i} = s32[1] slice(o), slice={{[{i}:{}]}}  q{i} = s32[] reshape(s{i})\n\
             d{i} = f32[8] dynamic-slice(x, q{i}), dynamic_slice_sizes={{8}}\n",
            i + 1
        )
        .unwrap();
    }
    let operands: Vec<String> = (0..SLICES).map(|i| format!("d{i}")).collect();
    let mut module =
        parse(&format!("{text} ROOT c = f32[32000] concatenate({}), dimensions={{0}} }}", operands.join(", ")));
    // A search for each pair of slices would exceed the time limit of the test runner.
    run(&mut module, "fuse, fuse-outputs, fold-kernels").unwrap();
    let kernels = module.entry().iter().filter(|(_, i)| matches!(i.op(), Op::Fusion(_))).count();
    assert!(kernels < SLICES / 20, "{kernels} kernels");
}
