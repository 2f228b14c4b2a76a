//! Tests of programs compiled as by a build script, linked into Rust programs, and run.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;

use xla::Error;
use xla_build::{CargoTarget, Program};

const SOURCE: &str = "HloModule affine, input_output_alias={ {1}: (2, {}, may-alias) }
ENTRY main {
  x = f32[2,3] parameter(0)
  weights = f32[3] parameter(1)
  type = s32[] parameter(2)
  rows = f32[2,3] broadcast(weights), dimensions={1}
  product = f32[2,3] multiply(x, rows)
  one = s32[] constant(1)
  next = s32[] add(type, one)
  zero = f32[] constant(0)
  wide = f32[2,3] broadcast(zero), dimensions={}
  positive = pred[2,3] compare(product, wide), direction=GT
  ROOT all = (f32[2,3], s32[], pred[2,3]) tuple(product, next, positive)
}";

const MAIN: &str = r#"
include!("affine.rs");
static ARENA: std::sync::Mutex<affine::Arena> = std::sync::Mutex::new(affine::Arena::new());
fn main() {
    let (mut product, mut positive, mut count) = ([[0.0; 3]; 2], [[false; 3]; 2], 7);
    let x = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]];
    affine::run(&mut ARENA.lock().unwrap(), &x, &[1.0, 2.0, 0.5], &mut count, &mut product, &mut positive);
    assert_eq!(product, [[1.0, -4.0, 1.5], [4.0, 10.0, -3.0]]);
    assert_eq!(positive, [[true, false, true], [true, true, false]]);
    assert_eq!(count, 8);
    println!("ran");
}
"#;

fn host() -> CargoTarget {
    let output = Command::new("rustc").args(["-vV"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let triple = text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_string();
    CargoTarget { triple, has_system: true, ..CargoTarget::default() }
}

fn program(folder: &Path, text: &str) -> Program {
    let path = folder.join("affine.hlo");
    std::fs::write(&path, text).unwrap();
    Program::new(path)
}

#[test]
fn a_program_is_a_function() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let compiled = program(folder, SOURCE).compile_for(&host(), folder).unwrap();
    assert_eq!(compiled.name, "affine");
    ran(folder, MAIN);
}

/// Builds a Rust program that uses the compiled program in the folder, and runs it.
fn ran(folder: &Path, main: &str) {
    std::fs::write(folder.join("main.rs"), main).unwrap();
    let built = Command::new("rustc")
        .args(["--edition", "2024", "-D", "warnings", "-L", "native=.", "-l", "static=affine", "main.rs"])
        .current_dir(folder)
        .output()
        .unwrap();
    let bindings = std::fs::read_to_string(folder.join("affine.rs")).unwrap();
    assert!(built.status.success(), "{}\n{bindings}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(folder.join("main")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "ran\n", "{}", String::from_utf8_lossy(&ran.stderr));
}

const SHARED: &str = "HloModule shared
ENTRY main {
  x = f32[300,257] parameter(0)
  t = f32[300,257] tanh(x)
  ROOT e = f32[300,257] exponential(t)
}";

const SHARING: &str = r#"
include!("affine.rs");
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn main() {
    let mut arena = affine::Arena::new();
    let x: Vec<[f32; 257]> = (0..300).map(|i| std::array::from_fn(|j| (i * 257 + j) as f32 / 1e4 - 4.0)).collect();
    let x: Box<[[f32; 257]; 300]> = x.into_boxed_slice().try_into().unwrap();
    let calls = AtomicUsize::new(0);
    let threads = |count: usize, task: &(dyn Fn() + Sync)| {
        calls.fetch_add(count, Relaxed);
        std::thread::scope(|threads| (1..count).for_each(|_| drop(threads.spawn(task))));
    };
    let nothing = |_: usize, _: &(dyn Fn() + Sync)| {};
    let too_often = |_: usize, task: &(dyn Fn() + Sync)| (0..100).for_each(|_| task());
    let all: [&affine::Parallel<'_>; 3] = [&nothing, &too_often, &threads];
    for parallel in all {
        let mut found = Box::new([[0.0; 257]; 300]);
        affine::run(&mut arena, &x, &mut found, parallel);
        for (x, found) in x.iter().flatten().zip(found.iter().flatten()) {
            assert!((x.tanh().exp() - found).abs() < 1e-5, "{x} {found}");
        }
    }
    assert!((2..=4).contains(&calls.into_inner()));
    println!("ran");
}
"#;

#[test]
fn work_is_shared_by_a_function_of_the_crate() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    program(folder, SHARED).threads(NonZeroUsize::new(4).unwrap()).compile_for(&host(), folder).unwrap();
    ran(folder, SHARING);
}

const CALLS: &str = "HloModule calls
ENTRY main {
  x = f32[2,3] parameter(0)
  y = f32[2,3] negate(x)
  s = f32[2] custom-call(y), custom_call_target=\"sums.of.rows\", backend_config=\"rows\"
  ROOT r = f32[2] negate(s)
}";

const CALLING: &str = r#"
include!("affine.rs");
use core::ffi::{c_char, c_void};

#[unsafe(no_mangle)]
unsafe extern "C" fn sums(
    operands: *const *const c_void,
    results: *const *mut c_void,
    config: *const c_char,
    config_size: usize,
    user_data: *mut c_void,
) -> i32 {
    let text = unsafe { core::ffi::CStr::from_ptr(config) };
    assert_eq!((text.to_bytes(), config_size), (&b"rows"[..], 4));
    let (x, sums) = unsafe { (&*(*operands).cast::<[[f32; 3]; 2]>(), &mut *(*results).cast::<[f32; 2]>()) };
    *sums = x.map(|row| row.iter().sum());
    let limit = unsafe { *user_data.cast::<f32>() };
    if sums.iter().any(|&sum| sum > limit) { 42 } else { 0 }
}

fn main() {
    let (mut arena, mut sums, mut limit) = (affine::Arena::new(), [0.0; 2], 1.0_f32);
    let mut run = |x| {
        let done = unsafe { affine::run(&mut arena, x, &mut sums, (&raw mut limit).cast()) };
        done.map(|()| sums)
    };
    assert_eq!(run(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), Ok([6.0, 15.0]));
    assert_eq!(run(&[[1.0, 2.0, 3.0], [4.0, -5.0, -6.0]]), Err(42));
    println!("ran");
}
"#;

#[test]
fn custom_calls_are_functions_of_the_crate() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    program(folder, CALLS).external_as("sums.of.rows", "sums").compile_for(&host(), folder).unwrap();
    ran(folder, CALLING);
}

const TWO: &str = r#"
include!("affine.rs");
fn main() {
    let (mut first, mut second) = (affine::Arena::new(), negative::Arena::new());
    let (mut product, mut positive, mut count, mut y) = ([[0.0; 3]; 2], [[false; 3]; 2], 7, [0; 4]);
    affine::run(&mut first, &[[1.0; 3]; 2], &[1.0, 2.0, 0.5], &mut count, &mut product, &mut positive);
    negative::run(&mut second, &[1, 2, 3, 4], &mut y);
    assert_eq!((product[1], y), ([1.0, 2.0, 0.5], [-1, -2, -3, -4]));
    println!("ran");
}
"#;

#[test]
fn an_object_may_hold_several_programs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let negate = "HloModule m\nENTRY main { x = s32[4] parameter(0)\n ROOT r = s32[4] negate(x) }";
    std::fs::write(folder.join("other.hlo"), negate).unwrap();
    let programs = program(folder, SOURCE).and(folder.join("other.hlo")).name("negative");
    assert_eq!(programs.compile_for(&host(), folder).unwrap().name, "affine");
    ran(folder, TWO);
}

