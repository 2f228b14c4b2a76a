//! Tests that masked accesses touch only the lanes of the mask: every source type, result type, number of lanes and x86
//! level that this machine executes, with guard bytes around the result.
#![expect(unsafe_code, reason = "generated code is called through a pointer")]

use std::ffi::c_void;

use inkwell::context::Context;
use inkwell::module::Module;
use xla_hlo::{ElementType, Result};
use xla_llvm::codegen::{self, CodeKind};
use xla_llvm::elemental;
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::jit::LoadedCode;
use xla_llvm::lanes::{Lanes, Scalar};
use xla_llvm::target::{MachineOptions, Target};

/// Stage at which a function's mask becomes known.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// No mask: all lanes are converted. The other functions are compared with this one.
    Unmasked,
    /// Known to the emitter.
    WhenEmitted,
    /// Known to the code generator, which folds more than the emitter.
    WhenGenerated,
    /// Known at run time only.
    WhenRunning,
}

const MASKED: [Known; 3] = [Known::WhenEmitted, Known::WhenGenerated, Known::WhenRunning];

/// Position of the valid lanes in the last, partial vector.
#[derive(Clone, Copy, Debug)]
enum Side {
    First,
    Last,
}

const SIDES: [Side; 2] = [Side::First, Side::Last];

/// Maximum number of elements of a function.
const MOST: usize = 64;
/// Number of guard bytes on each side of a result: more than a vector.
const GUARD: usize = 1024;

type Function = unsafe extern "C" fn(*const c_void, *mut c_void, *const i64);

fn name(known: Known, side: Side, count: usize) -> String {
    format!("convert_{known:?}_{side:?}_{count}")
}

/// Adds a function that converts `count` elements. If the count does not fill vectors, the last or the first vector is
/// partial.
fn add_function<'e, 'c>(
    emitter: &'e Emitter<'c>,
    types: [ElementType; 2],
    width: u32,
    known: Known,
    side: Side,
    count: usize,
) -> Result<()> {
    let function = emitter.kernel(&name(known, side, count), 3);
    let pointer = |number| function.get_nth_param(number).unwrap().into_pointer_value();
    let constant = |value: i64| emitter.lanes(emitter.context().i64_type().const_int(value as u64, true));
    let whole = count as i64 / i64::from(width) * i64::from(width);
    let left = count as i64 - whole;
    let copy = |at: Lanes<'e, 'c>, mask: Option<Lanes<'e, 'c>>| -> Result<()> {
        let value = elemental::load(emitter, pointer(0), at, types[0], width, mask);
        let value = elemental::convert(emitter, value, types[1])?;
        elemental::store(emitter, value, pointer(1), at, mask);
        Ok(())
    };
    let shift = match side {
        Side::First => 0,
        Side::Last => left,
    };
    (0..whole).step_by(width as usize).try_for_each(|at| copy(constant(at + shift), None))?;
    if left > 0 {
        let known_left = match known {
            Known::Unmasked | Known::WhenEmitted => constant(left),
            Known::WhenGenerated => constant(left).smin(MOST as i64),
            Known::WhenRunning => emitter.load_lanes(pointer(2), constant(0), Scalar::Int(64), 1, None),
        };
        let numbers = emitter.lane_numbers(64, width);
        let (at, mask) = match side {
            Side::First => (whole, numbers.lt(known_left.splat(width))),
            Side::Last => (left - i64::from(width), numbers.ge((-known_left + i64::from(width)).splat(width))),
        };
        copy(constant(at), (known != Known::Unmasked).then_some(mask))?;
    }
    emitter.end_kernel()
}

fn module<'c>(context: &'c Context, target: &Target, types: [ElementType; 2], counts: &[usize]) -> Result<Module<'c>> {
    let emitter = Emitter::new(context, "masked", target, EmitOptions::default());
    let width = lanes(target, types);
    add_function(&emitter, types, width, Known::Unmasked, Side::First, MOST)?;
    for &count in counts {
        for (known, side) in MASKED.into_iter().flat_map(|known| SIDES.map(|side| (known, side))) {
            add_function(&emitter, types, width, known, side, count)?;
        }
    }
    emitter.finish()
}

/// Returns the lanes of a loop over both types, determined by the wider one.
fn lanes(target: &Target, types: [ElementType; 2]) -> u32 {
    target.lanes(types.map(|ty| ty.bit_width().max(8) as u32).into_iter().max().unwrap_or(8).min(64))
}

/// Returns bytes of arbitrary elements, equal in every run.
fn elements(ty: ElementType, count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    let bytes = (0..count * ty.byte_width()).map(|_| next());
    if ty == ElementType::Pred { bytes.map(|byte| byte & 1).collect() } else { bytes.collect() }
}

