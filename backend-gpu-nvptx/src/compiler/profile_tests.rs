//! Plans for GPUs of different sizes.

use proptest::prelude::*;
use xla_hlo::text::parse_module;

use super::*;
use crate::program::launches::LaunchFacts;
use crate::program::recorded_lowering::ReplayLowering;

/// One program for each decision that depends on the GPU.
const PROGRAMS: [(&str, &str); 5] = [
    ("split-k", include_str!("programs/split_k.hlo")),
    ("scan", include_str!("programs/scan.hlo")),
    ("reduction of all", include_str!("programs/reduction_of_all.hlo")),
    ("columns", include_str!("programs/columns.hlo")),
    ("elementwise", include_str!("programs/elementwise.hlo")),
];

/// Compiles a program for an architecture with the profile of `gpu`. Also returns the strategies of its kernels.
fn planned(text: &str, architecture: &str, gpu: &GpuProfile) -> (OptimizedModule, Compiled, Vec<String>) {
    let options = CompileOptions::default();
    let module = VerifiedModule::new(parse_module(text).unwrap()).unwrap();
    let module = optimize_for_files(module, gpu, &options).unwrap();
    let target = Target::nvptx(architecture).unwrap();
    let planned = compile_and_tell(&module, (&target, gpu.clone()), ModuleSize::Fixed, &options);
    let (compiled, strategies) = planned.unwrap();
    (module, compiled, strategies)
}

/// Lists the kernels of all programs with their blocks, threads and strategies.
fn plans(architecture: &str) -> String {
    let gpu = GpuProfile::of_architecture(architecture).unwrap();
    let lines = PROGRAMS.iter().flat_map(|(name, text)| {
        let (_, compiled, strategies) = planned(text, architecture, &gpu);
        let launches = LaunchFacts::of_kernels(&compiled.program, &compiled.device);
        let functions = compiled.device.image.functions.iter().map(|function| function.threads);
        let kernels = functions.zip(launches).zip(strategies);
        let kernels = kernels.map(|((threads, launch), strategy)| {
            format!("{name}: {} blocks of {threads} threads, {strategy}", launch.blocks)
        });
        kernels.collect::<Vec<_>>()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn plans_for_a100_and_h100() {
    insta::assert_snapshot!("plans_for_sm_80", plans("sm_80"));
    insta::assert_snapshot!("plans_for_sm_90", plans("sm_90"));
}

/// Loading a program yields the thunks that it was compiled to, regardless of the device.
#[test]
fn a_program_keeps_the_gpu_that_it_was_planned_for() {
    for architecture in ["sm_70", "sm_80", "sm_90", "sm_100"] {
        let gpu = GpuProfile::of_architecture(architecture).unwrap();
        let (module, compiled, _) = planned(PROGRAMS[0].1, architecture, &gpu);
        let bytes = compiled.device.write(NAME, &module).unwrap();
        let (module, device) = DeviceProgram::read(NAME, &bytes).unwrap();
        assert_eq!(device.gpu, gpu);
        let mut replay = ReplayLowering::new(&device.lowerings);
        let program = place(&module, &mut replay, &device.gpu, &CompileOptions::default()).unwrap();
        serialized::check_thunks(&program, &device).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// On any GPU, kernels fit into its blocks, all blocks have work, and no partial sum is so short that combining the
    /// partial sums takes longer than computing them.
    #[test]
    fn any_gpu_has_a_sensible_plan(
        multiprocessors in prop_oneof![1u32..=16, 17u32..=256, 257u32..=4096],
        clock_hz in 500_000_000u64..4_000_000_000,
        memory_bandwidth in 50_000_000_000u64..20_000_000_000_000,
        l2_bytes in (1u64 << 20)..(1 << 28),
        number in 0..PROGRAMS.len(),
    ) {
        let gpu = GpuProfile { multiprocessors, clock_hz, memory_bandwidth, l2_bytes, ..GpuProfile::usual() };
        let (_, compiled, strategies) = planned(PROGRAMS[number].1, "sm_80", &gpu);
        let launches = LaunchFacts::of_kernels(&compiled.program, &compiled.device);
        for ((function, launch), strategy) in compiled.device.image.functions.iter().zip(&launches).zip(strategies) {
            let what = || format!("{}: {launch:?} {strategy}", PROGRAMS[number].0);
            prop_assert!((1..=1024).contains(&function.threads), "{}", what());
            prop_assert!(launch.blocks > 0, "{}", what());
            // More blocks than the GPU can hold at a time pay off only if each reads or writes enough bytes.
            let bytes = launch.bytes_read.max(launch.bytes_written) / u64::from(launch.blocks);
            let holds = multiprocessors.saturating_mul(64);
            prop_assert!(launch.blocks <= holds || bytes >= 256, "{}", what());
        }
        let scratch = compiled.device.command_sequences.iter().flat_map(|sequence| &sequence.scratch);
        prop_assert!(scratch.sum::<usize>() <= 64 << 20);
    }
}
