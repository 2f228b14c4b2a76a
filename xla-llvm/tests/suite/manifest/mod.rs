//! Manifest of generated code: kernels of the repository's programs for several targets, one line for each, with its
//! strategy, its launch and a hash of its LLVM IR. `tests/suite/snapshots/*-manifest-TARGET.snap`.
//!
//! A refactoring leaves the manifest unchanged. For an optimization, the diff names the programs whose code changes;
//! `cargo insta accept` accepts it. The test emits LLVM IR only, so it takes milliseconds for each kernel. A mechanism
//! that no program reaches gets a program in `tests/data/manifest`, or a family of programs in `tests/data/families`.

mod profile;
mod programs;

use std::fmt::Write;

use inkwell::context::Context;
use xla_hlo::ops::Op;
use xla_hlo::text::parse_module;
use xla_hlo::{CompId, InstrId, Module, Result, VerifiedModule};
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{
    KERNEL_KINDS, Kernel, KernelKind, KernelPlan, KernelSource, emit_kernel, has_fft_kernel, is_kernel_root,
    is_scalar_computation,
};
use xla_llvm::target::{CodeGenerators, Target, TargetSpec};
use xla_passes::analysis::element_order::key_of_comparator;
use xla_passes::{PassContext, TargetProfile, stages};

use profile::profile;
use programs::{families, programs};

/// Returns the computations that run instruction by instruction: the entry, bodies of loops, branches.
fn sequences(module: &Module) -> Vec<CompId> {
    let mut found = vec![module.entry_id()];
    let mut next = 0;
    while let Some(&computation) = found.get(next) {
        for (_, instruction) in module[computation].iter() {
            let called = match instruction.op() {
                Op::While(op) => vec![op.condition, op.body],
                Op::Conditional(op) => op.branches.clone(),
                _ => Vec::new(),
            };
            called.into_iter().for_each(|id| {
                if !found.contains(&id) {
                    found.push(id)
                }
            });
        }
        next += 1;
    }
    found
}

/// Returns the source of an instruction's kernel; `None` if it is not a kernel of a CPU.
fn vector_source<'m>(module: &'m Module, computation: CompId, id: InstrId) -> Option<KernelSource<'m>> {
    let graph = &module[computation];
    let mut source = match graph[id].op() {
        Op::Fusion(fusion) => KernelSource::of_computation(module, fusion.computation, |_| false)?,
        Op::Sort(op) if !has_kernel(module, op.computation) => return None,
        Op::Scatter(op) if !is_scalar_computation(module, op.computation) => return None,
        Op::Fft(op) if !has_fft_kernel(op) => return None,
        Op::Sort(_) | Op::Scatter(_) | Op::Fft(_) | Op::TopK(_) => KernelSource::of_operation(module, computation, id),
        _ if is_kernel_root(module, graph, id) => KernelSource::of_operation(module, computation, id),
        _ => return None,
    };
    source.in_place |= matches!(source.instruction().op(), Op::DynamicUpdateSlice(_));
    let graph = &module[source.computation];
    let is_static = |&id: &InstrId| graph[id].shape().as_array().is_some_and(|shape| shape.is_static());
    source.inputs.iter().all(is_static).then_some(source)
}

fn has_kernel(module: &Module, comparator: CompId) -> bool {
    key_of_comparator(module, comparator).is_some() || is_scalar_computation(module, comparator)
}

/// Returns the source of an instruction's plan on a GPU: its fusion, or the instruction by itself.
fn thread_source(module: &Module, computation: CompId, id: InstrId) -> KernelSource<'_> {
    let fusion = match module[computation][id].op() {
        Op::Fusion(fusion) => KernelSource::of_computation(module, fusion.computation, |_| false),
        _ => None,
    };
    let mut source = fusion.unwrap_or_else(|| KernelSource::of_operation(module, computation, id));
    source.in_place |= matches!(source.instruction().op(), Op::DynamicUpdateSlice(_));
    source
}

/// Describes a kernel and its LLVM IR: strategy, launch and hash.
pub fn described_with_code((kernel, ir): &(Kernel, String)) -> String {
    format!("{}, code {:016x}", described(kernel), hash(ir))
}

