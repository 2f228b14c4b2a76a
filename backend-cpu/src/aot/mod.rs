//! Ahead-of-time compilation: programs as a self-contained object file, with bindings for C, C++ and Rust.
//!
//! ```text
//! each module ── passes for the target ── thunks ── refusals.rs: rejects instructions that need a runtime
//!    interface.rs   call structure: pointers to arguments and results, the arena
//!    entry.rs       checks of the call, the address table, then the thunks (program/sequence.rs)
//!    processor.rs   check of the processor, dispatch to the entry for its level
//!    constants.rs   large constants as a file to map, if requested
//!    externals.rs   custom calls as functions of the application
//!    object.rs      undefined symbols of the object
//!    header.rs, bindings.rs, description.rs      NAME.h, NAME.rs, NAME.json
//!    archive.rs, cmake.rs      libNAME.a and NAME.cmake, if requested
//! ```
//!
//! One LLVM module contains the kernels, entries and constants of all programs; equal constants are merged. All symbols
//! except the entries are internal. An object for several processors contains this code once per processor, with a
//! single header. A run needs one memory in addition to its arguments and results, the arena, which the caller
//! provides. It holds temporary values, the kernels' scratch memory and the address table.

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
mod processor;
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
use processor::Levels;
use xla_cpu_runtime::LibraryCall;

/// Default limit of a stack frame in bytes: a thread of musl has 128 KiB of stack, a page of wasm has 64 KiB.
const STACK_LIMIT: u32 = 16 << 10;

/// Compiles modules to `NAME.o`, `NAME.h`, `NAME.rs` and `NAME.json`, and to the other requested files.
pub(crate) fn compile(
    modules: Vec<VerifiedModule>,
    options: &AotCompilationOptions,
    generators: CodeGenerators,
) -> Result<Vec<AotFile>> {
    let targets = targets(options, generators)?;
    let levels = Levels::new(&targets)?;
    let threads = threads(options)?;
    let names = identifiers::Names::new(options, modules.iter().map(|module| module.name()))?;
    let externals = Externals::new(options, &names.entries)?;
    let optimized = optimized(&modules, &names.entries, (&targets, threads), options)?;
    let mut parts = programs(&optimized, &names.entries, (&targets, &levels, &externals), options)?;
    let mut file = ConstantsFile::new(targets[0].is_big_endian());
    if options.constants == ConstantsIn::File {
        for program in parts.iter_mut().flatten() {
            program.places = file.add(program.module, &program.thunks)?;
        }
    }
    let (data, constants) = file.finish();
    let job = Job {
        parts,
        constants,
        externals: &externals,
        targets: &targets,
        levels,
        names: &names,
        threads,
        options,
        generators,
    };
    let (code, interfaces, text) = job.generate(CodeKind::Object)?;
    let functions = externals::joined(interfaces.iter().map(|interface| &interface.functions[..]));
    let (code, undefined) = object::finish(code, &externals::names(&functions))?;
    job.dump(&text)?;
    let described = description::Described {
        names: &names,
        interfaces: &interfaces,
        functions: &functions,
        constants: Some(constants).filter(|_| options.constants == ConstantsIn::File),
        targets: &targets,
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
        files.push(AotFile { name: archive::name(name, &targets[0]), bytes: archive::of(&code, name, &targets[0])? });
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

/// Runs the passes on all modules, for each target.
fn optimized(
    modules: &[VerifiedModule],
    names: &[String],
    (targets, threads): (&[Target], usize),
    options: &AotCompilationOptions,
) -> Result<Vec<Vec<OptimizedModule>>> {
    let for_target = |(level, target): (usize, &Target)| {
        let compile = compile_options(options, level);
        let one = |(module, name): (&VerifiedModule, &String)| {
            let passes = HloPasses::for_level(compile.opt_level, profile(target, threads, compile.excess_precision));
            let optimized = optimize(module.clone(), &passes, &compile, None);
            Ok(optimized.map_err(|error| of_program(error, name, names))?.0)
        };
        modules.iter().zip(names).map(one).collect()
    };
    targets.iter().enumerate().map(for_target).collect()
}

/// Returns the options for one of the processors. If there are several, each has its own folder for dumps.
fn compile_options(options: &AotCompilationOptions, level: usize) -> CompileOptions {
    let folder = options.cpus.get(level).filter(|_| options.cpus.len() > 1);
    let dump_to = match (&options.compile.dump_to, folder) {
        (Some(directory), Some(cpu)) => Some(directory.join(cpu)),
        (directory, _) => directory.clone(),
    };
    CompileOptions { dump_to, ..options.compile.clone() }
}

/// Builds the programs, for each target.
fn programs<'a>(
    optimized: &'a [Vec<OptimizedModule>],
    names: &'a [String],
    (targets, levels, externals): (&[Target], &Levels, &Externals),
    options: &AotCompilationOptions,
) -> Result<Vec<Vec<Program<'a>>>> {
    let for_target = |(level, (modules, target)): (usize, (&'a Vec<OptimizedModule>, &Target))| {
        let one = |(module, name): (&'a OptimizedModule, &'a String)| {
            let program = Program::new(module, name, (target, externals), options);
            let program = program.map_err(|error| of_program(error, name, names))?;
            Ok(Program { symbol: levels.symbol(name, level), ..program })
        };
        modules.iter().zip(names).map(one).collect()
    };
    optimized.iter().zip(targets).enumerate().map(for_target).collect()
}

/// Adds the program's name to an error if there are several programs.
fn of_program(error: Error, name: &str, names: &[String]) -> Error {
    if names.len() > 1 { error.context(format!("program {name}")) } else { error }
}

/// Returns the name of a kernel, from the numbers of processor, program and kernel. C functions cannot have such names.
fn kernel_name(level: usize, program: usize, kernel: usize) -> String {
    match level {
        0 => format!("kernel.{program}.{kernel}"),
        level => format!("kernel.{program}.{kernel}.{level}"),
    }
}

/// Returns the maximum number of threads of one call.
fn threads(options: &AotCompilationOptions) -> Result<usize> {
    let threads = options.threads.map_or(1, NonZeroUsize::get);
    if threads > AotCompilationOptions::MOST_THREADS {
        let most = AotCompilationOptions::MOST_THREADS;
        return Err(Error::invalid_argument(format!("a call may use {most} threads at most, not {threads}")));
    }
    Ok(threads)
}

/// Returns one target for each requested processor, or the triple's baseline.
fn targets(options: &AotCompilationOptions, generators: CodeGenerators) -> Result<Vec<Target>> {
    if options.cpus.is_empty() {
        return Ok(vec![Target::of(&spec(options, None), generators)?]);
    }
    options.cpus.iter().map(|cpu| Target::of(&spec(options, Some(cpu.clone())), generators)).collect()
}

fn spec(options: &AotCompilationOptions, cpu: Option<String>) -> TargetSpec {
    TargetSpec {
        triple: options.target.clone(),
        cpu,
        features: options.features.clone(),
        abi: options.abi.clone(),
        relocation: options.relocation,
    }
}

/// Returns the profile of a target without the runtime library, on which the passes expand factorizations to other
/// operations.
fn profile(target: &Target, threads: usize, excess_precision: bool) -> TargetProfile {
    let profile = capabilities::profile(target, threads, excess_precision);
    TargetProfile {
        lacks: BTreeSet::from([Opcode::Cholesky, Opcode::TriangularSolve]),
        fusion: FusionProfile { epilogues: capabilities::tile_epilogues(), ..profile.fusion },
        ..profile
    }
}

/// Program before code generation.
struct Program<'a> {
    name: &'a str,
    /// Name of its entry for the processor.
    symbol: String,
    module: &'a OptimizedModule,
    thunks: ThunkProgram,
    kernels: KernelTable<'a>,
    library_calls: Vec<LibraryCall>,
    /// Offset in the constants file for each allocation that is stored there.
    places: Vec<Option<u64>>,
}

