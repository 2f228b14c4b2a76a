//! What a kernel costs to compile, by stage and by way of loading it.
//! `cargo run --release -p xla-llvm --example compile_cost`
#![expect(clippy::print_stdout, reason = "the table is the product")]

#[path = "../tests/suite/kernel.rs"]
mod kernel;

use std::time::Instant;

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use xla_hlo::ElementType;
use xla_llvm::elemental::Value;
use xla_llvm::jit::LoadedCode;
use xla_llvm::target::{CodegenLevel, MachineOptions, Target};

use kernel::{Signature, emit};

fn milliseconds<T>(f: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let value = f();
    (value, start.elapsed().as_secs_f64() * 1e3)
}

fn main() {
    let target = Target::host().unwrap();
    let ty = ElementType::F32;
    let signature = Signature { width: target.lanes(32), inputs: &[ty, ty, ty], output: ty, masked: true };
    for (name, heavy) in [("a * b + c", false), ("exp(a) * tanh(b) + log(c)", true)] {
        for level in [CodegenLevel::None, CodegenLevel::Less, CodegenLevel::Default, CodegenLevel::Aggressive] {
            let options = MachineOptions { level, ..MachineOptions::default() };
            let mut rows = [f64::INFINITY; 7];
            for _ in 0..15 {
                let (machine, t0) = milliseconds(|| target.machine(&options).unwrap());
                let (context, t1) = milliseconds(Context::create);
                let build = || {
                    emit(&context, &target, &signature, |_, x| {
                        let [a, b, c] = [x[0].lanes(), x[1].lanes(), x[2].lanes()];
                        Ok(Value::new(
                            ty,
                            match heavy {
                                false => a * b + c,
                                true => xla_llvm::math::exp(a) * xla_llvm::math::tanh(b) + xla_llvm::math::log(c),
                            },
                        ))
                    })
                    .unwrap()
                };
                let (module, t2) = milliseconds(build);
                let (object, t3) = milliseconds(|| machine.object(&module).unwrap());
                let (code, t4) = milliseconds(|| {
                    let code = LoadedCode::link(&[object.clone()], &[]).unwrap();
                    code.address("kernel").unwrap();
                    code
                });
                let (_, t5) = milliseconds(|| drop(code));
                let module = build();
                let (_, t6) = milliseconds(|| {
                    let engine = module.create_jit_execution_engine(OptimizationLevel::Default).unwrap();
                    engine.get_function_address("kernel").unwrap()
                });
                for (row, t) in rows.iter_mut().zip([t0, t1, t2, t3, t4, t5, t6]) {
                    *row = row.min(t);
                }
            }
            let [machine, context, emission, object, link, free, mcjit] = rows;
            println!(
                "{name:26} {level:?}: target machine {machine:.3}, context {context:.3}, emission {emission:.3}, object {object:.3}, \
                 ORC link {link:.3}, free {free:.3}; MCJIT code generation and link {mcjit:.3} ms"
            );
        }
    }
}
