//! Tests of math functions against wide references, in ulp, as scalars and as full vectors, which must agree bit for
//! bit.
//!
//! `XLA_LLVM_SWEEP_STEP=1` tests every f32 instead of a sample (minutes), `XLA_LLVM_REFERENCE=FILE` selects a table
//! other than the committed one, and `XLA_LLVM_REPORT=FILE` appends the greatest error of each function to a file.

use std::io::Write;

use xla_hlo::ElementType;
use xla_hlo::ops::BinaryOp;
use xla_llvm::elemental::{self, Value};
use xla_llvm::emitter::EmitOptions;
use xla_llvm::lanes::Lanes;
use xla_llvm::math;
use xla_llvm::target::Target;

use crate::kernel::{Kernel, Signature};

type Emit = for<'e, 'c> fn(&[Lanes<'e, 'c>]) -> Lanes<'e, 'c>;

struct Case {
    name: &'static str,
    emit: Emit,
    /// Reference for f32; not used for binary functions.
    reference: fn(f64) -> f64,
    /// Error bounds in ulp: f32, f64.
    bounds: (f64, f64),
}

macro_rules! unary {
    ($name:ident, $reference:expr, $single:literal, $double:literal) => {
        Case { name: stringify!($name), emit: |x| math::$name(x[0]), reference: $reference, bounds: ($single, $double) }
    };
}

const UNARY: &[Case] = &[
    unary!(exp, libm::exp, 0.9, 0.85),
    unary!(expm1, libm::expm1, 1.2, 1.0),
    unary!(log, libm::log, 0.85, 0.75),
    unary!(log1p, libm::log1p, 1.05, 0.85),
    unary!(logistic, |x| 1.0 / (1.0 + libm::exp(-x)), 0.8, 0.7),
    unary!(tanh, libm::tanh, 1.7, 1.95),
    unary!(sin, libm::sin, 0.9, 0.8),
    unary!(cos, libm::cos, 0.9, 0.8),
    unary!(tan, libm::tan, 2.25, 1.85),
    unary!(asin, libm::asin, 1.95, 1.6),
    unary!(acos, libm::acos, 1.2, 1.2),
    unary!(atan, libm::atan, 1.6, 1.4),
    unary!(sinh, libm::sinh, 1.7, 1.8),
    unary!(cosh, libm::cosh, 1.3, 1.15),
    unary!(asinh, libm::asinh, 1.25, 1.15),
    unary!(acosh, |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, 1.7, 1.7),
    unary!(atanh, libm::atanh, 1.2, 0.9),
    unary!(erf, libm::erf, 1.3, 1.35),
    unary!(cbrt, libm::cbrt, 0.8, 0.75),
    unary!(rsqrt, |x| 1.0 / x.sqrt(), 1.5, 1.5),
];

const BINARY: &[Case] = &[
    Case { name: "pow", emit: |x| math::pow(x[0], x[1]), reference: |_| 0.0, bounds: (0.95, 0.9) },
    Case { name: "atan2", emit: |x| math::atan2(x[0], x[1]), reference: |_| 0.0, bounds: (1.85, 1.65) },
];

/// Returns the distance of `got` from the true value in units of the last place of the true value.
pub fn ulp_f32(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if got.to_bits() == rounded.to_bits() || (got.is_nan() && rounded.is_nan()) {
        // Equal values, infinities, or zeros of one sign; finite values may differ from the true value by half a unit.
        return if rounded.is_finite() { (f64::from(got) - want).abs() / unit_f32(want) } else { 0.0 };
    }
    if got.is_nan() || rounded.is_nan() || (got == rounded && got == 0.0) {
        return f64::INFINITY;
    }
    // An infinity counts as the next number after the greatest.
    let got = if got.is_infinite() { 2f64.powi(128).copysign(f64::from(got)) } else { f64::from(got) };
    let want = want.clamp(-2f64.powi(128), 2f64.powi(128));
    (got - want).abs() / unit_f32(want)
}

fn unit_f32(x: f64) -> f64 {
    let exponent = (x.abs().to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent.clamp(-126, 127) - 23)
}

/// Returns the distance for f64, where the true value is `nearest` plus `rest` units of its last place.
fn ulp_f64(got: f64, nearest: f64, rest: f64) -> f64 {
    if got.is_nan() {
        return f64::INFINITY;
    }
    let order = |x: f64| {
        let bits = x.to_bits() as i64;
        if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits }
    };
    let steps = order(got).wrapping_sub(order(nearest)) as f64;
    (steps - rest).abs()
}

pub fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

