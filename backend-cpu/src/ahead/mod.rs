//! Ahead of time: programs as an object file that stands alone, with a header for C and C++.
//!
//! ```text
//! each module ── passes for the target ── thunks ── refusals.rs: instructions that need what the object has not
//!    interface.rs   the structure of a call: pointers to arguments and results, the arena
//!    entry.rs       checks of the call, the table of addresses, then the thunks (program/sequence.rs)
//!    constants.rs   large constants as a file to map, where that is asked for
//!    externals.rs   custom calls that are functions of the application
//!    object.rs      the names that the object calls
//!    header.rs, bindings.rs, description.rs      NAME.h, NAME.rs, NAME.json
//!    archive.rs, cmake.rs      libNAME.a and NAME.cmake, where they are asked for
//! ```
//!
//! One LLVM module holds kernels and entries of all programs, and their constants, of which equal ones are one; all
//! names but the entries' are internal. All memory that a run needs beside its arguments and results is in one piece,
//! the arena, which the caller brings: temporary values, scratch memory of kernels, the table of addresses.

mod archive;
mod bindings;
mod cmake;
mod constants;
mod description;
mod entry;
mod externals;
mod header;
mod identifiers;
mod interface;
mod object;
mod refusals;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use xla_hlo::{Error, Opcode, Result, VerifiedModule};
use xla_llvm::codegen::CodeKind;
use xla_llvm::driver::{CodegenDriver, ModuleSize};
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{Kernel, KernelTable, emit_kernel};
use xla_llvm::target::{CodeGenerators, MachineOptions, Target, TargetSpec};
use xla_passes::buffers::BufferOptions;
use xla_passes::{FusionProfile, TargetProfile};
use xla_service::compiler::AotFile;
use xla_service::dump::Dump;
use xla_service::host::HostTransfer;
use xla_service::thunks::ThunkProgram;
use xla_service::{
    AotCompilationOptions, AotExtra, CompileOptions, ConstantsIn, Contraction, FallbackPolicy, HloPasses, Optimize,
    OptimizedModule, optimize,
};

use crate::capabilities;
use crate::lowering::CpuLowering;
use crate::program::sequence::Plan;
use constants::{Constants, ConstantsFile};
use externals::Externals;
use interface::{Extras, Interface};
use xla_cpu_runtime::LibraryCall;

/// Bytes of the largest stack frame, where nothing else is said: a thread of musl has 128 KiB, a page of wasm 64.
const STACK_LIMIT: u32 = 16 << 10;

/// Compiles modules to `NAME.o`, `NAME.h`, `NAME.rs` and `NAME.json`, and what else is asked for.
pub(crate) fn compile(
    modules: Vec<VerifiedModule>,
    options: &AotCompilationOptions,
    generators: CodeGenerators,
) -> Result<Vec<AotFile>> {
    let target = Target::of(&spec(options), generators)?;
    let threads = threads(options)?;
    let names = identifiers::Names::new(options, modules.iter().map(|module| module.name()))?;
    let externals = Externals::new(options, &names.entries)?;
    let several = modules.len() > 1;
    let of = |error: Error, name: &str| if several { error.context(format!("program {name}")) } else { error };
    let optimized = modules.into_iter().zip(&names.entries).map(|(module, name)| {
        let passes = HloPasses::for_level(options.compile.opt_level, profile(&target, threads));
        Ok(optimize(module, &passes, &options.compile, None).map_err(|error| of(error, name))?.0)
    });
    let optimized: Vec<OptimizedModule> = optimized.collect::<Result<_>>()?;
    let programs = optimized.iter().zip(&names.entries).map(|(module, name)| {
        Program::new(module, name, (&target, &externals), options).map_err(|error| of(error, name))
    });
    let mut programs: Vec<Program<'_>> = programs.collect::<Result<_>>()?;
    let mut file = ConstantsFile::new(target.is_big_endian());
    if options.constants == ConstantsIn::File {
        for program in &mut programs {
            program.places = file.add(program.module, &program.thunks)?;
        }
    }
    let (data, constants) = file.finish();
    let job = Job { programs, constants, externals: &externals, target: &target, threads, options };
    let (code, interfaces, text) = job.generate(CodeKind::Object)?;
    let functions = externals::joined(interfaces.iter().map(|interface| &interface.functions[..]));
    let undefined = object::undefined(&code, &externals::names(&functions))?;
    job.dump(&text)?;
    let described = description::Described {
        names: &names,
        interfaces: &interfaces,
        functions: &functions,
        constants: Some(constants).filter(|_| options.constants == ConstantsIn::File),
        target: &target,
        undefined: &undefined,
    };
    let name = &names.object;
    let file = |ending: &str, bytes| AotFile { name: format!("{name}.{ending}"), bytes };
    let mut files = vec![
        file("h", header::text(&described)?.into_bytes()),
        file("json", description::json(&described)?),
        file("rs", bindings::text(&described).into_bytes()),
    ];
    if options.constants == ConstantsIn::File {
        files.push(file("bin", data));
    }
    if options.archive {
        files.push(AotFile { name: archive::name(name, &target), bytes: archive::of(&code, name, &target)? });
    }
    for extra in &options.extras {
        files.push(match extra {
            AotExtra::Assembly => file("s", job.generate(CodeKind::Assembly)?.0),
            AotExtra::Ir => file("ll", text.clone().unwrap_or_default().into_bytes()),
            AotExtra::Cmake => file("cmake", cmake::text(name).into_bytes()),
        });
    }
    files.push(file("o", code));
    Ok(files)
}

