//! Code generation: compiles kernels and the entry function to machine code.

use xla_hlo::Result;
use xla_llvm::driver::{CodegenDriver, EmittedModule};
use xla_llvm::emitter::Emitter;
use xla_llvm::fused::{Kernel, KernelSource, Overwrite, check_overwrites, emit_kernel};
use xla_llvm::target::{CodegenLevel, MachineOptions};

use crate::program::entry;
use crate::program::machine_code::MachineCode;
use crate::program::sequence::Plan;

/// Result of code generation.
pub(crate) struct Code {
    pub machine: MachineCode,
    /// LLVM IR of each module, if requested.
    pub texts: Vec<(String, String)>,
}

/// Returns the name of a kernel in object code.
pub(crate) fn kernel_name(index: usize) -> String {
    format!("kernel_{index}")
}

/// Emits the kernels, then the entry function, which depends on their work items, and generates the code of all modules
/// in parallel. Kernels in `checks` are executed here on inputs that they overwrite, and must return the same bits as
/// with separate memory.
pub(crate) fn generate(
    driver: &CodegenDriver<'_>,
    sources: &[KernelSource<'_>],
    checks: &[(usize, Vec<Overwrite>)],
    plan: &dyn Fn(Vec<Kernel>) -> Result<Plan>,
) -> Result<Code> {
    let emitted = driver.emit_kernels(sources, &MachineOptions::default(), |emitter, number, source| {
        emit_kernel(emitter, source, &kernel_name(number))
    })?;
    let (modules, kernels): (Vec<EmittedModule>, Vec<Vec<Kernel>>) = emitted.into_iter().unzip();
    let plan = plan(kernels.into_iter().flatten().collect())?;
    // The entry function consists mainly of calls, so the fastest code generation is good enough.
    let machine = MachineOptions { level: CodegenLevel::None, ..MachineOptions::default() };
    // It is generated first, because it is a single module that may take longer than any module of kernels.
    let write = |emitter: &Emitter<'_>| entry::emit(emitter, &plan);
    let (arguments, generated) = driver.generate_with(("entry", machine), write, modules)?;
    let mut texts = Vec::new();
    let mut objects = Vec::with_capacity(generated.len());
    for module in generated {
        texts.extend(module.text.map(|text| (format!("{}.ll", module.name), text)));
        objects.push(module.code);
    }
    let machine = MachineCode { objects, arguments };
    if !checks.is_empty() {
        let loaded = machine.link()?;
        for (number, overwrites) in checks {
            check_overwrites(&sources[*number], overwrites, &plan.kernels[*number], &loaded)?;
        }
    }
    Ok(Code { machine, texts })
}