pub fn report(line: &str) {
    if let Some(path) = setting("XLA_LLVM_REPORT") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

/// Returns this machine's target, and reduced ones: without FMA, and with FMA in narrower vectors.
fn targets() -> Vec<Target> {
    let host = Target::host().unwrap();
    let others: &[&str] = if cfg!(target_arch = "x86_64") { &["x86-64", "x86-64-v3"] } else { &[] };
    let usable = |cpu: &&&str| **cpu == "x86-64" || host.abilities().f32.fma;
    let others: Vec<Target> =
        others.iter().filter(usable).map(|cpu| Target::new(host.triple(), cpu, "").unwrap()).collect();
    std::iter::once(host).chain(others).collect()
}

/// Returns a factor of the bounds: without FMA the products of a polynomial are rounded as well.
fn slack(target: &Target) -> f64 {
    if target.abilities().f32.fma { 1.0 } else { 1.6 }
}

fn kernels(target: &Target, case: &Case, ty: ElementType, arity: usize) -> [Kernel; 2] {
    [1, target.lanes(ty.bit_width() as u32)].map(|width| {
        let signature =
            Signature { width, inputs: &vec![ty; arity], output: ty, masked: false, options: EmitOptions::default() };
        let kernel = Kernel::new(target, &signature, |_, values| {
            let lanes: Vec<_> = values.iter().map(|&value| value.lanes()).collect();
            Ok(Value::new(ty, (case.emit)(&lanes)))
        });
        kernel.unwrap()
    })
}

fn sweep_f32(target: &Target, case: &Case, step: usize) {
    let [scalar, vector] = kernels(target, case, ElementType::F32, 1);
    let mut worst = (0.0, 0.0);
    let mut check = |inputs: &[f32]| {
        let (got, wide) = (scalar.run(&[inputs]), vector.run(&[inputs]));
        for ((&x, &got), &wide) in inputs.iter().zip(&got).zip(&wide) {
            assert!(
                got.to_bits() == wide.to_bits() || got.is_nan() && wide.is_nan(),
                "{} of {x:e}: {got:e} as a scalar, {wide:e} in a vector",
                case.name
            );
            let error = ulp_f32(got, (case.reference)(f64::from(x)));
            if error > worst.0 {
                worst = (error, x);
            }
        }
    };
    for start in (0..1_u64 << 32).step_by(step << 20) {
        let end = (start + ((step as u64) << 20)).min(1 << 32);
        let inputs: Vec<f32> = (start..end).step_by(step).map(|bits| f32::from_bits(bits as u32)).collect();
        check(&inputs);
    }
    // All values near the powers of two and special values.
    let edges = (0..256_u32).flat_map(|e| (0..20).map(move |i| (e << 23).wrapping_add(i).wrapping_sub(10)));
    let edges: Vec<f32> = edges.flat_map(|bits| [f32::from_bits(bits), -f32::from_bits(bits)]).collect();
    check(&edges);
    let (error, x) = worst;
    report(&format!("f32 {} {} {error:.3} at {x:e}", case.name, target.cpu()));
    let bound = case.bounds.0 * slack(target);
    assert!(error <= bound, "{} f32 on {}: {error} ulp at {x:e}, bound {bound}", case.name, target.cpu());
}

fn check_f64(target: &Target, case: &Case, arity: usize) {
    let committed = include_str!("../data/f64_reference.txt");
    let other = setting("XLA_LLVM_REFERENCE").map(|path| std::fs::read_to_string(path).unwrap());
    let number = |field: &str| f64::from_bits(u64::from_str_radix(field, 16).unwrap());
    let rows: Vec<Vec<&str>> = other
        .as_deref()
        .unwrap_or(committed)
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .filter(|fields| fields[0] == case.name)
        .collect();
    assert!(rows.len() >= 100, "too few reference values of {}", case.name);
    let inputs: Vec<Vec<f64>> = (1..=arity).map(|i| rows.iter().map(|row| number(row[i])).collect()).collect();
    let inputs: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
    let [scalar, vector] = kernels(target, case, ElementType::F64, arity);
    let (got, wide) = (scalar.run(&inputs), vector.run(&inputs));
    let mut worst = (0.0, 0);
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(got[i].to_bits(), wide[i].to_bits(), "{} {row:?} differs between scalar and vector", case.name);
        let rest = row[arity + 2].parse::<f64>().unwrap() / 1000.0;
        let error = ulp_f64(got[i], number(row[arity + 1]), rest);
        if error > worst.0 {
            worst = (error, i);
        }
    }
    let (error, i) = worst;
    let at: Vec<f64> = inputs.iter().map(|input| input[i]).collect();
    report(&format!("f64 {} {} {error:.3} at {at:?}", case.name, target.cpu()));
    let bound = case.bounds.1 * slack(target);
    assert!(error <= bound, "{} f64 on {}: {error} ulp at {at:?}, bound {bound}", case.name, target.cpu());
}

