//! Tests of an emission for other targets: run if this machine can, otherwise compiled and searched for library calls.

use inkwell::context::Context;
use inkwell::targets::InitializationConfig;
use xla_hlo::ops::{BinaryOp, UnaryOp};
use xla_hlo::{ElementType, Error};
use xla_llvm::elemental;
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::target::{CodeGenerators, MachineOptions, Passes, Target, TargetSpec};

use crate::kernel::{Signature, emit};

/// Targets by triple, CPU and features, with the expected width of vectors in bits (0: scalars only).
const TARGETS: &[(&str, &str, &str, u32)] = &[
    ("x86_64-unknown-linux-gnu", "x86-64", "", 128),
    ("x86_64-unknown-linux-gnu", "x86-64-v3", "", 256),
    ("x86_64-unknown-linux-gnu", "x86-64-v4", "", 512),
    ("aarch64-unknown-linux-gnu", "", "", 128),
    ("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v", 128),
    ("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", 0),
    ("nvptx64-nvidia-cuda", "sm_80", "", 0),
];

/// Returns a target of any kind that LLVM was built with.
fn target(triple: &str, cpu: &str, features: &str) -> Target {
    inkwell::targets::Target::initialize_all(&InitializationConfig::default());
    Target::new(triple, cpu, features).unwrap()
}

#[test]
fn widths_are_those_of_the_cpu() {
    for &(triple, cpu, features, bits) in TARGETS {
        let target = target(triple, cpu, features);
        assert_eq!(target.abilities().vector_bits, bits, "{triple} {cpu}");
        assert_eq!(target.lanes(32), (bits / 32).max(1), "{triple} {cpu}");
        assert!(!target.data_layout().is_empty());
    }
    assert!(!Target::new("x86_64-unknown-linux-gnu", "x86-64", "").unwrap().abilities().f32.fma);
    assert!(Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "").unwrap().abilities().f32.fma);
}

/// Triple, processor, features, abilities.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// Targets with their expected abilities: vector bits, FMA and rounding in f32 and f64, half precision, masked memory,
/// high products, bytes of a pointer, byte order.
const ABILITIES: &[Row] = &[
    ("x86_64-unknown-linux-gnu", "", "", "128 -- -- -- p 8"),
    ("x86_64-unknown-linux-gnu", "x86-64-v3", "", "256 fr fr hm p 8"),
    ("i686-unknown-linux-gnu", "", "", "128 -- -- -- p 4"),
    ("aarch64-unknown-linux-gnu", "", "", "128 fr fr h- p 8"),
    ("aarch64-unknown-linux-gnu", "neoverse-v1", "", "128 fr fr h- p 8"),
    ("aarch64-apple-darwin", "", "", "128 fr fr h- p 8"),
    ("armv7-unknown-linux-gnueabihf", "", "", "0 -- -- -- p 4"),
    ("armv7-unknown-linux-gnueabihf", "cortex-a7", "", "0 f- f- h- p 4"),
    ("thumbv7em-none-eabihf", "cortex-m7", "", "0 fr fr h- p 4"),
    ("riscv64-unknown-linux-gnu", "", "", "0 fr fr -- p 8"),
    ("riscv64-unknown-linux-gnu", "", "+v", "128 fr fr -m p 8"),
    ("riscv64-unknown-linux-gnu", "", "+v,+zvl256b", "256 fr fr -m p 8"),
    ("riscv64-unknown-elf", "", "", "0 -- -- -- p 8"),
    ("s390x-unknown-linux-gnu", "", "", "0 f- f- -- p 8 big"),
    ("s390x-unknown-linux-gnu", "z14", "", "0 fr fr -- p 8 big"),
    ("powerpc64le-unknown-linux-gnu", "", "", "128 fr fr -- p 8"),
    ("wasm32-unknown-unknown", "", "", "0 -r -r -- - 4"),
    ("wasm32-unknown-unknown", "", "+simd128", "128 -r -r -- - 4"),
    ("hexagon-unknown-none-elf", "", "", "0 f- -- -m p 4"),
    ("loongarch64-unknown-linux-gnu", "", "", "128 fr fr -- p 8"),
];

