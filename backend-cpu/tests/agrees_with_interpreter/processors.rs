//! Tests that objects check the features of the processor that they run on, and dispatch among code for several
//! processors.
//!
//! Older processors are emulated, if QEMU is installed: `cargo xtask setup --cross`.
#![cfg(target_arch = "x86_64")]

use std::process::Command;

use serde_json::Value;
use xla_service::{AotCompilationOptions, ConstantsIn};

use crate::ahead_of_time::{compile, compile_all, driver, evaluated, file, link, run};

/// Program that returns 2^-24 if multiplication and subtraction are fused, as from x86-64-v3 on, otherwise 0.
const FUSED: &str = include_str!("programs/fused.hlo");

const WRONG_PROCESSOR: i32 = 9;
const FMA: f32 = 1.0 / 16_777_216.0;

fn options(cpus: &[&str]) -> AotCompilationOptions {
    AotCompilationOptions { cpus: cpus.iter().map(ToString::to_string).collect(), ..AotCompilationOptions::default() }
}

/// Returns the status and first result of [`FUSED`] for processors, on an emulated processor or on this machine.
fn outcome(cpus: &[&str], emulated: Option<&str>) -> (Option<i32>, f32) {
    let files = compile(FUSED, &options(cpus)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let description: Value = serde_json::from_slice(file(&files, ".json")).unwrap();
    let program = link(folder.path(), &files, "cc", &driver(&description));
    let (input, _) = evaluated("ENTRY main { x = f32[5] parameter(0)\n ROOT y = f32[5] subtract(x, x) }");
    let zeros = vec![0; input.len()];
    let (status, output) = match emulated {
        None => run(&program, &zeros),
        Some(cpu) => {
            let script = folder.path().join("emulated");
            let words = format!("#!/bin/sh\nexec qemu-x86_64 -cpu {cpu} {}\n", program.display());
            std::fs::write(&script, words).unwrap();
            let mut mode = Command::new("chmod");
            assert!(mode.arg("+x").arg(&script).status().unwrap().success());
            run(&script, &zeros)
        }
    };
    (status, f32::from_le_bytes(output[..4].try_into().unwrap()))
}

fn has_emulator() -> bool {
    Command::new("qemu-x86_64").arg("--version").output().is_ok_and(|done| done.status.success())
}

#[test]
fn code_of_newer_processors_returns_a_status_on_older_ones() {
    let third =
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("movbe");
    let fourth = is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512dq");
    let of = |runs, value| if runs { (Some(0), value) } else { (Some(WRONG_PROCESSOR), 0.0) };
    assert_eq!(outcome(&["x86-64"], None), (Some(0), 0.0));
    assert_eq!(outcome(&["x86-64-v3"], None), of(third, FMA));
    assert_eq!(outcome(&["x86-64-v4"], None), of(third && fourth, FMA));
    assert_eq!(outcome(&["native"], None).0, Some(0));
    if has_emulator() {
        for (cpu, runs) in
            [("x86-64", [true; 3]), ("x86-64-v2", [false, true, true]), ("x86-64-v3", [false, false, true])]
        {
            for (emulated, runs) in ["qemu64", "Nehalem", "Haswell"].into_iter().zip(runs) {
                let value = if cpu == "x86-64-v3" { FMA } else { 0.0 };
                assert_eq!(outcome(&[cpu], Some(emulated)), of(runs, value), "{cpu} on {emulated}");
            }
        }
        // A single missing feature makes the call return an error.
        assert_eq!(outcome(&["x86-64-v4"], Some("Haswell")).0, Some(WRONG_PROCESSOR));
        assert_eq!(outcome(&["x86-64-v3"], Some("Haswell,-movbe")).0, Some(WRONG_PROCESSOR));
        assert_eq!(outcome(&["x86-64-v3"], Some("Haswell,-xsave")).0, Some(WRONG_PROCESSOR));
    }
}

#[test]
fn objects_for_several_processors_run_the_code_of_the_last_that_fits() {
    let all = ["x86-64", "x86-64-v2", "x86-64-v3"];
    let third = is_x86_feature_detected!("fma") && is_x86_feature_detected!("movbe");
    assert_eq!(outcome(&all, None), (Some(0), if third { FMA } else { 0.0 }));
    if has_emulator() {
        let values = [("qemu64", 0.0), ("Nehalem", 0.0), ("Haswell", FMA)];
        for (emulated, value) in values {
            assert_eq!(outcome(&all, Some(emulated)), (Some(0), value), "{emulated}");
        }
        assert_eq!(outcome(&all[1..], Some("qemu64")).0, Some(WRONG_PROCESSOR));
        assert_eq!(outcome(&all[1..], Some("Haswell")), (Some(0), FMA));
    }
}

#[test]
fn constants_of_several_processors_are_there_once() {
    // A large constant, two programs, and an argument that a result overwrites.
    let numbers = (0..3000).map(|number| (number % 97).to_string()).collect::<Vec<String>>().join(", ");
    let text = |operation: &str| {
        format!(
            "HloModule {operation}_all, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}
            ENTRY main {{
              c = f32[3000] constant({{{numbers}}})
              x = f32[3000] parameter(0)
              ROOT y = f32[3000] {operation}(x, c)
            }}"
        )
    };
    let texts = [text("add"), text("multiply")];
    let of = |cpus: &[&str], constants| {
        let options = AotCompilationOptions { constants, ..options(cpus) };
        compile_all(&[&texts[0], &texts[1]], &options).unwrap()
    };
    let all = ["x86-64", "x86-64-v3", "x86-64-v4"];
    let [one, several] = [&all[..1], &all[..]].map(|cpus| file(&of(cpus, ConstantsIn::Object), ".o").len());
    assert!(one > 12_000 && several < one + 12_000, "{one} bytes for one processor, {several} for three");
    let files = of(&all, ConstantsIn::File);
    assert!(file(&files, ".bin").len() < 12_500);
    let header = String::from_utf8(file(&files, ".h").to_vec()).unwrap();
    assert!(header.contains("processors x86-64, x86-64-v3, x86-64-v4; the last one that fits is chosen"), "{header}");
    // The baseline is always supported.
    assert!(!header.contains("WRONG_PROCESSOR"), "{header}");
}

#[test]
fn bindings_ask_whether_a_program_runs_here() {
    let files = compile(FUSED, &options(&["x86-64-v2"])).unwrap();
    let text = String::from_utf8(file(&files, ".rs").to_vec()).unwrap();
    assert!(text.contains("pub fn runs_here() -> bool") && text.contains("lacks features that fused was compiled for"));
    let files = compile(FUSED, &options(&["x86-64"])).unwrap();
    assert!(!String::from_utf8(file(&files, ".rs").to_vec()).unwrap().contains("runs_here"));
}

#[test]
fn processors_that_are_never_chosen_are_errors() {
    let said = |cpus: &[&str]| compile(FUSED, &options(cpus)).unwrap_err().message().to_string();
    assert!(said(&["x86-64-v3", "x86-64"]).contains("code for x86-64 after other processors is never chosen"));
    let arm = AotCompilationOptions {
        target: Some("aarch64-unknown-linux-gnu".to_string()),
        ..options(&["cortex-a53", "neoverse-v1"])
    };
    let platform = backend_cpu::platform_with(backend_cpu::CpuOptions {
        generators: backend_cpu::CodeGenerators::all(),
        ..backend_cpu::CpuOptions::default()
    });
    let module = vec![crate::ahead_of_time::module(FUSED)];
    let error = platform.compiler().ahead_of_time().unwrap().compile_ahead_of_time(module, &arm).unwrap_err();
    assert!(error.message().contains("code for neoverse-v1 after other processors is never chosen"), "{error}");
}
