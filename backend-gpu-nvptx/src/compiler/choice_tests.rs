//! Matmuls with alternatives: the number of alternatives, and the agreement of each with the evaluator.

use std::collections::BTreeSet;

use xla_hlo::text::parse_module;
use xla_llvm::fused::{KernelSource, MatmulAlternatives};
use xla_tests::agreement::assert_agrees;

use super::*;
use crate::emulation::emulated_platform_with_way;
use crate::program::commands::{Choice, Command};
use crate::program::launches::LaunchFacts;

/// Returns a module with the dot of an `[m, k]` and a `[k, n]` matrix. An operand whose flag in `lies` is false is
/// stored transposed.
fn product(types: [&str; 3], [m, k, n]: [usize; 3], lies: [bool; 2]) -> String {
    let ([a, b, r], [left, right]) = (types, lies);
    let (x, of_left) = if left { (format!("{m},{k}"), 1) } else { (format!("{k},{m}"), 0) };
    let (y, of_right) = if right { (format!("{k},{n}"), 0) } else { (format!("{n},{k}"), 1) };
    format!(
        "HloModule m
        ENTRY main {{
          x = {a}[{x}] parameter(0)
          y = {b}[{y}] parameter(1)
          ROOT r = {r}[{m},{n}] dot(x, y), lhs_contracting_dims={{{of_left}}}, rhs_contracting_dims={{{of_right}}}
        }}"
    )
}

/// Compiles a program with or without autotuning.
fn compiled_for(target: &Target, text: &str, autotune: bool) -> (OptimizedModule, Compiled, Vec<String>) {
    let options = CompileOptions { autotune, ..CompileOptions::default() };
    let (module, gpu) = (VerifiedModule::new(parse_module(text).unwrap()).unwrap(), GpuProfile::usual());
    let module = as_loaded(optimize_for_files(module, &gpu, &options).unwrap()).unwrap();
    let (compiled, strategies) = compile_and_tell(&module, (target, gpu), ModuleSize::Fixed, &options).unwrap();
    (module, compiled, strategies)
}

/// Returns the choices among commands, including those in library calls.
fn choices(commands: &[Command]) -> Vec<Choice> {
    let of = |command: &Command| match command {
        Command::Choice(choice) => vec![(**choice).clone()],
        Command::Library(library) => choices(&library.otherwise),
        Command::Launch { .. } | Command::Copy { .. } => Vec::new(),
    };
    commands.iter().flat_map(of).collect()
}

fn all_choices(compiled: &Compiled) -> Vec<Choice> {
    compiled.device.command_sequences.iter().flat_map(|sequence| choices(&sequence.commands)).collect()
}

/// Runs a program that has one choice on the emulated GPU, with each alternative.
fn all_agree(text: &str) {
    let (_, compiled, _) = compiled_for(&Target::host_threads().unwrap(), text, true);
    let [choice] = <[Choice; 1]>::try_from(all_choices(&compiled)).unwrap_or_else(|all| panic!("{all:?} in {text}"));
    assert!((2..=4).contains(&choice.ways.len()), "{}", choice.name);
    // The default alternative equals the kernel of programs without alternatives, which other tests run.
    for number in 1..choice.ways.len() {
        assert_agrees(emulated_platform_with_way(number), text);
    }
}

#[test]
fn products_of_every_kind_agree_in_every_way() {
    for ty in ["f32", "f16", "bf16", "f64", "s32"] {
        all_agree(&product([ty; 3], [263, 67, 257], [true, true]));
    }
    for types in [["f16", "f16", "f32"], ["s8", "s8", "s32"], ["c64", "c64", "c64"]] {
        all_agree(&product(types, [130, 129, 270], [true, false]));
    }
}

#[test]
fn products_in_stages_agree_in_every_way() {
    for lies in [[true, true], [false, false]] {
        all_agree(&product(["bf16", "bf16", "f32"], [264, 72, 264], lies));
    }
    all_agree(&product(["f16"; 3], [392, 40, 328], [true, true]));
    let tf32 = product(["f32"; 3], [264, 72, 264], [true, false])
        .replace("dot(x, y),", "dot(x, y), algorithm=dot_tf32_tf32_f32,");
    all_agree(&tf32);
}

#[test]
fn sums_in_parts_agree_in_every_way() {
    for ty in ["f32", "s32", "f64"] {
        all_agree(&product([ty; 3], [66, 1027, 65], [true, true]));
    }
    all_agree(&product(["bf16", "bf16", "f32"], [64, 4104, 64], [true, true]));
    // Split K is also an alternative for small tiles that fill the GPU.
    all_agree(&product(["f32"; 3], [250, 530, 250], [true, true]));
}