#[test]
fn abilities_are_those_of_the_named_target() {
    let flag = |letter: char, is: bool| if is { letter } else { '-' };
    let found = |triple: &str, cpu: &str, features: &str| {
        let spec = TargetSpec {
            triple: Some(triple.to_string()),
            cpu: (!cpu.is_empty()).then(|| cpu.to_string()),
            features: features.split(',').filter(|f| !f.is_empty()).map(str::to_string).collect(),
            ..TargetSpec::default()
        };
        let target = Target::of(&spec, CodeGenerators::all()).unwrap();
        let has = target.abilities();
        let mut text = format!("{} ", has.vector_bits);
        for float in [has.f32, has.f64] {
            text.extend([flag('f', float.fma), flag('r', float.rounding), ' ']);
        }
        text.extend([flag('h', has.half), flag('m', has.masked_memory), ' ', flag('p', has.high_product)]);
        let order = if target.is_big_endian() { " big" } else { "" };
        format!("{text} {}{order}", target.pointer_bytes())
    };
    let lines = |find: &dyn Fn(&Row) -> String| -> String {
        let line = |row: &Row| format!("{} {} {}: {}\n", row.0, row.1, row.2, find(row));
        ABILITIES.iter().map(line).collect()
    };
    assert_eq!(lines(&|row| found(row.0, row.1, row.2)), lines(&|row| row.3.to_string()));
}

#[test]
fn names_that_do_not_exist_or_contradict_each_other_are_refused() {
    let said = |triple: &str, cpu: &str, features: &[&str], abi: Option<&str>| {
        let spec = TargetSpec {
            triple: Some(triple.to_string()),
            cpu: Some(cpu.to_string()),
            features: features.iter().map(ToString::to_string).collect(),
            abi: abi.map(str::to_string),
            ..TargetSpec::default()
        };
        match Target::of(&spec, CodeGenerators::all()) {
            Err(Error::InvalidArgument(reason)) => reason.to_string(),
            other => panic!("{triple} {cpu} {features:?}: {other:?}"),
        }
    };
    assert!(said("x86_64-linux-gnu", "haswel", &[], None).contains("did you mean haswell?"));
    assert!(said("hexagon", "hexagonv61", &[], None).contains("has no processor"));
    assert!(said("riscv64-linux-gnu", "generic-rv64", &["+zvl256"], None).contains("did you mean zvl"));
    assert!(said("riscv64-linux-gnu", "generic-rv64", &[], Some("lp64x")).contains("there are lp64"));
    // LLVM knows each of these names, but terminates the process for some combinations of them.
    assert!(said("riscv64-linux-gnu", "generic-rv32", &[], None).contains("LLVM cannot generate code"));
    assert!(said("i686-linux-gnu", "i386", &[], None).contains("no SSE2"));
    assert!(said("x86_64-linux-gnu", "native-ish", &[], None).contains("has no processor"));
    let other = if cfg!(target_arch = "aarch64") { "x86_64-linux-gnu" } else { "aarch64-linux-gnu" };
    assert!(said(other, "native", &[], None).contains("is the processor of this machine"));
    assert!(said("nvptx64-nvidia-cuda", "sm_90", &[], None).contains("of a GPU"));
}

/// Returns the normalized triple, and assembly of a 64-bit division, for a triple and a processor.
fn division(triple: &str, cpu: &str) -> (String, String) {
    let spec = TargetSpec {
        triple: Some(triple.to_string()),
        cpu: (!cpu.is_empty()).then(|| cpu.to_string()),
        ..TargetSpec::default()
    };
    let target = Target::of(&spec, CodeGenerators::all()).unwrap();
    let ty = ElementType::U64;
    let options = EmitOptions::default();
    let signature = Signature { width: 1, inputs: &[ty, ty], output: ty, masked: false, options };
    let context = Context::create();
    let module =
        emit(&context, &target, &signature, |e, x| elemental::binary(e, BinaryOp::Divide, x[0], x[1])).unwrap();
    let assembly = target.machine(&MachineOptions::default()).unwrap().assembly(&module).unwrap();
    (target.triple().to_string(), assembly)
}