/// Name of a program's kernel, both by their numbers; no function of C has such a name.
fn kernel_name(program: usize, kernel: usize) -> String {
    format!("kernel.{program}.{kernel}")
}

/// Threads that a call of a program may use.
fn threads(options: &AotCompilationOptions) -> Result<usize> {
    let threads = options.threads.map_or(1, NonZeroUsize::get);
    if threads > AotCompilationOptions::MOST_THREADS {
        let most = AotCompilationOptions::MOST_THREADS;
        return Err(Error::invalid_argument(format!("a call may use {most} threads at most, not {threads}")));
    }
    Ok(threads)
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

/// The target without a library beside it: factorizations and Fourier transforms in terms of other operations.
fn profile(target: &Target, threads: usize) -> TargetProfile {
    let profile = capabilities::profile(target, threads);
    TargetProfile {
        lacks: BTreeSet::from([Opcode::Cholesky, Opcode::TriangularSolve, Opcode::Fft]),
        fusion: FusionProfile { epilogues: capabilities::tile_epilogues(), ..profile.fusion },
        ..profile
    }
}

/// A program that waits for its code.
struct Program<'a> {
    /// Name of its entry.
    name: &'a str,
    module: &'a OptimizedModule,
    thunks: ThunkProgram,
    kernels: KernelTable<'a>,
    library_calls: Vec<LibraryCall>,
    /// Places in the file of constants that are there, by allocation.
    places: Vec<Option<u64>>,
}

impl<'a> Program<'a> {
    fn new(
        module: &'a OptimizedModule,
        name: &'a str,
        (target, externals): (&Target, &Externals),
        options: &AotCompilationOptions,
    ) -> Result<Program<'a>> {
        // What cannot be compiled is found below, all of it.
        let compile = CompileOptions { host_fallback: FallbackPolicy::Allow, ..options.compile.clone() };
        let mut lowering = CpuLowering::self_contained(module);
        let thunks = ThunkProgram::new(module, &mut lowering, &HostTransfer, &BufferOptions::default(), &compile)?;
        refusals::check(module, &thunks.sequence, target, externals)?;
        let CpuLowering { kernels, library_calls, .. } = lowering;
        Ok(Program { name, module, thunks, kernels, library_calls, places: Vec::new() })
    }
}

/// Programs of one object.
struct Job<'a> {
    programs: Vec<Program<'a>>,
    /// The file of constants.
    constants: Constants,
    externals: &'a Externals,
    target: &'a Target,
    /// Threads that a call may use.
    threads: usize,
    options: &'a AotCompilationOptions,
}