/// Returns the errors of a function over all counts.
fn faults(target: &Target, types: [ElementType; 2], counts: &[usize]) -> Vec<String> {
    let generated = codegen::generate(target, &MachineOptions::default(), CodeKind::Object, |context| {
        Ok((module(context, target, types, counts)?, ()))
    });
    let what = |name: &str| format!("{} {} to {}: {name}", target.cpu(), types[0], types[1]);
    let object = match generated {
        Ok((object, ())) => object,
        Err(error) => return vec![what(&error.to_string())],
    };
    let code = LoadedCode::link(&[object], &[]).unwrap();
    let source = elements(types[0], MOST);
    let run = |name: &str, elements: usize, result: &mut [u8]| {
        let address = code.address(name).unwrap();
        // SAFETY: `add_function` defines every function with this type.
        let function = unsafe { std::mem::transmute::<*const c_void, Function>(address) };
        let left = (elements as u32 % lanes(target, types)) as i64;
        // SAFETY: the function accesses at most `MOST` elements of the source and of the result, which begins after the
        // first guard.
        unsafe { function(source.as_ptr().cast(), result[GUARD..].as_mut_ptr().cast(), &raw const left) }
    };
    let size = types[1].byte_width();
    let filled = |byte: u8| vec![byte; 2 * GUARD + MOST * size];
    let mut expected = filled(0);
    run(&name(Known::Unmasked, Side::First, MOST), MOST, &mut expected);
    let mut faults = Vec::new();
    for &count in counts {
        for (known, side) in MASKED.into_iter().flat_map(|known| SIDES.map(|side| (known, side))) {
            let name = name(known, side, count);
            for byte in [0x00, 0xff] {
                let mut result = filled(byte);
                run(&name, count, &mut result);
                let (front, rest) = result.split_at(GUARD);
                let (written, behind) = rest.split_at(count * size);
                if !front.iter().chain(behind).all(|&guard| guard == byte) {
                    faults.push(what(&format!("{name} writes beyond its {count} elements")));
                } else if *written != expected[GUARD..][..count * size] {
                    faults.push(what(&format!("{name} writes something else than without a mask")));
                }
            }
        }
    }
    faults
}

/// Tests all pairs of types, each for given counts.
fn sweep(target: Option<Target>, sources: &[ElementType], results: &[ElementType], counts: &[usize]) {
    let Some(target) = target else { return };
    let pairs = sources.iter().flat_map(|&from| results.iter().map(move |&to| [from, to]));
    let faults: Vec<String> = pairs
        .filter(|[from, to]| to.is_complex() || !from.is_complex())
        .flat_map(|pair| faults(&target, pair, counts))
        .collect();
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults[..faults.len().min(40)].join("\n"));
}

/// Returns the target of an x86 level, if this machine executes its code.
pub fn level(cpu: &str) -> Option<Target> {
    #[cfg(target_arch = "x86_64")]
    let executes = match cpu {
        "x86-64-v4" => {
            is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
        }
        "x86-64-v3" => {
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
        }
        _ => true,
    };
    #[cfg(not(target_arch = "x86_64"))]
    let executes = false;
    executes.then(|| Target::new("x86_64-unknown-linux-gnu", cpu, "").unwrap())
}

/// Types whose lanes are wide in computations.
const SOURCES: &[ElementType] = &[ElementType::S64, ElementType::S32, ElementType::BF16, ElementType::F32];

/// One type of each width in memory, and of each method of conversion.
const RESULTS: &[ElementType] = &[
    ElementType::S8,
    ElementType::S16,
    ElementType::S32,
    ElementType::F8E4M3FN,
    ElementType::BF16,
    ElementType::F16,
    ElementType::F64,
];

/// Counts that leave one, a few, or all but one lane of a vector.
const COUNTS: &[usize] = &[1, 3, 17, 63];

fn all_counts() -> Vec<usize> {
    (1..=MOST).collect()
}

#[test]
fn masked_accesses_of_x86_64_stay_inside() {
    sweep(level("x86-64"), SOURCES, RESULTS, COUNTS);
}

#[test]
fn masked_accesses_of_x86_64_v3_stay_inside() {
    sweep(level("x86-64-v3"), SOURCES, RESULTS, COUNTS);
}

#[test]
fn masked_accesses_of_x86_64_v4_stay_inside() {
    sweep(level("x86-64-v4"), SOURCES, RESULTS, COUNTS);
}

#[test]
#[cfg(not(target_arch = "x86_64"))]
fn masked_accesses_of_this_machine_stay_inside() {
    sweep(Target::host().ok(), SOURCES, RESULTS, COUNTS);
}

#[test]
#[ignore = "an hour and more: every type and every number of lanes; run with --run-ignored all"]
fn all_masked_accesses_of_x86_64_stay_inside() {
    sweep(level("x86-64"), ElementType::ALL, ElementType::ALL, &all_counts());
}

#[test]
#[ignore = "an hour and more: every type and every number of lanes; run with --run-ignored all"]
fn all_masked_accesses_of_x86_64_v3_stay_inside() {
    sweep(level("x86-64-v3"), ElementType::ALL, ElementType::ALL, &all_counts());
}

#[test]
#[ignore = "an hour and more: every type and every number of lanes; run with --run-ignored all"]
fn all_masked_accesses_of_x86_64_v4_stay_inside() {
    sweep(level("x86-64-v4"), ElementType::ALL, ElementType::ALL, &all_counts());
}
