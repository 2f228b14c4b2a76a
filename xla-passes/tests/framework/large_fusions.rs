//! Tests of limits of large fusions: code size, and the number of live values.

use std::fmt::Write;

use xla_hlo::text::parse_module;
use xla_hlo::{Module, Op};
use xla_passes::{PassContext, Pipeline, TargetProfile, registry};

/// Returns a program of `alive` values of two arrays, all used by the values after them, and the sum of those.
fn wide(alive: usize, ty: &str, function: &str) -> String {
    let mut text = format!("ENTRY main {{\n  x = {ty}[4096] parameter(0)\n  y = {ty}[4096] parameter(1)\n");
    let mut line = |name: &str, value: String| _ = writeln!(text, "  {name} = {ty}[4096] {value}");
    line("v0", "add(x, y)".into());
    for i in 1..alive {
        line(&format!("v{i}"), format!("{function}(v{})", i - 1));
    }
    for i in 0..alive {
        line(&format!("w{i}"), format!("multiply(v{i}, v{})", (7 * i + 1) % alive));
    }
    line("s0", "negate(w0)".into());
    for i in 1..alive {
        line(&format!("s{i}"), format!("add(s{}, w{i})", i - 1));
    }
    text + &format!("  ROOT out = {ty}[4096] negate(s{})\n}}\n", alive - 1)
}

/// Returns the numbers of instructions of the fusions.
fn sizes(text: &str, change: impl Fn(&mut TargetProfile)) -> Vec<usize> {
    let mut profile = TargetProfile::generic();
    profile.fusion.max_instructions = 4096;
    change(&mut profile);
    let mut module: Module = parse_module(text).expect("the test's module");
    let pipeline: Pipeline = registry::pipeline(["fuse", "fuse-outputs"]).expect("passes of the registry");
    pipeline.run(&mut module, &PassContext::new(&profile)).expect("it runs");
    let fusion = |op: &Op| if let Op::Fusion(fusion) = op { Some(module[fusion.computation].len()) } else { None };
    module.entry().iter().filter_map(|(_, i)| fusion(i.op())).collect()
}

fn registers(n: usize) -> impl Fn(&mut TargetProfile) {
    move |profile| profile.fusion.max_live_registers = n
}

#[test]
fn values_that_fit_into_registers_are_one_kernel() {
    for (alive, ty) in [(50, "f32"), (100, "f32"), (100, "bf16"), (50, "f64"), (25, "c128")] {
        let sizes = sizes(&wide(alive, ty, "negate"), registers(208));
        assert_eq!(sizes, [3 * alive + 3], "{alive} {ty}");
    }
}

#[test]
fn values_that_do_not_fit_are_several_kernels() {
    for (alive, ty) in [(300, "f32"), (150, "f64"), (80, "c128")] {
        let sizes = sizes(&wide(alive, ty, "negate"), registers(208));
        assert!(sizes.len() > 1, "{alive} {ty}: {sizes:?}");
    }
}

#[test]
fn expensive_functions_take_more_of_the_code() {
    let code = |profile: &mut TargetProfile| {
        profile.fusion.max_live_registers = 208;
        profile.fusion.max_code = 1000;
    };
    assert_eq!(sizes(&wide(100, "f32", "negate"), code).len(), 1);
    let sines = sizes(&wide(100, "f32", "sine"), code);
    assert!(sines.len() > 1, "{sines:?}");
}