const MAPPING: &str = r#"
include!("affine.rs");
static CONSTANTS: affine::Constants = affine::Constants::new(*include_bytes!("affine.bin"));
fn main() {
    let (mut arena, mut y) = (affine::Arena::new(), [0; 500]);
    affine::run(&mut arena, &CONSTANTS, &[1; 500], &mut y);
    assert_eq!((y[0], y[499]), (1, 499 * 499 + 1));
    let mut bytes = vec![0_u8; 64 * 40];
    let start = bytes.as_ptr().align_offset(64);
    let contents = include_bytes!("affine.bin");
    bytes[start..start + contents.len()].copy_from_slice(contents);
    let mapped = affine::Constants::of(&bytes[start..start + contents.len()]).unwrap();
    affine::run(&mut arena, mapped, &[5; 500], &mut y);
    assert_eq!(y[499], 499 * 499 + 5);
    assert!(affine::Constants::of(&bytes[start..start + contents.len() - 1]).is_none());
    bytes[start] ^= 1;
    assert!(affine::Constants::of(&bytes[start..start + contents.len()]).is_none());
    println!("ran");
}
"#;

#[test]
fn constants_may_be_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let squares: Vec<String> = (0..500).map(|n| (n * n).to_string()).collect();
    let text = format!(
        "HloModule m\nENTRY main {{ x = s32[500] parameter(0)\n c = s32[500] constant({{{}}})\n ROOT r = s32[500] add(x, c) }}",
        squares.join(", ")
    );
    program(folder, &text).constants_in_file().compile_for(&host(), folder).unwrap();
    ran(folder, MAPPING);
}

#[test]
fn files_are_the_same_each_time_and_for_other_machines() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let target = CargoTarget { triple: "thumbv7em-none-eabihf".to_string(), ..CargoTarget::default() };
    for folder in &folders {
        program(folder.path(), SOURCE).name("model").compile_for(&target, folder.path()).unwrap();
    }
    for file in ["libmodel.a", "model.o", "model.rs", "model.h", "model.json"] {
        let [first, second] = folders.each_ref().map(|folder| std::fs::read(folder.path().join(file)).unwrap());
        assert!(!first.is_empty() && first == second, "{file}");
    }
}

#[test]
fn what_cannot_be_compiled_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let error = Program::new("nowhere.hlo").compile_for(&host(), folder).unwrap_err();
    assert!(matches!(error, Error::NotFound(_)) && error.to_string().contains("nowhere.hlo"), "{error}");
    let error =
        program(folder, "HloModule m\nENTRY e { x = f32[2] parametr(0) }").compile_for(&host(), folder).unwrap_err();
    assert!(error.to_string().contains("affine.hlo") && error.to_string().contains("2:"), "{error}");
    let error = program(folder, SOURCE).name("my model").compile_for(&host(), folder).unwrap_err();
    assert!(error.to_string().contains("is not a name in C"), "{error}");
    let error = program(folder, SOURCE).cpu("z80").compile_for(&host(), folder).unwrap_err();
    assert!(error.to_string().contains("z80"), "{error}");
}