#[test]
fn triples_of_three_parts_have_the_abi_of_four() {
    for (short, long, cpu) in [
        ("thumbv7em-none-eabihf", "thumbv7em-unknown-none-eabihf", "cortex-m4"),
        ("thumbv6m-none-eabi", "thumbv6m-unknown-none-eabi", "cortex-m0"),
        ("armv7a-none-eabihf", "armv7a-unknown-none-eabihf", "cortex-a7"),
        ("arm-none-eabi", "arm-unknown-none-eabi", ""),
        ("arm-linux-gnueabihf", "arm-unknown-linux-gnueabihf", ""),
        ("aarch64-linux-gnu", "aarch64-unknown-linux-gnu", ""),
        ("aarch64-linux-android21", "aarch64-unknown-linux-android21", ""),
        ("riscv64-linux-gnu", "riscv64-unknown-linux-gnu", ""),
        ("x86_64-linux-musl", "x86_64-unknown-linux-musl", ""),
        ("x86_64-w64-mingw32", "x86_64-w64-windows-gnu", ""),
        ("mips64el-linux-gnuabi64", "mips64el-unknown-linux-gnuabi64", ""),
        ("wasm32-wasip1", "wasm32-unknown-wasip1", ""),
    ] {
        let (triple, assembly) = division(short, cpu);
        assert_eq!((triple.as_str(), &assembly), (long, &division(long, cpu).1), "{short}");
        let hard = assembly.lines().any(|line| line.split_whitespace().eq([".eabi_attribute", "28,", "1"]));
        assert_eq!(hard, short.ends_with("eabihf"), "{short}: {assembly}");
        if short.starts_with("arm") || short.starts_with("thumb") {
            assert!(assembly.contains("__aeabi_uldivmod") && !assembly.contains("__udivdi3"), "{short}: {assembly}");
        }
    }
    let refused = |triple: &str| {
        let spec = TargetSpec { triple: Some(triple.to_string()), ..TargetSpec::default() };
        Target::of(&spec, CodeGenerators::all()).unwrap_err().message().to_string()
    };
    assert!(refused("thumbv7em-none-eabjhf").ends_with("did you mean eabihf?"));
    assert!(refused("thumbv7xm-none-eabihf").contains("is no architecture that LLVM supports"));
}

#[test]
fn what_llvm_does_not_know_is_refused() {
    assert!(matches!(Target::new("vax-dec-ultrix", "", ""), Err(Error::InvalidArgument(_))));
    let target = Target::host().unwrap();
    let context = Context::create();
    let emitter = Emitter::new(&context, "empty", &target, EmitOptions::default());
    let machine =
        target.machine(&MachineOptions { passes: Some(Passes::new("no-such-pass")), ..Default::default() }).unwrap();
    let refused = machine.object(&emitter.finish().unwrap());
    assert!(matches!(refused, Err(Error::InvalidArgument(_))));
}

/// Returns the instructions of `kernel.flushing` in order, without moves of data.
fn flushing_instructions(triple: &str, cpu: &str) -> Vec<String> {
    let target = target(triple, cpu, "");
    let ty = ElementType::F32;
    let options = EmitOptions { flush_denormals: true, ..EmitOptions::default() };
    let signature = Signature { width: 4, inputs: &[ty], output: ty, masked: true, options };
    let context = Context::create();
    let module = emit(&context, &target, &signature, |e, x| elemental::binary(e, BinaryOp::Add, x[0], x[0])).unwrap();
    let assembly = target.machine(&MachineOptions::default()).unwrap().assembly(&module).unwrap();
    let (before, function) = assembly.split_once("\nkernel.flushing:").unwrap();
    assert!(!before.contains("mxcsr") && !before.contains("FPCR"), "the kernel itself sets no mode");
    let end = function.find(".Lfunc_end").unwrap();
    let instruction = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let interesting = name.contains("mxcsr") || ["callq", "call", "bl", "msr", "mrs"].contains(&name);
        interesting.then(|| name.trim_start_matches('v').to_string())
    };
    function[..end].lines().filter_map(instruction).collect()
}

#[test]
fn the_mode_of_subnormals_is_set_around_the_kernel_alone() {
    for cpu in ["x86-64", "x86-64-v4"] {
        let found = flushing_instructions("x86_64-unknown-linux-gnu", cpu);
        assert_eq!(found, ["stmxcsr", "ldmxcsr", "callq", "ldmxcsr"]);
    }
    assert_eq!(flushing_instructions("aarch64-unknown-linux-gnu", ""), ["mrs", "msr", "bl", "msr"]);
    assert_eq!(flushing_instructions("riscv64-unknown-linux-gnu", "generic-rv64"), ["call"]);
}