impl Job<'_> {
    /// The object file or assembly, the calls that it takes, and its LLVM IR where that is asked for.
    fn generate(&self, kind: CodeKind) -> Result<(Vec<u8>, Vec<Interface>, Option<String>)> {
        let options = self.options;
        let bytes = self.programs.iter().map(|program| program.thunks.assignment.total_bytes());
        let emission = EmitOptions {
            contract: options.contraction == Contraction::Allow,
            flush_denormals: options.compile.flush_denormals,
            optimize: options.optimize,
            stack_limit: Some(options.stack_limit.unwrap_or(STACK_LIMIT)),
            threads: self.threads,
            prefetch: options.optimize == Optimize::Speed && bytes.max().is_some_and(capabilities::reads_main_memory),
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
        let (emitted, interfaces) = driver.emit("object", MachineOptions::default(), |emitter| {
            self.programs
                .iter()
                .enumerate()
                .map(|(number, program)| self.emit(emitter, number, program))
                .collect::<Result<Vec<Interface>>>()
        })?;
        let generated = driver.generate(vec![emitted]).map_err(|error| self.explain(error))?.pop();
        let generated = generated.ok_or_else(|| Error::internal("no code was generated"))?;
        Ok((generated.code, interfaces, generated.text))
    }

    /// Writes kernels and entry of a program.
    fn emit(&self, emitter: &Emitter<'_>, number: usize, program: &Program<'_>) -> Result<Interface> {
        let Program { name, module, thunks, library_calls, places, .. } = program;
        let kernel = |(index, source)| emit_kernel(emitter, source, &kernel_name(number, index));
        let kernels = program.kernels.sources().iter().enumerate().map(kernel).collect::<Result<Vec<Kernel>>>()?;
        for kernel in &kernels {
            emitter.make_internal(&kernel.name);
        }
        let plan = Plan {
            sequence: thunks.sequence.clone(),
            kernels,
            library_calls: library_calls.clone(),
            host_calls: Vec::new(),
            external_calls: self.externals.calls(module, &thunks.sequence)?,
            threads: self.threads,
            profile: false,
            self_contained: true,
        };
        let functions = self.externals.functions(module, &thunks.sequence);
        let extras = Extras { constants: self.constants, places, functions, threads: self.threads };
        let mut interface = Interface::new((module, thunks), name.to_string(), extras, plan.scratch_bytes())?;
        entry::emit(emitter, &plan, (module, thunks), &mut interface)?;
        interface.check_memory(self.target.pointer_bytes().into(), self.options.compile.memory_limit)?;
        Ok(interface)
    }

    /// Names the instruction whose kernel takes too much of the stack.
    fn explain(&self, error: Error) -> Error {
        let Error::ResourceExhausted(text) = &error else { return error };
        let text = text.to_string();
        let is_named = |number, index| text.contains(&format!("'{}'", kernel_name(number, index)));
        let sources = self.programs.iter().enumerate().flat_map(|(number, program)| {
            program.kernels.sources().iter().enumerate().map(move |(index, source)| (number, index, source))
        });
        let source = sources.into_iter().find(|&(number, index, _)| is_named(number, index));
        let of = source.map_or_else(String::new, |(_, _, source)| {
            let root = &source.module[source.computation][source.root];
            format!(" of %{} ({})", root.name(), root.opcode())
        });
        Error::resource_exhausted(format!("the code{of} takes more of the stack than is allowed: {text}"))
    }

    /// Writes what was asked for by `dump_to`; the code beside the first program's.
    fn dump(&self, text: &Option<String>) -> Result<()> {
        for (number, Program { module, thunks, .. }) in self.programs.iter().enumerate() {
            let dump = Dump::new(&self.options.compile, module);
            let code = text.clone().filter(|_| number == 0).map(|text| ("object.ll".to_string(), text));
            for (name, text) in thunks.dumps(module).into_iter().chain(code) {
                dump.write(&name, || text)?;
            }
        }
        Ok(())
    }
}
