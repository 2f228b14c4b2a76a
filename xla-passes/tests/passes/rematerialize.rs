//! Tests of rematerialization under a memory limit: programs with known memory, checked with the evaluator.

use xla_hlo::text::{PrintOptions, parse_module, print_module};
#[allow(dead_code, reason = "each test uses a part of it")]
use xla_hlo::{Module, verify};
use xla_passes::buffers::{BufferOptions, assign_buffers};
use xla_passes::{PassContext, PassOptions, PipelineReport, TargetProfile, registry};

use crate::support::{difference, evaluate};

fn run(module: &mut Module, passes: &str, limit: Option<u64>, max_rewrites: Option<u64>) -> PipelineReport {
    let profile = TargetProfile { memory_bytes: limit, ..TargetProfile::generic() };
    let options = PassOptions { verify: true, max_rewrites, ..PassOptions::default() };
    let pipeline = registry::pipeline(passes.split(',')).expect("passes of the registry");
    pipeline.run(module, &PassContext::new(&profile).with_options(options)).expect("the passes succeed")
}

fn bytes(module: &Module) -> usize {
    let mut module = module.clone();
    run(&mut module, "insert-copies", None, None);
    let options = BufferOptions { verify: true, ..BufferOptions::default() };
    assign_buffers(&module, &options).expect("buffers can be assigned").total_bytes()
}

/// Schedules a program, and reduces its memory below a limit, or as near to it as possible. Returns the program, its
/// memory before and after, and the number of recomputed values.
fn limited(text: &str, limit: impl Fn(usize) -> usize) -> (Module, usize, usize, u64) {
    let before = parse_module(text).expect("it parses");
    verify::check(&before).expect("it is valid");
    let mut after = before.clone();
    run(&mut after, "schedule", None, None);
    let unlimited = bytes(&after);
    let limit = Some(limit(unlimited) as u64);
    let report = run(&mut after, "rematerialize", limit, None);
    for seed in 0..4 {
        let (old, new) = (evaluate(&before, seed, true, 100_000), evaluate(&after, seed, true, 100_000));
        let (old, new) = (old.expect("it evaluates"), new.expect("it evaluates"));
        assert_eq!(difference(&old, &new, false), None, "{after}");
    }
    assert!(!run(&mut after.clone(), "rematerialize", limit, None).is_changed(), "a second run changes it:\n{after}");
    assert!(!run(&mut after.clone(), "schedule", limit, None).is_changed(), "its order is lost:\n{after}");
    let count = report.rewrites().values().sum();
    let needs = bytes(&after);
    (after, unlimited, needs, count)
}

const SKIP: &str = include_str!("programs/skip.hlo");

#[test]
fn a_cheap_value_is_computed_again() {
    let (module, before, after, count) = limited(SKIP, |bytes| bytes - 1);
    assert_eq!((before - after, count), (1024, 1), "{module}");
    let text = print_module(&module, &PrintOptions { layouts: false, ..PrintOptions::short_parsable() });
    let order: Vec<&str> =
        text.lines().filter_map(|line| line.trim().split_once(" = ")).map(|(name, _)| name).collect();
    assert_eq!(order, ["x", "a", "b", "c", "d", "e", "a.again", "flat.1", "again.1", "ROOT r"], "{text}");
}

#[test]
fn nothing_happens_without_need() {
    for limit in [0, 1, 1 << 20] {
        assert_eq!(limited(SKIP, |bytes| bytes + limit).3, 0);
    }
    let mut module = parse_module(SKIP).expect("it parses");
    assert!(!run(&mut module, "rematerialize", Some(1), None).is_changed(), "it has no order yet");
    run(&mut module, "schedule", None, None);
    assert!(!run(&mut module, "rematerialize", None, None).is_changed(), "there is no limit");
    assert!(!run(&mut module, "rematerialize", Some(1), Some(0)).is_changed(), "no rewrite is allowed");
}

#[test]
fn what_is_expensive_is_kept_and_the_error_names_it() {
    let text = SKIP.replace(
        "a = f32[16,16] cosine(x)",
        "a = f32[16,16] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    );
    let (mut module, before, after, count) = limited(&text, |bytes| bytes - 1);
    assert_eq!((before, count), (after, 0));
    run(&mut module, "insert-copies", None, None);
    let options = BufferOptions { memory_bytes: Some(before as u64 - 1), ..BufferOptions::default() };
    let error = assign_buffers(&module, &options).unwrap_err();
    assert!(matches!(error, xla_hlo::Error::ResourceExhausted(_)));
    insta::assert_snapshot!(error.to_string(), @"module skip needs 5120 bytes of memory, the limit is 5119: 1024 for arguments, 0 for constants, 1024 for results, 3072 temporary; most of these at dot %d in main: 1024 B of %a f32[16,16] in main, 1024 B of %b f32[16,16] in main, 1024 B of %d f32[16,16] in main");
    let enough = BufferOptions { memory_bytes: Some(before as u64), ..BufferOptions::default() };
    assert!(assign_buffers(&module, &enough).is_ok());
}

/// Kernel with two results, the second of which is used late; both are computed from a value that is always live.
const KERNEL: &str = include_str!("programs/kernel.hlo");

#[test]
fn of_a_kernel_only_the_result_that_is_needed_is_computed_again() {
    let (module, before, after, count) = limited(KERNEL, |bytes| bytes - 1);
    assert_eq!((before - after, count), (1024, 1), "{module}");
    let entry = module.entry();
    let again = entry.find("both.again").expect("the kernel's part");
    assert_eq!(entry[again].operands(), [entry.parameters()[0]], "the other operand is not needed");
    assert!(entry.find("both").is_some(), "the first result needs it");
}

#[test]
fn what_has_only_late_uses_moves_there() {
    let early = "b = f32[16,16] dot(a, x), lhs";
    let text = SKIP
        .replace(early, "b = f32[16,16] dot(x, x), control-predecessors={i}, lhs")
        .replace("b = f32[16,16] dot", "i = f32[16,16] negate(x)\n  b = f32[16,16] dot");
    let mut module = parse_module(&text).expect("it parses");
    run(&mut module, "schedule", None, None);
    // A given order: all cheap instructions first.
    let entry = module.entry_id();
    let mut order = module[entry].sequence();
    let at = order.iter().position(|&id| module[entry][id].name() == "a").expect("it is there");
    let a = order.remove(at);
    order.insert(1, a);
    module.computation_mut(entry).set_schedule(Some(order));
    let before = bytes(&module);
    let report = run(&mut module, "rematerialize", Some(before as u64 - 1), None);
    assert_eq!(report.rewrites().values().sum::<u64>(), 1);
    assert!(bytes(&module) < before && module.entry().find("a").is_none(), "{module}");
}

/// Two values with late uses in the body of a loop; both are recomputed.
#[test]
fn inside_loops_and_several_at_once() {
    let text = include_str!("programs/inside_loops_and_several_at_once.hlo");
    let (module, before, after, count) = limited(text, |bytes| bytes - 1500);
    assert_eq!((before - after, count), (2048, 2), "{module}");
}
