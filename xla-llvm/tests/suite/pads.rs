//! Test of pads of single elements: the code size of a chain of them is linear in its length.

use std::fmt::Write;

use inkwell::context::Context;
use xla_hlo::text::parse_module;
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{KernelSource, emit_kernel};
use xla_llvm::target::Target;

/// Returns the number of instructions of a kernel of `steps` steps, each of which slices an array and rebuilds it by
/// pads.
fn instructions(steps: usize, target: &Target) -> usize {
    let mut text = String::from("HloModule m\nENTRY e {\n  x0 = f32[4] parameter(0)\n  zero = f32[] constant(0)\n");
    for i in 0..steps {
        for j in 0..4 {
            writeln!(text, "  s{i}_{j} = f32[1] slice(x{i}), slice={{[{j}:{}]}}", j + 1).unwrap();
            writeln!(text, "  n{i}_{j} = f32[1] negate(s{i}_{j})").unwrap();
            writeln!(text, "  p{i}_{j} = f32[4] pad(n{i}_{j}, zero), padding={}_{j}", 3 - j).unwrap();
        }
        writeln!(text, "  a{i} = f32[4] add(p{i}_0, p{i}_1)\n  b{i} = f32[4] add(p{i}_2, p{i}_3)").unwrap();
        writeln!(text, "  x{} = f32[4] add(a{i}, b{i})", i + 1).unwrap();
    }
    writeln!(text, "  ROOT r = f32[4] negate(x{steps})\n}}").unwrap();
    let module = parse_module(&text).unwrap();
    let source = KernelSource::of_computation(&module, module.entry_id(), |_| false).unwrap();
    let context = Context::create();
    let emitter = Emitter::new(&context, "kernels", target, EmitOptions::default());
    emit_kernel(&emitter, &source, "kernel").unwrap();
    emitter.finish().unwrap().print_to_string().to_string().lines().count()
}

#[test]
fn chain_of_pads_of_single_elements_computes_each_once() {
    let targets = ["x86-64", "x86-64-v3", "x86-64-v4"].map(|cpu| Target::whole(cpu).unwrap());
    for target in targets.into_iter().chain([Target::nvptx("sm_90").unwrap()]) {
        let [few, many] = [4, 8].map(|steps| instructions(steps, &target));
        assert!(many < 3 * few, "{few} and {many} instructions for {target:?}");
    }
}
