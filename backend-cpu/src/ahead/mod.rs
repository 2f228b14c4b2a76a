//! Ahead of time: a program as an object file that stands alone, with a header for C and C++.
//!
//! ```text
//! module ── passes for the target ── thunks ── refusals.rs: instructions that need what the object has not
//!    interface.rs   the structure of a call: pointers to arguments and results, the arena
//!    entry.rs       checks of the call, the table of addresses, then the thunks (program/sequence.rs)
//!    object.rs      the names that the object calls
//!    header.rs, bindings.rs, description.rs      NAME.h, NAME.rs, NAME.json
//!    archive.rs     libNAME.a, where that is asked for
//! ```
//!
//! One LLVM module holds kernels and entry, in which all names but the entry's are internal. All memory that a run
//! needs beside its arguments and results is in one piece, the arena, which the caller brings: temporary values,
//! scratch memory of kernels, the table of addresses.

mod archive;
mod bindings;
mod description;
mod entry;
mod header;
mod identifiers;
mod interface;
mod object;
mod refusals;

use std::collections::BTreeSet;

use xla_hlo::{Error, Opcode, Result, VerifiedModule};
use xla_llvm::codegen::CodeKind;
use xla_llvm::driver::{CodegenDriver, ModuleSize};
use xla_llvm::emitter::{EmitOptions, Scratch};
use xla_llvm::fused::{Kernel, KernelSource, emit_kernel};
use xla_llvm::target::{CodeGenerators, MachineOptions, Target, TargetSpec};
use xla_passes::buffers::BufferOptions;
use xla_passes::{EpilogueProfile, FusionProfile, TargetProfile};
use xla_service::compiler::AotFile;
use xla_service::dump::Dump;
use xla_service::host::HostTransfer;
use xla_service::thunks::ThunkProgram;
use xla_service::{AotCompilationOptions, Contraction, FallbackPolicy, HloPasses, OptimizedModule, optimize};

use crate::capabilities;
use crate::lowering::CpuLowering;
use crate::program::codegen::kernel_name;
use crate::program::sequence::Plan;
use interface::Interface;

/// Compiles a module to `NAME.o`, `NAME.h`, `NAME.rs` and `NAME.json`, and `libNAME.a` where that is asked for.
pub(crate) fn compile(
    module: VerifiedModule,
    options: &AotCompilationOptions,
    generators: CodeGenerators,
) -> Result<Vec<AotFile>> {
    let target = Target::of(&spec(options), generators)?;
    let names = identifiers::Names::new(options, module.name())?;
    let passes = HloPasses::for_level(options.compile.opt_level, profile(&target));
    let module = optimize(module, &passes, &options.compile, None)?.0;
    // What cannot be compiled is found below, all of it.
    let compile = xla_service::CompileOptions { host_fallback: FallbackPolicy::Allow, ..options.compile.clone() };
    let mut lowering = CpuLowering::self_contained(&module);
    let program = ThunkProgram::new(&module, &mut lowering, &HostTransfer, &BufferOptions::default(), &compile)?;
    refusals::check(&module, &program.sequence, &target)?;
    let (code, interface, text) = generate(&module, &program, lowering.kernels.sources(), &target, names, options)?;
    let externals = object::undefined(&code)?;
    let dump = Dump::new(&options.compile, &module);
    for (name, text) in program.dumps(&module).into_iter().chain(text.map(|text| ("object.ll".to_string(), text))) {
        dump.write(&name, || text)?;
    }
    let described = description::Described { interface: &interface, target: &target, externals: &externals };
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
    files.push(file("o", code));
    Ok(files)
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

/// The object file, the call that it takes, and its LLVM IR where that is asked for.
fn generate(
    module: &OptimizedModule,
    program: &ThunkProgram,
    sources: &[KernelSource<'_>],
    target: &Target,
    names: identifiers::Names,
    options: &AotCompilationOptions,
) -> Result<(Vec<u8>, Interface, Option<String>)> {
    let emission = EmitOptions {
        contract: options.contraction == Contraction::Allow,
        flush_denormals: options.compile.flush_denormals,
        scratch: Scratch::Caller,
        ..EmitOptions::default()
    };
    let driver = CodegenDriver {
        target,
        threads: 1,
        modules: ModuleSize::Fixed,
        with_texts: options.compile.dump_to.is_some(),
        emission,
        kind: CodeKind::Object,
    };
    let emit = |emitter: &xla_llvm::emitter::Emitter<'_>| {
        let kernel = |(number, source)| emit_kernel(emitter, source, &kernel_name(number));
        let kernels = sources.iter().enumerate().map(kernel).collect::<Result<Vec<Kernel>>>()?;
        for kernel in &kernels {
            emitter.make_internal(&kernel.name);
        }
        let scratch = kernels.iter().map(|kernel| kernel.scratch_bytes).max().unwrap_or_default();
        let plan = Plan {
            sequence: program.sequence.clone(),
            kernels,
            library_calls: Vec::new(),
            host_calls: Vec::new(),
            threads: 1,
            profile: false,
            self_contained: true,
        };
        let mut interface = Interface::new(module, program, names, scratch)?;
        entry::emit(emitter, &plan, (module, program), &mut interface)?;
        Ok(interface)
    };
    let (emitted, interface) = driver.emit("object", MachineOptions::default(), emit)?;
    let generated = driver.generate(vec![emitted])?.pop();
    let generated = generated.ok_or_else(|| Error::internal("no code was generated"))?;
    Ok((generated.code, interface, generated.text))
}