/// Describes the strategy of a kernel and its launch: work items, threads of each, memory and cost.
fn described(kernel: &Kernel) -> String {
    let Kernel { work_items, block, shared_bytes, scratch_bytes, work, strategy, .. } = kernel;
    let mut text = format!("{strategy}; {work_items} work items");
    block.iter().for_each(|threads| text += &format!(" of {threads} threads"));
    for (bytes, memory) in [(shared_bytes, "shared"), (scratch_bytes, "scratch")] {
        if *bytes > 0 {
            text += &format!(", {bytes} bytes of {memory} memory");
        }
    }
    text + &format!(", work {work:.0}")
}

/// Emits one kernel by `emit` into a module of its own. Returns the hash of its interface and LLVM IR, its strategy and
/// its launch.
fn line(target: &Target, emit: impl Fn(&Emitter<'_>) -> Result<Kernel>) -> String {
    let context = Context::create();
    let options = EmitOptions { threads: if target.simt().is_some() { 1 } else { 8 }, ..EmitOptions::default() };
    let emitter = Emitter::new(&context, "kernels", target, options);
    let emitted = emit(&emitter).and_then(|kernel| Ok((kernel, emitter.finish()?.print_to_string().to_string())));
    match emitted {
        Ok((kernel, ir)) => format!("{:016x} {}", hash(&format!("{ir} {kernel:?}")), described(&kernel)),
        Err(error) => format!("error: {error}"),
    }
}

/// Returns the 64-bit FNV-1a hash of a module's functions and their attributes, except the target's name.
fn hash(ir: &str) -> u64 {
    let functions = ir.split_once("define").map_or(ir, |(_, functions)| functions);
    let words = functions.split_inclusive([' ', '\n']).filter(|word| !word.starts_with("\"target-"));
    let bytes = words.flat_map(str::bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Appends the kernels of an instruction and, for plans of several launches, the commands and scratch memories.
fn add_kernels(table: &mut String, target: &Target, (module, computation, id): (&Module, CompId, InstrId)) {
    if target.simt().is_none() {
        if let Some(source) = vector_source(module, computation, id) {
            writeln!(table, "  {}", line(target, |emitter| emit_kernel(emitter, &source, "kernel"))).unwrap();
        }
        return;
    }
    add_plan(table, target, &thread_source(module, computation, id));
}

/// Appends the kernels of a GPU's plan for a source.
fn add_plan(table: &mut String, target: &Target, source: &KernelSource<'_>) {
    let Some(plan) = KernelKind::first_plan(KERNEL_KINDS, source, target) else { return };
    for code in &plan.codes {
        writeln!(table, "  {}", line(target, |emitter| code.emit(emitter, "kernel"))).unwrap();
    }
    if plan.commands.len() > 1 || !plan.scratch.is_empty() || plan.rng_delta.is_some() {
        let commands = hash(&format!("{:?}", plan.commands));
        let (count, scratch, delta) = (plan.commands.len(), &plan.scratch, plan.rng_delta);
        writeln!(table, "    {count} commands {commands:016x}, scratch {scratch:?}, random numbers {delta:?}").unwrap();
    }
}

/// Appends the entry of a program of this crate: each is one kernel of a GPU, or one plan.
fn add_entry(table: &mut String, target: &Target, module: &Module) {
    let (entry, root) = (module.entry_id(), module.entry().root());
    let fusion = KernelSource::of_computation(module, entry, |_| false);
    add_plan(table, target, &fusion.unwrap_or_else(|| thread_source(module, entry, root)));
}

/// Emits the phases of a plan, each into a module of its own. Returns the hashes of their LLVM IR.
pub fn codes_of_plan<P: KernelPlan>(plan: &P, source: &KernelSource<'_>, target: &Target) -> String {
    let phases = plan.phases().into_iter();
    let code = |phase| line(target, |emitter| plan.emit(source, phase, emitter, "kernel"));
    phases.map(|phase| format!("  {}\n", code(phase))).collect()
}

/// Compiles programs for a target up to the LLVM IR of their kernels, and lists each kernel.
fn manifest(target: &Target) -> String {
    let profile = profile(target);
    let mut table = String::new();
    for (name, text) in programs() {
        writeln!(table, "{name}").unwrap();
        if target.simt().is_some() && name.starts_with("xla-llvm/") {
            add_entry(&mut table, target, &parse_module(&text).unwrap());
        }
        add_program(&mut table, target, &profile, &text);
    }
    table
}

/// Compiles the programs of families for a target as [`manifest`] does. Lists one hash for each program.
fn manifest_of_families(target: &Target) -> String {
    let profile = profile(target);
    let mut table = String::new();
    for (name, programs) in families() {
        writeln!(table, "{name}").unwrap();
        for (values, text) in programs {
            let mut kernels = String::new();
            add_program(&mut kernels, target, &profile, &text);
            assert!(!kernels.contains("error: "), "{name} of{values}: {kernels}");
            let hash = hash(&kernels);
            writeln!(table, "  {:08x}{values}", (hash ^ hash >> 32) as u32).unwrap();
        }
    }
    table
}

/// Appends the kernels of a program after the target-independent passes.
fn add_program(table: &mut String, target: &Target, profile: &TargetProfile, text: &str) {
    let optimized = parse_module(text).and_then(VerifiedModule::new).and_then(|module| {
        let mut module = Module::clone(&module);
        stages::standard(profile).run(&mut module, &PassContext::new(profile)).map(|_| module)
    });
    let module = match optimized {
        Ok(module) => module,
        Err(error) => {
            writeln!(table, "  error: {}", error.to_string().lines().next().unwrap_or_default()).unwrap();
            return;
        }
    };
    for computation in sequences(&module) {
        for (id, instruction) in module[computation].iter() {
            let is_code = !matches!(
                instruction.op(),
                Op::Parameter(_) | Op::Constant(_) | Op::Tuple(_) | Op::GetTupleElement(_) | Op::Bitcast(_)
            );
            if is_code {
                add_kernels(table, target, (&module, computation, id));
            }
        }
    }
}

/// Compares the manifest of a target with its snapshot.
fn check(name: &str, target: Result<Target>) {
    insta::assert_snapshot!(format!("manifest-{name}"), manifest(&target.unwrap()));
}

/// Compares the manifest of families for a target with its snapshot. Targets that differ little from others are left
/// out to save time.
fn check_families(name: &str, target: Result<Target>) {
    insta::assert_snapshot!(format!("families-{name}"), manifest_of_families(&target.unwrap()));
}

/// Returns a CPU by its triple and LLVM's name of the processor, on any machine.
fn cpu(triple: &str, cpu: &str) -> Result<Target> {
    let spec = TargetSpec { triple: Some(triple.to_string()), cpu: Some(cpu.to_string()), ..TargetSpec::default() };
    Target::of(&spec, CodeGenerators::all())
}

#[test]
fn x86_64() {
    check("x86-64", cpu("x86_64-unknown-linux-gnu", "x86-64"));
}

#[test]
fn x86_64_v3() {
    check("x86-64-v3", cpu("x86_64-unknown-linux-gnu", "x86-64-v3"));
}

#[test]
fn x86_64_v4() {
    check("x86-64-v4", cpu("x86_64-unknown-linux-gnu", "x86-64-v4"));
}

#[test]
fn aarch64() {
    check("aarch64", cpu("aarch64-unknown-linux-gnu", "generic"));
}

#[test]
fn sm_70() {
    check("sm_70", Target::nvptx("sm_70"));
}

#[test]
fn sm_80() {
    check("sm_80", Target::nvptx("sm_80"));
}

#[test]
fn sm_90a() {
    check("sm_90a", Target::nvptx("sm_90a"));
}

#[test]
fn sm_100a() {
    check("sm_100a", Target::nvptx("sm_100a"));
}

#[test]
fn families_x86_64_v3() {
    check_families("x86-64-v3", cpu("x86_64-unknown-linux-gnu", "x86-64-v3"));
}

#[test]
fn families_x86_64_v4() {
    check_families("x86-64-v4", cpu("x86_64-unknown-linux-gnu", "x86-64-v4"));
}

#[test]
fn families_sm_70() {
    check_families("sm_70", Target::nvptx("sm_70"));
}

#[test]
fn families_sm_90a() {
    check_families("sm_90a", Target::nvptx("sm_90a"));
}
