//! How fast the math functions run and how much code they are: one core, 16 KiB in the first-level cache and 64 MiB in
//! memory, full vectors. `cargo run --release -p xla-llvm --example throughput [FUNCTION...]`
#![expect(clippy::print_stdout, reason = "the table is the product")]

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/suite/kernel.rs"]
mod kernel;

use std::time::Instant;

use xla_llvm::emitter::Emitter;
use xla_llvm::lanes::{Lanes, Scalar};
use xla_llvm::math;
use xla_llvm::target::{MachineOptions, Target};

use kernel::{Kernel, emit};

type Function = for<'e, 'c> fn(&'e Emitter<'c>, &[Lanes<'e, 'c>]) -> Lanes<'e, 'c>;

macro_rules! functions {
    ($($name:ident)*) => { &[("copy", |_, x| x[0]), $((stringify!($name), |_, x| math::$name(x[0])),)*] };
}

const FUNCTIONS: &[(&str, Function)] = functions!(
    exp expm1 log log1p logistic tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh erf cbrt rsqrt
);

fn nanoseconds_per_element(kernel: &Kernel, scalar: Scalar, count: usize) -> f64 {
    let mut best = f64::INFINITY;
    let passes = ((1 << 24) / count).max(1);
    let (single, double): (Vec<f32>, Vec<f64>) =
        (0..count).map(|i| 0.1 + 0.8 * (i as f64) / count as f64).map(|x| (x as f32, x)).unzip();
    let (mut single_out, mut double_out) = (vec![0f32; count], vec![0f64; count]);
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..passes {
            match scalar {
                Scalar::F64 => kernel.run_into(&[&double], &mut double_out),
                _ => kernel.run_into(&[&single], &mut single_out),
            }
        }
        best = f64::min(best, start.elapsed().as_secs_f64() * 1e9 / (passes * count) as f64);
    }
    best
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let target = Target::host().unwrap();
    println!(
        "{:10} {:4} {:>8} {:>8} {:>8} {:>8} {:>7} {:>8}",
        "function", "type", "ns/elem", "GB/s L1", "GB/s mem", "instrs", "bytes", "ms"
    );
    for (name, function) in FUNCTIONS {
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name) {
            continue;
        }
        for scalar in [Scalar::F32, Scalar::F64] {
            let width = target.lanes(scalar.bits());
            let start = Instant::now();
            let kernel = Kernel::new(&target, width, &[scalar], scalar, function);
            let milliseconds = start.elapsed().as_secs_f64() * 1e3;
            let context = inkwell::context::Context::create();
            let module = emit(&context, &target, width, &[scalar], scalar, function);
            let machine = target.machine(&MachineOptions::default()).unwrap();
            let text = machine.assembly(&module).unwrap();
            // The usual path: from the loop's head to its first branch.
            let body: Vec<&str> = text.lines().skip_while(|line| !line.starts_with(".LBB0_1")).skip(1).collect();
            let instructions = body
                .iter()
                .take_while(|line| !line.trim_start().starts_with('j'))
                .filter(|line| line.starts_with('\t') && !line.starts_with("\t."))
                .count();
            let bytes = machine.object(&module).unwrap().len();
            let per_element = 2.0 * f64::from(scalar.bits() / 8);
            let near = nanoseconds_per_element(&kernel, scalar, 16384 / (scalar.bits() as usize / 8) / 2);
            let far = nanoseconds_per_element(&kernel, scalar, (64 << 20) / (scalar.bits() as usize / 8) / 2);
            println!(
                "{name:10} {scalar:?}  {near:8.3} {:8.1} {:8.1} {instructions:8} {bytes:7} {milliseconds:8.2}",
                per_element / near,
                per_element / far
            );
        }
    }
}
