//! Kernels and entry to machine code: a few LLVM modules, generated side by side.

use xla_hlo::Result;
use xla_llvm::codegen::{self, CodeKind};
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{Kernel, KernelSource, emit_kernel};
use xla_llvm::parallel;
use xla_llvm::target::{CodegenLevel, MachineOptions, Target};

use crate::arguments::ArgumentTable;
use crate::entry::{self, Plan};
use crate::machine_code::MachineCode;

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

/// Kernels first, since the entry must know their units; then the entry.
pub(crate) fn generate(
    target: &Target,
    kernels: &[KernelSource<'_>],
    options: &CodegenOptions,
    plan: &dyn Fn(Vec<Kernel>) -> Result<Plan>,
) -> Result<Code> {
    let machine = MachineOptions::default();
    let chunk = kernels.len().div_ceil(options.threads.max(1)).clamp(1, KERNELS_A_MODULE);
    let jobs: Vec<&[KernelSource<'_>]> = kernels.chunks(chunk).collect();
    let modules = parallel::map(&jobs, options.threads, |number, sources| {
        kernels_module(target, &machine, number * chunk, sources, options)
    })?;
    let (mut objects, mut infos, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (number, generated) in modules.into_iter().enumerate() {
        objects.push(generated.object);
        infos.extend(generated.kernels);
        texts.extend(generated.text.map(|t| (format!("kernels.{number}.ll"), t)));
    }
    let (entry, arguments) = entry_module(target, &plan(infos)?, options)?;
    objects.push(entry.object);
    texts.extend(entry.text.map(|t| ("entry.ll".to_string(), t)));
    Ok(Code { machine: MachineCode { objects, arguments }, texts })
}

struct Generated {
    object: Vec<u8>,
    kernels: Vec<Kernel>,
    text: Option<String>,
}

fn kernels_module(
    target: &Target,
    machine: &MachineOptions,
    first: usize,
    sources: &[KernelSource<'_>],
    options: &CodegenOptions,
) -> Result<Generated> {
    let _span = tracing::debug_span!("kernels", first, count = sources.len()).entered();
    let emit = |emitter: &Emitter<'_>| {
        let emit = |(i, source)| emit_kernel(emitter, source, &kernel_name(first + i));
        sources.iter().enumerate().map(emit).collect()
    };
    let (object, text, kernels) = object(target, machine, &format!("kernels.{first}"), options, emit)?;
    Ok(Generated { object, kernels, text })
}

/// The entry is calls and little else: the quickest code generation is good enough for it.
fn entry_module(target: &Target, plan: &Plan, options: &CodegenOptions) -> Result<(Generated, ArgumentTable)> {
    let _span = tracing::debug_span!("entry").entered();
    let machine = MachineOptions { level: CodegenLevel::None, ..MachineOptions::default() };
    let emit = |emitter: &Emitter<'_>| entry::emit(emitter, plan);
    let (object, text, arguments) = object(target, &machine, "entry", options, emit)?;
    Ok((Generated { object, kernels: Vec::new(), text }, arguments))
}

/// The object file of what `emit` writes, its LLVM IR if that is kept, and what `emit` gave.
fn object<R>(
    target: &Target,
    machine: &MachineOptions,
    name: &str,
    options: &CodegenOptions,
    emit: impl FnOnce(&Emitter<'_>) -> Result<R>,
) -> Result<(Vec<u8>, Option<String>, R)> {
    let (object, (text, extra)) = codegen::generate(target, machine, CodeKind::Object, |context| {
        let emitter = Emitter::new(context, name, target, options.emission);
        let extra = emit(&emitter)?;
        let module = emitter.finish()?;
        let text = options.with_texts.then(|| module.print_to_string().to_string());
        Ok((module, (text, extra)))
    })?;
    Ok((object, text, extra))
}