#[test]
fn fusions_and_convolutions_agree_in_every_way() {
    all_agree(include_str!("programs/dot_of_negated_rows_with_bias.hlo"));
    all_agree(
        "HloModule m
        ENTRY main {
          x = f32[3,75,66] parameter(0)
          y = f32[3,66,300] parameter(1)
          ROOT r = f32[3,75,300] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
        }",
    );
    all_agree(
        "HloModule m
        ENTRY main {
          x = f32[2,19,21,24] parameter(0)
          w = f32[3,3,24,40] parameter(1)
          ROOT c = f32[2,19,21,40] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
        }",
    );
}

#[test]
fn alternatives_are_for_autotuning_and_large_products() {
    let target = Target::nvptx("sm_90").unwrap();
    let large = product(["f32"; 3], [512, 512, 512], [true, true]);
    let small = product(["f32"; 3], [128, 128, 128], [true, true]);
    let count = |text: &str, autotune| all_choices(&compiled_for(&target, text, autotune).1).len();
    assert_eq!((count(&large, true), count(&large, false)), (1, 0));
    assert_eq!((count(&small, true), count(&small, false)), (0, 0));
    // The result of a comparison does not show whether sums differ by more than rounding, so its kernel has no
    // alternatives.
    let compared = large.replace("ROOT r = f32[512,512]", "d = f32[512,512]").replace(
        "rhs_contracting_dims={0}",
        "rhs_contracting_dims={0}\n z = f32[512,512] parameter(2)\n ROOT r = pred[512,512] compare(d, z), direction=LT",
    );
    let has_some = |text: &str| {
        let module = parse_module(text).unwrap();
        let source = KernelSource::of_computation(&module, module.entry_id(), |_| false).unwrap();
        MatmulAlternatives::new(&source, &target).is_some()
    };
    assert!(has_some(&large) && !has_some(&compared) && !has_some(&small));
    assert!(has_some(&compared.replace("f32", "s32")));
    // The alternatives are the fallback of the library call; the first one is the kernel of a program without
    // alternatives.
    let (with, without) = (compiled_for(&target, &large, true), compiled_for(&target, &large, false));
    let [choice] = &all_choices(&with.1)[..] else { panic!("one choice") };
    let [Command::Library(call)] = &without.1.device.command_sequences[0].commands[..] else { panic!("a call") };
    assert_eq!(choice.ways[0], call.otherwise);
    assert_eq!(with.2[0], without.2[0]);
}

#[test]
fn the_kernels_of_a_product_are_few_and_all_different() {
    let target = Target::nvptx("sm_90").unwrap();
    let mut tried = BTreeSet::new();
    for sizes in [[4096, 4096, 4096], [512, 4096, 512], [256, 65_536, 256], [8192, 64, 8192], [17, 512, 100_000]] {
        for ty in ["f32", "bf16", "f64", "c128"] {
            let (module, compiled, strategies) = compiled_for(&target, &product([ty; 3], sizes, [true, true]), true);
            let [choice] = &all_choices(&compiled)[..] else { panic!("{ty} {sizes:?}") };
            assert!((2..=4).contains(&strategies.len()), "{strategies:?}");
            assert_eq!(strategies.iter().collect::<BTreeSet<_>>().len(), strategies.len(), "{strategies:?}");
            assert!(tried.insert(choice.name.clone()), "{}", choice.name);
            // Every kernel has launch facts and scratch memory for its partial sums.
            let facts = LaunchFacts::of_kernels(&compiled.program, &compiled.device);
            assert!(facts.iter().all(|facts| facts.blocks > 0 && facts.bytes_written > 0), "{facts:?}");
            let bytes = compiled.device.write(NAME, &module).unwrap();
            assert_eq!(DeviceProgram::read(NAME, &bytes).unwrap().1, *compiled.device);
        }
    }
    // Equal matmuls share kernels.
    let twice = include_str!("programs/the_kernels_of_a_product_are_few_and_all_different.hlo");
    let (_, compiled, strategies) = compiled_for(&target, twice, true);
    let [one, two] = &all_choices(&compiled)[..] else { panic!("two choices") };
    assert_eq!(one.name, two.name);
    assert!(strategies.len() <= 4, "{strategies:?}");
}
