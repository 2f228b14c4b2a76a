//! What a kernel costs to compile, by stage, effort and way of loading it, in milliseconds of processor time.
//! `cargo run --release -p xla-llvm --example compile_cost`
#![expect(clippy::print_stdout, reason = "the table is the product")]

#[path = "../tests/suite/kernel.rs"]
mod kernel;

use std::time::Instant;

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::module::Module;
use xla_hlo::ElementType;
use xla_llvm::elemental::Value;
use xla_llvm::jit::LoadedCode;
use xla_llvm::math::{exp, log, tanh};
use xla_llvm::target::{CodegenLevel, MachineOptions, Target};

use kernel::{Signature, emit};

/// Processor time of this thread where the system tells it, else the clock: other work on the machine counts less.
fn milliseconds<T>(f: impl FnOnce() -> T) -> (T, f64) {
    let used = || -> Option<f64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e6)
    };
    let (start, clock) = (used(), Instant::now());
    let value = f();
    let time = match (start, used()) {
        (Some(start), Some(end)) => end - start,
        _ => clock.elapsed().as_secs_f64() * 1e3,
    };
    (value, time)
}

fn module<'c>(context: &'c Context, target: &Target, heavy: bool) -> Module<'c> {
    let ty = ElementType::F32;
    let signature = Signature { width: target.lanes(32), inputs: &[ty, ty, ty], output: ty, masked: true };
    let emitted = emit(context, target, &signature, |_, x| {
        let [a, b, c] = [x[0].lanes(), x[1].lanes(), x[2].lanes()];
        Ok(Value::new(ty, if heavy { exp(a) * tanh(b) + log(c) } else { a * b + c }))
    });
    emitted.unwrap()
}

fn main() {
    let target = Target::host().unwrap();
    println!("kernel                     effort      machine context emission  object    link    free   MCJIT");
    for (name, heavy) in [("a * b + c", false), ("exp(a) * tanh(b) + log(c)", true)] {
        for level in [CodegenLevel::None, CodegenLevel::Less, CodegenLevel::Default, CodegenLevel::Aggressive] {
            let options = MachineOptions { level, ..MachineOptions::default() };
            let mut best = [f64::INFINITY; 7];
            for _ in 0..30 {
                let (machine, making_machine) = milliseconds(|| target.machine(&options).unwrap());
                let (context, making_context) = milliseconds(Context::create);
                let (emitted, emission) = milliseconds(|| module(&context, &target, heavy));
                let (object, generation) = milliseconds(|| machine.object(&emitted).unwrap());
                let (code, linking) = milliseconds(|| {
                    let code = LoadedCode::link(std::slice::from_ref(&object), &[]).unwrap();
                    code.address("kernel").unwrap();
                    code
                });
                let (_, freeing) = milliseconds(|| drop(code));
                // MCJIT generates and links in one go.
                let other = module(&context, &target, heavy);
                let (_, mcjit) = milliseconds(|| {
                    let engine = other.create_jit_execution_engine(OptimizationLevel::Default).unwrap();
                    engine.get_function_address("kernel").unwrap()
                });
                let times = [making_machine, making_context, emission, generation, linking, freeing, mcjit];
                for (best, time) in best.iter_mut().zip(times) {
                    *best = best.min(time);
                }
            }
            let times: Vec<String> = best.iter().map(|time| format!("{time:7.3}")).collect();
            println!("{name:26} {:10} {}", format!("{level:?}"), times.join(" "));
        }
    }
}