impl<'a> Program<'a> {
    fn new(
        module: &'a OptimizedModule,
        name: &'a str,
        (target, externals): (&Target, &Externals),
        options: &AotCompilationOptions,
    ) -> Result<Program<'a>> {
        // Allow the fallback here: `refusals::check` then reports all unsupported instructions in one error.
        let compile = CompileOptions { host_fallback: FallbackPolicy::Allow, ..options.compile.clone() };
        let mut lowering = CpuLowering::self_contained(module);
        let thunks = ThunkProgram::new(module, &mut lowering, &HostTransfer, &BufferOptions::default(), &compile)?;
        refusals::check(module, &thunks.sequence, target, externals)?;
        let CpuLowering { kernels, library_calls, .. } = lowering;
        Ok(Program { name, symbol: name.to_string(), module, thunks, kernels, library_calls, places: Vec::new() })
    }
}

/// Programs of one object.
struct Job<'a> {
    /// Programs, for each target.
    parts: Vec<Vec<Program<'a>>>,
    /// Constants file.
    constants: Constants,
    externals: &'a Externals,
    targets: &'a [Target],
    levels: Levels,
    names: &'a identifiers::Names,
    /// Maximum number of threads of one call.
    threads: usize,
    options: &'a AotCompilationOptions,
    generators: CodeGenerators,
}

