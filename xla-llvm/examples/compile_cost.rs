//! Compile cost of a kernel by stage, effort and way of loading it, in milliseconds of processor time. `cargo run
//! --release -p xla-llvm --example compile_cost`
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
use xla_llvm::emitter::EmitOptions;
use xla_llvm::jit::LoadedCode;
use xla_llvm::math::{exp, log, tanh};
use xla_llvm::target::{CodegenLevel, MachineOptions, Target};

use kernel::{Signature, emit};

/// Number of runs of each stage.
const REPETITIONS: usize = 100;

/// Mean processor time of `f` (of the clock, where the system does not tell: other work on the machine counts less).
fn milliseconds<T>(mut f: impl FnMut() -> T) -> f64 {
    let used = || -> Option<f64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e6)
    };
    let (start, clock) = (used(), Instant::now());
    let values: Vec<T> = (0..REPETITIONS).map(|_| f()).collect();
    let time = match (start, used()) {
        (Some(start), Some(end)) => end - start,
        _ => clock.elapsed().as_secs_f64() * 1e3,
    };
    drop(values);
    time / REPETITIONS as f64
}

fn module<'c>(context: &'c Context, target: &Target, heavy: bool) -> Module<'c> {
    let ty = ElementType::F32;
    let signature = Signature {
        width: target.lanes(32),
        inputs: &[ty, ty, ty],
        output: ty,
        masked: true,
        options: EmitOptions::default(),
    };
    let emitted = emit(context, target, &signature, |_, x| {
        let [a, b, c] = [x[0].lanes(), x[1].lanes(), x[2].lanes()];
        Ok(Value::new(ty, if heavy { exp(a) * tanh(b) + log(c) } else { a * b + c }))
    });
    emitted.unwrap()
}

fn main() {
    let target = Target::host().unwrap();
    println!("kernel                     effort      machine context emission  object    link   MCJIT");
    for (name, heavy) in [("a * b + c", false), ("exp(a) * tanh(b) + log(c)", true)] {
        for level in [CodegenLevel::None, CodegenLevel::Less, CodegenLevel::Default, CodegenLevel::Aggressive] {
            let options = MachineOptions { level, ..MachineOptions::default() };
            let machine = target.machine(&options).unwrap();
            let context = Context::create();
            let fresh = || module(&context, &target, heavy);
            let object = machine.object(&fresh()).unwrap();
            let mut modules: Vec<_> = (0..2 * REPETITIONS).map(|_| fresh()).collect();
            let mut next = || modules.pop().unwrap();
            let times = [
                milliseconds(|| target.machine(&options).unwrap()),
                milliseconds(Context::create),
                milliseconds(fresh),
                milliseconds(|| machine.object(&next()).unwrap()),
                milliseconds(|| {
                    let code = LoadedCode::link(std::slice::from_ref(&object), &[]).unwrap();
                    code.address("kernel").unwrap();
                    code
                }),
                // MCJIT generates and links in one go.
                milliseconds(|| {
                    let module = next();
                    let engine = module.create_jit_execution_engine(OptimizationLevel::Default).unwrap();
                    engine.get_function_address("kernel").unwrap();
                    (module, engine)
                }),
            ];
            let times: Vec<String> = times.iter().map(|time| format!("{time:7.3}")).collect();
            println!("{name:26} {:10} {}", format!("{level:?}"), times.join(" "));
        }
    }
}
