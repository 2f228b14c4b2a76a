//! Tests of functions as GPUs compute them, run on the host, with each approximate instruction exact and with the
//! documented error in either direction, in units of the last place.
//!
//! `XLA_LLVM_SWEEP_STEP=1` tests every f32 instead of a sample (minutes), and `XLA_LLVM_REPORT=FILE` appends the
//! greatest errors to a file.

use xla_hlo::ElementType::{self, BF16, F16, F32};
use xla_hlo::ops::{BinaryOp, UnaryOp};
use xla_llvm::elemental;
use xla_llvm::emitter::{Approximations, EmitOptions, Side};
use xla_llvm::target::Target;

use crate::accuracy::{pairs_f32, report, setting, ulp_f32};
use crate::kernel::{Kernel, Signature};

/// Directions of errors; those of several instructions may cancel or add up.
const SIDES: [Approximations; 5] = [
    sides(Side::Exact, Side::Exact),
    sides(Side::Low, Side::Low),
    sides(Side::Low, Side::High),
    sides(Side::High, Side::Low),
    sides(Side::High, Side::High),
];

const fn sides(powers: Side, reciprocals: Side) -> Approximations {
    Approximations { powers, reciprocals }
}

struct Case {
    op: UnaryOp,
    reference: fn(f64) -> f64,
    /// Error bounds in ulp: f32, bf16, f16.
    bounds: [f64; 3],
}

const CASES: &[Case] = &[
    Case { op: UnaryOp::Exponential, reference: libm::exp, bounds: [1.1, 0.51, 0.51] },
    Case { op: UnaryOp::Log, reference: libm::log, bounds: [1.0, 0.51, 0.51] },
    Case { op: UnaryOp::Logistic, reference: |x| 1.0 / (1.0 + libm::exp(-x)), bounds: [1.4, 0.51, 0.51] },
    Case { op: UnaryOp::Tanh, reference: libm::tanh, bounds: [2.0, 0.63, 0.51] },
    Case { op: UnaryOp::Erf, reference: libm::erf, bounds: [1.9, 0.51, 0.51] },
    Case { op: UnaryOp::Rsqrt, reference: |x| 1.0 / x.sqrt(), bounds: [1.1, 0.51, 0.51] },
];

fn kernels(op: UnaryOp, ty: ElementType) -> [Kernel; 5] {
    let target = Target::host_threads().unwrap();
    let width = Target::host().unwrap().lanes(32);
    SIDES.map(|approximations| {
        let options = EmitOptions { approximations, ..EmitOptions::default() };
        let signature = Signature { width, inputs: &[ty], output: ty, masked: false, options };
        Kernel::new(&target, &signature, |emitter, values| elemental::unary(emitter, op, values[0])).unwrap()
    })
}

fn sweep(case: &Case, step: usize) {
    let kernels = kernels(case.op, F32);
    let mut worst = [(0.0, 0.0); 5];
    let mut check = |inputs: &[f32]| {
        let results = kernels.each_ref().map(|kernel| kernel.run::<f32>(&[inputs]));
        for (i, &x) in inputs.iter().enumerate() {
            let expected = (case.reference)(f64::from(x));
            for (worst, results) in worst.iter_mut().zip(&results) {
                let error = ulp_f32(results[i], expected);
                if error > worst.0 {
                    *worst = (error, x);
                }
            }
        }
    };
    for start in (0..1_u64 << 32).step_by(step << 16) {
        let end = (start + ((step as u64) << 16)).min(1 << 32);
        check(&(start..end).step_by(step).map(|bits| f32::from_bits(bits as u32)).collect::<Vec<_>>());
    }
    let edges = (0..256_u32).flat_map(|e| (0..20).map(move |i| (e << 23).wrapping_add(i).wrapping_sub(10)));
    check(&edges.flat_map(|bits| [f32::from_bits(bits), -f32::from_bits(bits)]).collect::<Vec<_>>());
    report(&format!("gpu f32 {:?} {worst:?}", case.op));
    let bound = case.bounds[0];
    assert!(worst.iter().all(|(error, _)| *error <= bound), "{:?}: {worst:?}, bound {bound}", case.op);
}

