//! Tests of scalar computations that call others.

use inkwell::context::Context;
use xla_hlo::text::parse_module;
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{KernelSource, emit_kernel};
use xla_llvm::target::Target;

/// Returns the LLVM IR of a reduction with these instructions in its combiner.
fn reduction(combiner: &str) -> String {
    let module = parse_module(&format!(
        "scaled {{ a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] multiply(a, b)
                   ROOT t = (f32[], f32[]) tuple(c, b) }}
         apart {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] subtract(a, b) }}
         combine {{ x = f32[] parameter(0) y = f32[] parameter(1) {combiner} }}
         ENTRY main {{ x = f32[64,31] parameter(0) start = f32[] parameter(1)
                       ROOT y = f32[64] reduce(x, start), dimensions={{1}}, to_apply=combine }}"
    ))
    .unwrap();
    let source = KernelSource::of_computation(&module, module.entry_id(), |_| false).unwrap();
    let (context, target) = (Context::create(), Target::host().unwrap());
    let emitter = Emitter::new(&context, "kernels", &target, EmitOptions::default());
    emit_kernel(&emitter, &source, "kernel").unwrap();
    emitter.finish().unwrap().print_to_string().to_string()
}

#[test]
fn called_computations_are_emitted_in_place() {
    let inlined = reduction("c = f32[] multiply(x, y) ROOT r = f32[] subtract(c, y)");
    for called in ["call(x, y), to_apply=scaled", "fusion(x, y), kind=kLoop, calls=scaled"] {
        for applied in [
            "call(c, d), to_apply=apart",
            "map(c, d), dimensions={}, to_apply=apart",
            "fusion(c, d), kind=kLoop, calls=apart",
        ] {
            let combiner = format!(
                "p = (f32[], f32[]) {called} c = f32[] get-tuple-element(p), index=0
                 d = f32[] get-tuple-element(p), index=1 ROOT r = f32[] {applied}"
            );
            assert_eq!(reduction(&combiner), inlined, "{combiner}");
        }
    }
}
