//! Kernels and entry to machine code: a few LLVM modules, generated side by side.

use xla_hlo::Result;
use xla_llvm::codegen::{CodeKind, Unit};
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{Kernel, KernelSource, emit_kernel};
use xla_llvm::parallel;
use xla_llvm::target::{CodegenLevel, MachineOptions, Target};

use crate::program::arguments::ArgumentTable;
use crate::program::entry::{self, Plan};
use crate::program::machine_code::MachineCode;

/// Kernels in one LLVM module: as many as amortise its fixed cost, as few as keep all threads busy.
const KERNELS_A_MODULE: usize = 8;

/// Options of code generation.
pub(crate) struct CodegenOptions {
    /// Number of threads that generate code.
    pub threads: usize,
    /// Whether the LLVM IR is kept.
    pub with_texts: bool,
    /// Options of the emission.
    pub emission: EmitOptions,
}

/// What came out of code generation.
pub(crate) struct Code {
    pub machine: MachineCode,
    /// LLVM IR of each module, where it was asked for.
    pub texts: Vec<(String, String)>,
}

/// The kernel's name in object code.
pub(crate) fn kernel_name(index: usize) -> String {
    format!("kernel_{index}")
}

/// Emits the kernels, then the entry, which must know their units of work, and generates the code of all of them side
/// by side.
pub(crate) fn generate(
    target: &Target,
    kernels: &[KernelSource<'_>],
    options: &CodegenOptions,
    plan: &dyn Fn(Vec<Kernel>) -> Result<Plan>,
) -> Result<Code> {
    let chunk = kernels.len().div_ceil(options.threads.max(1)).clamp(1, KERNELS_A_MODULE);
    let jobs = kernels.chunks(chunk).enumerate().collect();
    let emitted = parallel::map(jobs, options.threads, |(number, sources): (usize, &[KernelSource<'_>])| {
        emit_kernels(target, number, number * chunk, sources, options)
    })?;
    let (kernels, infos): (Vec<Emitted>, Vec<Vec<Kernel>>) = emitted.into_iter().unzip();
    let (entry, arguments) = emit_entry(target, &plan(infos.into_iter().flatten().collect())?, options)?;
    let mut texts = Vec::new();
    let mut units = Vec::with_capacity(kernels.len() + 1);
    // The entry goes first: it is one chunk, and may take longer than any module of kernels.
    for emitted in std::iter::once(entry).chain(kernels) {
        texts.extend(emitted.text.map(|text| (format!("{}.ll", emitted.name), text)));
        units.push((emitted.unit, emitted.name, emitted.level));
    }
    let objects = parallel::map(units, options.threads, |(unit, name, level)| {
        let _span = tracing::debug_span!("machine-code", name).entered();
        unit.generate(target, &MachineOptions { level, ..MachineOptions::default() }, CodeKind::Object)
    })?;
    Ok(Code { machine: MachineCode { objects, arguments }, texts })
}

/// A module that waits for its code.
struct Emitted {
    unit: Unit,
    name: String,
    level: CodegenLevel,
    /// Its LLVM IR, where that is kept.
    text: Option<String>,
}

fn emit_kernels(
    target: &Target,
    number: usize,
    first: usize,
    sources: &[KernelSource<'_>],
    options: &CodegenOptions,
) -> Result<(Emitted, Vec<Kernel>)> {
    let _span = tracing::debug_span!("emit-kernels", first, count = sources.len()).entered();
    let (mut emitted, kernels) =
        emit(target, format!("kernels.{number}"), CodegenLevel::default(), options, |emitter| {
            let emit = |(i, source)| emit_kernel(emitter, source, &kernel_name(first + i));
            sources.iter().enumerate().map(emit).collect::<Result<Vec<Kernel>>>()
        })?;
    let strategies = |text: String| kernels.iter().map(Kernel::comment).chain([text]).collect();
    emitted.text = emitted.text.map(strategies);
    Ok((emitted, kernels))
}

/// The entry is calls and little else: the quickest code generation is good enough for it.
fn emit_entry(target: &Target, plan: &Plan, options: &CodegenOptions) -> Result<(Emitted, ArgumentTable)> {
    let _span = tracing::debug_span!("emit-entry").entered();
    emit(target, "entry".to_string(), CodegenLevel::None, options, |emitter| entry::emit(emitter, plan))
}

/// A module of what `write` emits, and what `write` gave.
fn emit<R>(
    target: &Target,
    name: String,
    level: CodegenLevel,
    options: &CodegenOptions,
    write: impl FnOnce(&Emitter<'_>) -> Result<R>,
) -> Result<(Emitted, R)> {
    let (unit, (text, extra)) = Unit::emit(|context| {
        let emitter = Emitter::new(context, &name, target, options.emission);
        let extra = write(&emitter)?;
        let module = emitter.finish()?;
        let text = options.with_texts.then(|| module.print_to_string().to_string());
        Ok((module, (text, extra)))
    })?;
    Ok((Emitted { unit, name, level, text }, extra))
}
