//! Ahead of time: a program as an object file that stands alone, with a header for C and C++.
//!
//! ```text
//! module ── passes for the target ── thunks ── refusals.rs: instructions that need what the object has not
//!    interface.rs   the structure of a call: pointers to arguments and results, the arena
//!    entry.rs       checks of the call, the table of addresses, then the thunks (program/sequence.rs)
//!    externals.rs   custom calls that are functions of the application
//!    object.rs      the names that the object calls
//!    header.rs, bindings.rs, description.rs      NAME.h, NAME.rs, NAME.json
//!    archive.rs, cmake.rs      libNAME.a and NAME.cmake, where they are asked for
//! ```
//!
//! One LLVM module holds kernels and entry, in which all names but the entry's are internal. All memory that a run
//! needs beside its arguments and results is in one piece, the arena, which the caller brings: temporary values,
//! scratch memory of kernels, the table of addresses.

mod archive;
mod bindings;
mod cmake;
mod description;
mod entry;
mod externals;
mod header;
mod identifiers;
mod interface;
mod object;
mod refusals;

use std::collections::BTreeSet;

use xla_hlo::{Error, Opcode, Result, VerifiedModule};
use xla_llvm::codegen::CodeKind;
use xla_llvm::driver::{CodegenDriver, ModuleSize};
use xla_llvm::emitter::{EmitOptions, Emitter, Scratch};
use xla_llvm::fused::{Kernel, KernelSource, emit_kernel};
use xla_llvm::target::{CodeGenerators, MachineOptions, Target, TargetSpec};
use xla_passes::buffers::BufferOptions;
use xla_passes::{EpilogueProfile, FusionProfile, TargetProfile};
use xla_service::compiler::AotFile;
use xla_service::dump::Dump;
use xla_service::host::HostTransfer;
use xla_service::thunks::ThunkProgram;
use xla_service::{AotCompilationOptions, AotExtra, Contraction, FallbackPolicy, HloPasses, OptimizedModule, optimize};

use crate::capabilities;
use crate::lowering::CpuLowering;
use crate::program::sequence::Plan;
use externals::Externals;
use interface::Interface;
use xla_cpu_runtime::LibraryCall;

/// Bytes of the largest stack frame, where nothing else is said: a thread of musl has 128 KiB, a page of wasm 64.
const STACK_LIMIT: u32 = 16 << 10;

/// Compiles a module to `NAME.o`, `NAME.h`, `NAME.rs` and `NAME.json`, and what else is asked for.
pub(crate) fn compile(
    module: VerifiedModule,
    options: &AotCompilationOptions,
    generators: CodeGenerators,
) -> Result<Vec<AotFile>> {
    let target = Target::of(&spec(options), generators)?;
    let names = identifiers::Names::new(options, module.name())?;
    let externals = Externals::new(options, &names.entry)?;
    let passes = HloPasses::for_level(options.compile.opt_level, profile(&target));
    let module = optimize(module, &passes, &options.compile, None)?.0;
    // What cannot be compiled is found below, all of it.
    let compile = xla_service::CompileOptions { host_fallback: FallbackPolicy::Allow, ..options.compile.clone() };
    let mut lowering = CpuLowering::self_contained(&module);
    let program = ThunkProgram::new(&module, &mut lowering, &HostTransfer, &BufferOptions::default(), &compile)?;
    refusals::check(&module, &program.sequence, &target, &externals)?;
    let job = Job {
        module: &module,
        program: &program,
        sources: lowering.kernels.sources(),
        library_calls: &lowering.library_calls,
        externals: &externals,
        target: &target,
        options,
    };
    let (code, interface, text) = job.generate(CodeKind::Object, &names)?;
    let undefined = object::undefined(&code, &externals::names(&interface.functions))?;
    let dump = Dump::new(&options.compile, &module);
    for (name, text) in
        program.dumps(&module).into_iter().chain(text.clone().map(|text| ("object.ll".to_string(), text)))
    {
        dump.write(&name, || text)?;
    }
    let described = description::Described { interface: &interface, target: &target, undefined: &undefined };
    let name = &interface.names.entry;
    let file = |ending: &str, bytes| AotFile { name: format!("{name}.{ending}"), bytes };
    let mut files = vec![
        file("h", header::text(&described).into_bytes()),
        file("json", description::json(&described)?),
        file("rs", bindings::text(&described).into_bytes()),
    ];
    if options.archive {
        files.push(AotFile { name: archive::name(name, &target), bytes: archive::of(&code, name, &target)? });
    }
    for extra in &options.extras {
        files.push(match extra {
            AotExtra::Assembly => file("s", job.generate(CodeKind::Assembly, &names)?.0),
            AotExtra::Ir => file("ll", text.clone().unwrap_or_default().into_bytes()),
            AotExtra::Cmake => file("cmake", cmake::text(name).into_bytes()),
        });
    }
    files.push(file("o", code));
    Ok(files)
}

