//! Snapshot tests of strategies of kernels, and of their LLVM IR at each vector width: `tests/data/strategies/*.hlo`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use inkwell::context::Context;
use xla_hlo::Module;
use xla_hlo::ops::Op;
use xla_hlo::text::parse_module;
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{Kernel, KernelSource, emit_kernel, strategies};
use xla_llvm::target::Target;

use crate::manifest::described_with_code;
use crate::programs::sort_of_many;

/// Processors with vectors of 128, 256 and 512 bits.
const VECTORS: [&str; 3] = ["x86-64", "x86-64-v3", "x86-64-v4"];
/// Cases that are one kernel on GPUs only.
const OF_THREADS: [&str; 1] = ["score-sum"];
/// GPUs without and with wgmma.
const THREADS: [&str; 2] = ["sm_90", "sm_90a"];

/// Returns the names and programs of the cases, sorted by name.
fn cases() -> Vec<(String, Module)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/strategies");
    let mut cases: Vec<(String, Module)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            (path.file_stem().unwrap().to_string_lossy().into_owned(), parse_module(&text).unwrap())
        })
        .collect();
    cases.sort_by(|a, b| a.0.cmp(&b.0));
    cases
}

/// Returns the entry as one kernel for a single thread, and its LLVM IR.
pub fn emitted(case: &str, module: &Module, target: &Target) -> (Kernel, String) {
    emitted_with(case, module, target, EmitOptions::default())
}

/// Returns the entry as one kernel, and its LLVM IR.
pub fn emitted_with(case: &str, module: &Module, target: &Target, options: EmitOptions) -> (Kernel, String) {
    let graph = module.entry();
    let in_place = KernelSource {
        module,
        computation: module.entry_id(),
        root: graph.root(),
        inputs: graph.parameters().to_vec(),
        in_place: true,
        overwrites: Vec::new(),
        scalar_loop: None,
    };
    let source = match graph[graph.root()].op() {
        Op::Scatter(_) if !case.ends_with("copies") => in_place,
        Op::Fft(_) | Op::Scatter(_) | Op::SelectAndScatter(_) | Op::Sort(_) | Op::TopK(_) => {
            KernelSource { in_place: false, ..in_place }
        }
        _ => KernelSource::of_computation(module, module.entry_id(), |_| false).unwrap(),
    };
    let context = Context::create();
    let emitter = Emitter::new(&context, "kernels", target, options);
    let kernel = emit_kernel(&emitter, &source, "kernel").unwrap();
    let ir = emitter.finish().unwrap().print_to_string().to_string();
    // The text before the first function contains the target.
    let ir = ir.split_once("define").map_or(String::new(), |(_, body)| format!("define{body}"));
    (kernel, ir)
}

#[test]
fn every_strategy_is_chosen() {
    let mut table = String::new();
    let mut names = BTreeSet::new();
    for (case, module) in cases() {
        writeln!(table, "{case}").unwrap();
        // GPUs have separate sorts and scatters, and no kernels for transforms.
        let alone = ["sort", "select", "copies", "fft"].iter().any(|ending| case.ends_with(ending));
        // A sum over functions of scores is one kernel on GPUs only.
        let vectors = if OF_THREADS.contains(&case.as_str()) { &VECTORS[..0] } else { &VECTORS };
        let threads = if alone { &THREADS[..0] } else { &THREADS };
        for cpu in vectors.iter().chain(threads).copied() {
            let target = if THREADS.contains(&cpu) { Target::nvptx(cpu) } else { Target::whole(cpu) };
            let kernel = emitted(&case, &module, &target.unwrap());
            names.extend(kernel.0.strategy.split(' ').next().map(str::to_string));
            writeln!(table, "  {cpu:10} {}", described_with_code(&kernel)).unwrap();
        }
    }
    insta::assert_snapshot!("strategies", table);
    assert_eq!(names, strategies().map(str::to_string).collect());
}

/// GPU kernels have PTX snapshots in the GPU backend.
#[test]
fn llvm_ir_of_vectors() {
    let of_threads = |case: &str| case.contains("matmul") || OF_THREADS.contains(&case);
    for (case, module) in cases().into_iter().filter(|(case, _)| !of_threads(case)) {
        for cpu in VECTORS {
            let (kernel, ir) = emitted(&case, &module, &Target::whole(cpu).unwrap());
            insta::assert_snapshot!(format!("{case}-{cpu}"), format!("; {}\n{ir}", kernel.strategy));
        }
    }
}

#[test]
fn sort_has_code_for_each_type_of_array() {
    let target = Target::whole("x86-64-v3").unwrap();
    let counts = [12, 40].map(|count| {
        let module = parse_module(&sort_of_many(count, "[100]", 0)).unwrap();
        let (_, ir) = emitted("sort", &module, &target);
        // Each kernel first loads the addresses of its arrays.
        ["= load i", "= load <", "store "].map(|access| ir.matches(access).count())
    });
    assert_eq!(counts[0], counts[1], "12 and 40 arrays of three types");
}

#[test]
fn large_loop_body_is_emitted_once() {
    let lines = |cpu: &str, extent: usize| {
        let sines: String = (0..30).map(|i| format!("v{} = f32[{extent}] sine(v{i})\n", i + 1)).collect();
        let text = format!(
            "HloModule m\nENTRY e {{ v0 = f32[{extent}] parameter(0)\n{sines} ROOT r = f32[{extent}] negate(v30) }}"
        );
        let (_, ir) = emitted("sines", &parse_module(&text).unwrap(), &Target::whole(cpu).unwrap());
        ir.lines().count()
    };
    for cpu in ["x86-64-v3", "x86-64-v4"] {
        let [whole, partial] = [1024, 1001].map(|extent| lines(cpu, extent));
        assert!(partial < whole + whole / 4, "{whole} lines for whole vectors, {partial} with a remainder, for {cpu}");
    }
}