#[test]
fn f32_unary() {
    let step = setting("XLA_LLVM_SWEEP_STEP").map_or(9973, |step| step.parse().unwrap());
    failures(UNARY, |target, case| sweep_f32(target, case, step));
}

/// Returns pairs of f32 for functions of two operands: random patterns, moderate numbers, and all pairs of special
/// values.
pub fn pairs_f32(count: usize) -> (Vec<f32>, Vec<f32>) {
    let specials =
        [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1e-45, -1e-45, 3.4e38, -3.4e38, 1.6e7, -1.6e7];
    let specials: Vec<f32> = specials.into_iter().chain([f32::INFINITY, f32::NEG_INFINITY, f32::NAN]).collect();
    let mut pairs: Vec<(f32, f32)> = specials.iter().flat_map(|&x| specials.iter().map(move |&y| (x, y))).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) as u32
    };
    for i in 0..count {
        let (x, y) = (next(), next());
        let unit = |bits: u32| f32::from_bits(0x3f80_0000 | bits >> 9) - 1.0;
        pairs.push(match i % 4 {
            0 => (f32::from_bits(x), f32::from_bits(y)),
            1 => (unit(x) * 4.0 - 1.0, unit(y) * 200.0 - 100.0),
            2 => (1.0 + (unit(x) - 0.5) * 1e-3, (unit(y) - 0.5) * 1e5),
            _ => ((unit(x) * 100.0 - 50.0).round(), (unit(y) * 60.0 - 30.0).round()),
        });
    }
    pairs.into_iter().unzip()
}

#[test]
fn f32_binary() {
    let (x, y) = pairs_f32(setting("XLA_LLVM_SWEEP_STEP").map_or(400_000, |_| 40_000_000));
    failures(BINARY, |target, case| {
        let reference = if case.name == "pow" { libm::pow } else { libm::atan2 };
        let [scalar, vector] = kernels(target, case, ElementType::F32, 2);
        let (got, wide) = (scalar.run(&[&x, &y]), vector.run(&[&x, &y]));
        let mut worst = (0.0, 0);
        for i in 0..x.len() {
            let same = got[i].to_bits() == wide[i].to_bits() || got[i].is_nan() && wide[i].is_nan();
            assert!(same, "{} of {:e} and {:e} differs between scalar and vector", case.name, x[i], y[i]);
            let error = ulp_f32(got[i], reference(f64::from(x[i]), f64::from(y[i])));
            if error > worst.0 {
                worst = (error, i);
            }
        }
        let (error, i) = worst;
        report(&format!("f32 {} {} {error:.3} at {:e}, {:e}", case.name, target.cpu(), x[i], y[i]));
        let bound = case.bounds.0 * slack(target);
        assert!(error <= bound, "{} f32 on {}: {error} ulp at {:e}, {:e}", case.name, target.cpu(), x[i], y[i]);
    });
}

#[test]
fn f64_unary() {
    failures(UNARY, |target, case| check_f64(target, case, 1));
}

#[test]
fn f64_binary() {
    failures(BINARY, |target, case| check_f64(target, case, 2));
}

/// Runs all cases for all targets on two threads, then fails if any of them failed.
fn failures(cases: &[Case], check: impl Fn(&Target, &Case) + Sync + std::panic::RefUnwindSafe) {
    let cases: Vec<_> =
        targets().into_iter().flat_map(|target| cases.iter().map(move |case| (target.clone(), case))).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let failed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((target, case)) = cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    if let Err(reason) = std::panic::catch_unwind(|| check(target, case)) {
                        let reason = reason.downcast_ref::<String>().cloned().unwrap_or_default();
                        failed.lock().unwrap().push(reason);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// The conformance suite allows quotients of f32 an error of 2 ulp, as on GPUs; on CPUs they are correctly rounded.
#[test]
fn quotients_of_processors_are_correctly_rounded() {
    let (x, y) = pairs_f32(400_000);
    for target in targets() {
        let options = EmitOptions::default();
        let signature =
            Signature { width: 1, inputs: &[ElementType::F32; 2], output: ElementType::F32, masked: false, options };
        let kernel = Kernel::new(&target, &signature, |emitter, values| {
            elemental::binary(emitter, BinaryOp::Divide, values[0], values[1])
        });
        let results = kernel.unwrap().run::<f32>(&[&x, &y]);
        for ((&x, &y), &quotient) in x.iter().zip(&y).zip(&results) {
            let expected = x / y;
            let is_right = quotient.to_bits() == expected.to_bits() || quotient.is_nan() && expected.is_nan();
            assert!(is_right, "{x:e} / {y:e} is {quotient:e}, not {expected:e}, on {}", target.cpu());
        }
    }
}