/// A kernel's name, which is none that a function of C has.
fn kernel_name(number: usize) -> String {
    format!("kernel.{number}")
}

fn spec(options: &AotCompilationOptions) -> TargetSpec {
    TargetSpec {
        triple: options.target.clone(),
        cpu: options.cpu.clone(),
        features: options.features.clone(),
        abi: options.abi.clone(),
        relocation: options.relocation,
    }
}

/// The target without a library beside it: one thread, and factorizations and Fourier transforms in terms of other
/// operations.
fn profile(target: &Target) -> TargetProfile {
    let profile = capabilities::profile(target, 1);
    TargetProfile {
        lacks: BTreeSet::from([Opcode::Cholesky, Opcode::TriangularSolve, Opcode::Fft]),
        fusion: FusionProfile { epilogues: EpilogueProfile::default(), ..profile.fusion },
        ..profile
    }
}

/// A program that waits for its code.
struct Job<'a> {
    module: &'a OptimizedModule,
    program: &'a ThunkProgram,
    sources: &'a [KernelSource<'a>],
    library_calls: &'a [LibraryCall],
    externals: &'a Externals,
    target: &'a Target,
    options: &'a AotCompilationOptions,
}

impl Job<'_> {
    /// The object file or assembly, the call that it takes, and its LLVM IR where that is asked for.
    fn generate(&self, kind: CodeKind, names: &identifiers::Names) -> Result<(Vec<u8>, Interface, Option<String>)> {
        let options = self.options;
        let emission = EmitOptions {
            contract: options.contraction == Contraction::Allow,
            flush_denormals: options.compile.flush_denormals,
            scratch: Scratch::Caller,
            optimize: options.optimize,
            stack_limit: Some(options.stack_limit.unwrap_or(STACK_LIMIT)),
            ..EmitOptions::default()
        };
        let driver = CodegenDriver {
            target: self.target,
            threads: 1,
            modules: ModuleSize::Fixed,
            with_texts: options.compile.dump_to.is_some() || options.extras.contains(&AotExtra::Ir),
            emission,
            kind,
        };
        let (emitted, interface) =
            driver.emit("object", MachineOptions::default(), |emitter| self.emit(emitter, names))?;
        let generated = driver.generate(vec![emitted]).map_err(|error| self.explain(error))?.pop();
        let generated = generated.ok_or_else(|| Error::internal("no code was generated"))?;
        Ok((generated.code, interface, generated.text))
    }

    /// Writes kernels and entry.
    fn emit(&self, emitter: &Emitter<'_>, names: &identifiers::Names) -> Result<Interface> {
        let kernel = |(number, source)| emit_kernel(emitter, source, &kernel_name(number));
        let kernels = self.sources.iter().enumerate().map(kernel).collect::<Result<Vec<Kernel>>>()?;
        for kernel in &kernels {
            emitter.make_internal(&kernel.name);
        }
        let scratch = kernels.iter().map(|kernel| kernel.scratch_bytes).max().unwrap_or_default();
        let plan = Plan {
            sequence: self.program.sequence.clone(),
            kernels,
            library_calls: self.library_calls.to_vec(),
            host_calls: Vec::new(),
            external_calls: self.externals.calls(self.module, &self.program.sequence)?,
            threads: 1,
            profile: false,
            self_contained: true,
        };
        let functions = self.externals.functions(self.module, &self.program.sequence);
        let mut interface = Interface::new((self.module, self.program), names.clone(), functions, scratch)?;
        entry::emit(emitter, &plan, (self.module, self.program), &mut interface)?;
        interface.check_memory(self.target.pointer_bytes().into(), self.options.compile.memory_limit)?;
        Ok(interface)
    }

    /// Names the instruction whose kernel takes too much of the stack.
    fn explain(&self, error: Error) -> Error {
        let Error::ResourceExhausted(text) = &error else { return error };
        let text = text.to_string();
        let quoted = |number| format!("'{}'", kernel_name(number));
        let source = (0..self.sources.len()).find(|&number| text.contains(&quoted(number)));
        let source = source.and_then(|number| self.sources.get(number));
        let of = source.map_or_else(String::new, |source| {
            let root = &source.module[source.computation][source.root];
            format!(" of %{} ({})", root.name(), root.opcode())
        });
        Error::resource_exhausted(format!("the code{of} takes more of the stack than is allowed: {text}"))
    }
}