impl Job<'_> {
    /// Generates the object file or assembly. Returns it with the interfaces of its programs and, if requested, the
    /// LLVM IR.
    fn generate(&self, kind: CodeKind) -> Result<(Vec<u8>, Vec<Interface>, Option<String>)> {
        let options = self.options;
        let bytes = self.parts.iter().flatten().map(|program| program.thunks.assignment.total_bytes());
        let emission = EmitOptions {
            contract: options.contraction == Contraction::Allow,
            round_each_operation: !options.compile.excess_precision,
            flush_denormals: options.compile.flush_denormals,
            optimize: options.optimize,
            stack_limit: Some(options.stack_limit.unwrap_or(STACK_LIMIT)),
            threads: self.threads,
            prefetch: options.optimize == Optimize::Speed && bytes.max().is_some_and(capabilities::reads_main_memory),
            ..EmitOptions::default()
        };
        // Each function has its own features; code outside of functions uses those of the baseline.
        let target = match self.targets {
            [target] => target.clone(),
            _ => Target::of(&TargetSpec { features: Vec::new(), ..spec(options, None) }, self.generators)?,
        };
        let driver = CodegenDriver {
            target: &target,
            threads: 1,
            modules: ModuleSize::Fixed,
            with_texts: options.compile.dump_to.is_some() || options.extras.contains(&AotExtra::Ir),
            emission,
            kind,
        };
        let emit = |emitter: &Emitter<'_>, level: usize| {
            if level == 0 {
                self.levels.emit(emitter, &self.names.entries)?;
            }
            let programs = self.parts[level].iter().enumerate();
            let emitted = programs.map(|(number, program)| self.emit(emitter, (level, number), program));
            emitted.collect::<Result<Vec<Interface>>>()
        };
        let (emitted, interfaces) = driver.emit_parts("object", MachineOptions::default(), self.targets, emit)?;
        let mut interfaces = interfaces.into_iter();
        let mut joined: Vec<Interface> = interfaces.next().unwrap_or_default();
        for level in interfaces {
            joined.iter_mut().zip(&level).try_for_each(|(interface, other)| interface.join(other))?;
        }
        let generated = driver.generate(vec![emitted]).map_err(|error| self.explain(error))?.pop();
        let generated = generated.ok_or_else(|| Error::internal("no code was generated"))?;
        Ok((generated.code, joined, generated.text))
    }

    /// Emits the kernels and the entry of a program.
    fn emit(&self, emitter: &Emitter<'_>, (level, number): (usize, usize), program: &Program<'_>) -> Result<Interface> {
        let Program { name, symbol, module, thunks, library_calls, places, .. } = program;
        let kernel = |(index, source)| emit_kernel(emitter, source, &kernel_name(level, number, index));
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
            self_contained: true,
        };
        let functions = self.externals.functions(module, &thunks.sequence);
        // The interface is the same for all processors.
        let of_levels = || self.parts.iter().filter_map(|programs| programs.get(number));
        let reads_file = of_levels().any(|program| program.places.iter().any(Option::is_some));
        let extras = Extras {
            constants: Some(self.constants).filter(|_| reads_file),
            places,
            written: &of_levels().flat_map(|program| interface::written(&program.thunks)).collect(),
            functions,
            threads: self.threads,
            checks_processor: self.levels.may_fail(),
        };
        let mut interface = Interface::new((module, thunks), name.to_string(), extras, plan.scratch_bytes())?;
        entry::emit(emitter, &plan, (module, thunks), (symbol, &mut interface))?;
        interface.check_memory(self.targets[0].pointer_bytes().into(), self.options.compile.memory_limit)?;
        Ok(interface)
    }

    /// Adds the instruction to the error about a kernel with too large a stack frame.
    fn explain(&self, error: Error) -> Error {
        let Error::ResourceExhausted(text) = &error else { return error };
        let text = text.to_string();
        let programs = self.parts.iter().enumerate().flat_map(|(level, programs)| {
            programs.iter().enumerate().map(move |(number, program)| (level, number, program))
        });
        let sources = programs.flat_map(|(level, number, program)| {
            let sources = program.kernels.sources().iter().enumerate();
            sources.map(move |(index, source)| (kernel_name(level, number, index), source))
        });
        let source = sources.into_iter().find(|(name, _)| text.contains(&format!("'{name}'")));
        let of = source.map_or_else(String::new, |(_, source)| {
            let root = &source.module[source.computation][source.root];
            format!(" of %{} ({})", root.name(), root.opcode())
        });
        Error::resource_exhausted(format!("the code{of} exceeds the limit of stack memory: {text}"))
    }

    /// Writes thunks and buffers of each program and processor to `dump_to`, and the LLVM IR of all of them once.
    fn dump(&self, text: &Option<String>) -> Result<()> {
        for (level, programs) in self.parts.iter().enumerate() {
            let options = compile_options(self.options, level);
            for Program { module, thunks, .. } in programs {
                let dump = Dump::new(&options, module);
                thunks.dumps(module).into_iter().try_for_each(|(name, text)| dump.write(&name, || text))?;
            }
        }
        let first = self.parts.iter().flatten().next();
        let Some((Program { module, .. }, text)) = first.zip(text.as_ref()) else { return Ok(()) };
        Dump::new(&self.options.compile, module).write("object.ll", || text.clone())
    }
}
