//! Throughput and code size of the math functions: one core, 16 KiB in the first-level cache and 64 MiB in memory, full
//! vectors. `cargo run --release -p xla-llvm --example throughput [FUNCTION...]`
#![expect(clippy::print_stdout, reason = "the table is the product")]

#[path = "../tests/suite/kernel.rs"]
mod kernel;

use std::time::Instant;

use xla_hlo::ElementType;
use xla_llvm::elemental::Value;
use xla_llvm::emitter::EmitOptions;
use xla_llvm::lanes::Lanes;
use xla_llvm::math;
use xla_llvm::target::{MachineOptions, Target};

use kernel::{Kernel, Signature, emit};

type Function = for<'e, 'c> fn(Lanes<'e, 'c>) -> Lanes<'e, 'c>;

macro_rules! functions {
    ($($name:ident)*) => { &[("copy", |x| x), $((stringify!($name), |x| math::$name(x)),)*] };
}

const FUNCTIONS: &[(&str, Function)] = functions!(
    exp expm1 log log1p logistic tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh erf cbrt rsqrt
);

fn nanoseconds_per_element(kernel: &Kernel, ty: ElementType, bytes: usize) -> f64 {
    let count = bytes / ty.byte_width();
    let passes = ((1 << 24) / count).max(1);
    let numbers = (0..count).map(|i| 0.1 + 0.8 * (i as f64) / count as f64);
    let input: Vec<u8> = match ty {
        ElementType::F64 => numbers.flat_map(f64::to_ne_bytes).collect(),
        _ => numbers.flat_map(|x| (x as f32).to_ne_bytes()).collect(),
    };
    let mut output = vec![0; input.len()];
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..passes {
            kernel.run_bytes(&[&input], &mut output);
        }
        best = f64::min(best, start.elapsed().as_secs_f64() * 1e9 / (passes * count) as f64);
    }
    best
}

/// Instructions on the usual path: from the loop's head to its first branch.
fn instructions_per_step(assembly: &str) -> usize {
    let body = assembly.lines().skip_while(|line| !line.starts_with(".LBB0_1")).skip(1);
    let straight = body.take_while(|line| !line.trim_start().starts_with('j'));
    straight.filter(|line| line.starts_with('\t') && !line.starts_with("\t.")).count()
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let target = Target::host().unwrap();
    println!("function   type  ns/elem  GB/s L1 GB/s mem  instrs   bytes  compile ms");
    for (name, function) in FUNCTIONS {
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name) {
            continue;
        }
        for ty in [ElementType::F32, ElementType::F64] {
            let width = target.lanes(ty.bit_width() as u32);
            let signature =
                Signature { width, inputs: &[ty], output: ty, masked: false, options: EmitOptions::default() };
            let start = Instant::now();
            let kernel = Kernel::new(&target, &signature, |_, x| Ok(Value::new(ty, function(x[0].lanes())))).unwrap();
            let milliseconds = start.elapsed().as_secs_f64() * 1e3;
            let context = inkwell::context::Context::create();
            let module =
                emit(&context, &target, &signature, |_, x| Ok(Value::new(ty, function(x[0].lanes())))).unwrap();
            let machine = target.machine(&MachineOptions::default()).unwrap();
            let instructions = instructions_per_step(&machine.assembly(&module).unwrap());
            let bytes = machine.object(&module).unwrap().len();
            let per_element = 2.0 * ty.byte_width() as f64;
            let [near, far] = [16 << 10, 64 << 20].map(|bytes| nanoseconds_per_element(&kernel, ty, bytes / 2));
            let (near_rate, far_rate) = (per_element / near, per_element / far);
            println!(
                "{name:10} {ty:4} {near:8.3} {near_rate:8.1} {far_rate:8.1} {instructions:7} {bytes:7} {milliseconds:11.2}"
            );
        }
    }
}
