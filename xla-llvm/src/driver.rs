//! Code-generation driver: kernels to code, in a few LLVM modules that are emitted and compiled side by side.

use xla_hlo::Result;

use crate::codegen::{CodeKind, Unit};
use crate::emitter::{EmitOptions, Emitter};
use crate::fused::Kernel;
use crate::parallel;
use crate::target::{MachineOptions, Target};

/// Kernels in one LLVM module: as many as amortise its fixed cost, as few as keep all threads busy.
const KERNELS_A_MODULE: usize = 8;

/// Number of kernels in one LLVM module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleSize {
    /// Few enough for every thread to have a module.
    ByThreads,
    /// As many whatever the number of threads, so that the code depends on the program alone.
    Fixed,
}

/// A code generation of one program: target and options.
pub struct CodegenDriver<'t> {
    /// Target of all modules.
    pub target: &'t Target,
    /// Number of threads that generate code.
    pub threads: usize,
    /// Number of kernels in one LLVM module.
    pub modules: ModuleSize,
    /// Whether the LLVM IR is kept.
    pub with_texts: bool,
    /// Options of the emission.
    pub emission: EmitOptions,
    /// Form of the code.
    pub kind: CodeKind,
}

/// An LLVM module that waits for its code.
pub struct EmittedModule {
    /// Name, also of its files.
    pub name: String,
    /// Options of its code generation.
    pub machine: MachineOptions,
    unit: Unit,
    text: Option<String>,
}

/// The code of one LLVM module.
pub struct GeneratedModule {
    /// Name, also of its files.
    pub name: String,
    /// Object file or assembly.
    pub code: Vec<u8>,
    /// LLVM IR, where it is kept, with the strategy of each kernel in comments.
    pub text: Option<String>,
}

impl CodegenDriver<'_> {
    /// Emits kernels, a few in each module, in parallel: `emit` writes the kernel of a source with that number. Returns
    /// the modules, named `kernels.N`, each with its kernels; all are in the order of the sources.
    pub fn emit_kernels<S: Sync>(
        &self,
        sources: &[S],
        machine: &MachineOptions,
        emit: impl Fn(&Emitter<'_>, usize, &S) -> Result<Kernel> + Sync,
    ) -> Result<Vec<(EmittedModule, Vec<Kernel>)>> {
        let chunk = match self.modules {
            ModuleSize::ByThreads => sources.len().div_ceil(self.threads.max(1)).clamp(1, KERNELS_A_MODULE),
            ModuleSize::Fixed => KERNELS_A_MODULE,
        };
        let jobs = sources.chunks(chunk).enumerate().collect();
        parallel::map(jobs, self.threads, |(number, sources): (usize, &[S])| {
            let first = number * chunk;
            let _span = tracing::debug_span!("emit-kernels", first, count = sources.len()).entered();
            let write = || {
                self.emit(&format!("kernels.{number}"), machine.clone(), |emitter| {
                    let emit = |(i, source)| emit(emitter, first + i, source);
                    sources.iter().enumerate().map(emit).collect::<Result<Vec<Kernel>>>()
                })
            };
            // Fusions for threads are the large ones.
            let is_deep = self.target.simt().is_some();
            let (mut emitted, kernels) = if is_deep { parallel::on_deep_stack(write) } else { write() }?;
            let with_strategies = |text| kernels.iter().map(Kernel::comment).chain([text]).collect();
            emitted.text = emitted.text.map(with_strategies);
            Ok((emitted, kernels))
        })
    }

    /// Emits one module: what `write` writes into it. Returns it with the result of `write`.
    pub fn emit<R>(
        &self,
        name: &str,
        machine: MachineOptions,
        write: impl FnOnce(&Emitter<'_>) -> Result<R>,
    ) -> Result<(EmittedModule, R)> {
        let (unit, (text, result)) = Unit::emit(|context| {
            let emitter = Emitter::new(context, name, self.target, self.emission);
            let result = write(&emitter)?;
            let module = emitter.finish()?;
            let text = self.with_texts.then(|| module.print_to_string().to_string());
            Ok((module, (text, result)))
        })?;
        Ok((EmittedModule { name: name.to_string(), machine, unit, text }, result))
    }

    /// Generates the code of modules in parallel, in their order: put first what takes longest.
    ///
    /// Errors: those of [`Unit::generate`], the first one.
    pub fn generate(&self, modules: Vec<EmittedModule>) -> Result<Vec<GeneratedModule>> {
        parallel::map(modules, self.threads, |EmittedModule { name, machine, unit, text }| {
            let _span = tracing::debug_span!("machine-code", name).entered();
            let code = unit.generate(self.target, &machine, self.kind)?;
            Ok(GeneratedModule { name, code, text })
        })
    }
}