/// Returns the names of undefined functions that the code calls.
fn calls(assembly: &str) -> Vec<String> {
    let called = |line: &str| {
        let mut words = line.split_whitespace();
        let mnemonic = words.next()?;
        let name = words.next()?.trim_start_matches("*").split('@').next()?.to_string();
        let call = ["call", "callq", "bl", "jmp", "b", "tail"].contains(&mnemonic);
        let own = name.starts_with('.') || name.starts_with("xla.") || name.starts_with('[');
        (call && !own).then_some(name)
    };
    let external = |line: &str| line.trim().strip_prefix(".extern .func").map(str::to_string);
    assembly.lines().filter_map(|line| called(line).or(external(line))).collect()
}

#[test]
fn no_operation_calls_a_library() {
    for &(triple, cpu, features, _) in TARGETS {
        let target = target(triple, cpu, features);
        let machine = target.machine(&MachineOptions::default()).unwrap();
        for ty in [ElementType::F32, ElementType::F64, ElementType::F16, ElementType::BF16, ElementType::F8E4M3FN] {
            let width = target.lanes(ty.bit_width().max(32) as u32);
            let text = |arity: usize, op: &dyn Fn(&mut Vec<String>)| {
                let mut found = Vec::new();
                op(&mut found);
                assert!(found.is_empty(), "{triple} {cpu} {ty} arity {arity}: {found:?}");
            };
            for &op in UnaryOp::ALL {
                text(1, &|found| {
                    let context = Context::create();
                    let output = if op == UnaryOp::IsFinite { ElementType::Pred } else { ty };
                    let signature =
                        Signature { width, inputs: &[ty], output, masked: false, options: EmitOptions::default() };
                    let module = emit(&context, &target, &signature, |e, x| elemental::unary(e, op, x[0]));
                    if let Ok(module) = module {
                        let calls = calls(&machine.assembly(&module).unwrap());
                        found.extend(calls.into_iter().map(|name| format!("{op:?} calls {name}")));
                    }
                });
            }
            for op in [BinaryOp::Power, BinaryOp::Atan2, BinaryOp::Remainder, BinaryOp::Maximum, BinaryOp::Divide] {
                text(2, &|found| {
                    let context = Context::create();
                    let signature = Signature {
                        width,
                        inputs: &[ty, ty],
                        output: ty,
                        masked: false,
                        options: EmitOptions::default(),
                    };
                    let module = emit(&context, &target, &signature, |e, x| elemental::binary(e, op, x[0], x[1]));
                    let calls = calls(&machine.assembly(&module.unwrap()).unwrap());
                    found.extend(calls.into_iter().map(|name| format!("{op:?} calls {name}")));
                });
            }
        }
    }
}

/// LLVM 22 scalarizes shifts by different amounts, and does not clear the bits above a narrow lane. (Cross runs check
/// the results.)
#[test]
fn narrow_lanes_are_shifted_as_wide_ones_in_webassembly() {
    let widened = |triple: &str, features: &str, ty: ElementType, op: BinaryOp| {
        let target = target(triple, "", features);
        let options = EmitOptions::default();
        let width = target.lanes(ty.bit_width() as u32);
        let signature = Signature { width, inputs: &[ty, ty], output: ty, masked: false, options };
        let context = Context::create();
        let module = emit(&context, &target, &signature, |e, x| elemental::binary(e, op, x[0], x[1])).unwrap();
        let ir = module.print_to_string().to_string();
        ir.lines().any(|line| line.contains(&format!("lshr <{width} x i32>")))
    };
    let (wasm, shift) = ("wasm32-unknown-unknown", BinaryOp::ShiftRightLogical);
    assert!(widened(wasm, "+simd128", ElementType::S8, shift) && widened(wasm, "+simd128", ElementType::U16, shift));
    assert!(!widened(wasm, "", ElementType::S8, shift), "there are no vectors");
    assert!(!widened(wasm, "+simd128", ElementType::S8, BinaryOp::ShiftRightArithmetic));
    assert!(!widened("x86_64-unknown-linux-gnu", "", ElementType::S8, shift));
}