#[test]
fn f32_on_gpus() {
    let step = setting("XLA_LLVM_SWEEP_STEP").map_or(9973, |step| step.parse().unwrap());
    std::thread::scope(|scope| {
        let tests: Vec<_> = CASES.iter().map(|case| scope.spawn(move || sweep(case, step))).collect();
        tests.into_iter().for_each(|test| test.join().unwrap());
    });
}

/// Returns the value of a pattern in a 16-bit format.
fn value(ty: ElementType, bits: u16) -> f64 {
    if ty == BF16 { f64::from(f32::from_bits(u32::from(bits) << 16)) } else { half(bits) }
}

/// Returns the unit of the last place of a number in a 16-bit format.
fn unit(ty: ElementType, x: f64) -> f64 {
    let (least, mantissa) = if ty == BF16 { (-126, 7) } else { (-14, 10) };
    let exponent = (x.abs().to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent.max(least) - mantissa)
}

fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (fraction + 1024.0) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

#[test]
fn sixteen_bits_on_gpus() {
    let inputs: Vec<u16> = (0..=u16::MAX).collect();
    for (ty, greatest, number) in [(BF16, 2f64.powi(128), 1), (F16, 65536.0, 2)] {
        for case in CASES {
            for (kernel, side) in kernels(case.op, ty).iter().zip(SIDES) {
                let results = kernel.run::<u16>(&[&inputs]);
                let mut worst = (0.0, 0.0);
                for (&x, &y) in inputs.iter().zip(&results) {
                    let expected = (case.reference)(value(ty, x));
                    let got = value(ty, y);
                    if expected.is_nan() || expected.is_infinite() {
                        let same = got == expected || expected.is_nan() && got.is_nan();
                        assert!(same, "{:?} {ty} of {}: {got}, not {expected}", case.op, value(ty, x));
                        continue;
                    }
                    // An infinity counts as the next number after the greatest.
                    let got = if got.is_infinite() { greatest * got.signum() } else { got };
                    let expected = expected.clamp(-greatest, greatest);
                    let error = (got - expected).abs() / unit(ty, expected.clamp(-greatest / 2.0, greatest / 2.0));
                    if error.is_nan() || error > worst.0 {
                        worst = (error, value(ty, x));
                    }
                }
                report(&format!("gpu {ty} {:?} {side:?} {worst:?}", case.op));
                let bound = case.bounds[number];
                assert!(worst.0 <= bound, "{:?} {ty} {side:?}: {worst:?}, bound {bound}", case.op);
            }
        }
    }
}

#[test]
fn quotients_and_powers_on_gpus() {
    let (x, y) = pairs_f32(setting("XLA_LLVM_SWEEP_STEP").map_or(400_000, |_| 40_000_000));
    let target = Target::host_threads().unwrap();
    for (op, bound) in [(BinaryOp::Divide, 2.5), (BinaryOp::Power, 0.95)] {
        let reference = |x: f64, y: f64| if op == BinaryOp::Divide { x / y } else { libm::pow(x, y) };
        for approximations in SIDES {
            let options = EmitOptions { approximations, ..EmitOptions::default() };
            let signature = Signature { width: 1, inputs: &[F32; 2], output: F32, masked: false, options };
            let kernel = Kernel::new(&target, &signature, |emitter, values| {
                elemental::binary(emitter, op, values[0], values[1])
            });
            let results = kernel.unwrap().run::<f32>(&[&x, &y]);
            let errors = (0..x.len()).map(|i| (ulp_f32(results[i], reference(x[i].into(), y[i].into())), x[i], y[i]));
            let worst = errors.fold((0.0, 0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
            report(&format!("gpu f32 {op:?} {approximations:?} {worst:?}"));
            assert!(worst.0 <= bound, "{op:?} {approximations:?}: {worst:?}, bound {bound}");
        }
    }
}
