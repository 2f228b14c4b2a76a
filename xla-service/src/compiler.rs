//! Compiler trait: compiles verified modules to executables, just in time or ahead of time.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use xla_hlo::{Module, Result, VerifiedModule};
use xla_passes::{Pipeline, TargetProfile, stages};

use crate::executable::Executable;
use crate::options::{CompileOptions, OptLevel};

/// Compiler for one kind of device.
///
/// # Contract
///
/// - **Checked by the caller:** the module is verified; every computation has a root, shapes agree, and the call graph
///   is a tree of finite depth. A compiler that finds a violation returns [`xla_hlo::Error::Internal`].
/// - **Unsupported operations** are [`xla_hlo::Error::Unimplemented`], naming the instruction and the platform. A
///   compiler never compiles them to anything else.
/// - **No device needed.** Compiling works on machines without the device; only running needs it.
/// - **Threads.** Several modules may be compiled at the same time. Results depend only on the arguments: no flag,
///   environment variable or earlier compilation changes them.
pub trait Compiler: Send + Sync + fmt::Debug {
    /// Rewrites the module for this device: simplifies, fuses, assigns layouts, schedules, as [`Compiler::run_backend`]
    /// requires.
    ///
    /// Parameters and results keep their number, element types and dimensions. Unspecified layouts become those of the
    /// device.
    fn run_hlo_passes(&self, module: VerifiedModule, options: &CompileOptions) -> Result<OptimizedModule>;

    /// Compiles a module that this compiler's [`Compiler::run_hlo_passes`] returned to an executable.
    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>>;

    /// Returns the passes that [`Compiler::run_hlo_passes`] runs, for tools that print them, stop after some of them,
    /// or bisect a miscompilation. `None` if the compiler does not rewrite modules or does not use [`xla_passes`].
    fn passes(&self, options: &CompileOptions) -> Result<Option<HloPasses>> {
        let _ = options;
        Ok(None)
    }

    /// Whether its executables run programs that several devices execute together, each on its own values: they
    /// return the replica and partition of [`ExecutionContext::logical_device`] as ids, and execute collectives among
    /// the devices of its launch. Otherwise the client joins such programs into one program for the first device.
    ///
    /// [`ExecutionContext::logical_device`]: crate::ExecutionContext::logical_device
    fn has_collectives(&self) -> bool {
        false
    }

    /// Whether all collectives reduce in the order of the ranks, as the evaluator does, so that sums of floats are
    /// equal on all platforms. Libraries of vendors choose an order themselves.
    fn reduces_in_rank_order(&self) -> bool {
        true
    }

    /// Returns the ability to compile to files, if this compiler has it.
    fn ahead_of_time(&self) -> Option<&dyn AheadOfTimeCompiler> {
        None
    }

    /// Returns the loader of programs that [`crate::executable::SerializeExecutable`] wrote, if this compiler has one.
    fn loader(&self) -> Option<&dyn LoadExecutable> {
        None
    }
}

/// Passes of a compiler and their target profile; [`crate::optimize`] runs them.
pub struct HloPasses {
    /// Passes in order.
    pub pipeline: Pipeline,
    /// Profile of the target.
    pub profile: TargetProfile,
}

impl HloPasses {
    /// Returns the standard stages for this optimisation level: all of them, or at [`OptLevel::O0`] only the stages
    /// that every program needs.
    pub fn for_level(level: OptLevel, profile: TargetProfile) -> HloPasses {
        let pipeline = match level {
            OptLevel::O0 => stages::needed(&profile),
            OptLevel::O1 | OptLevel::O2 | OptLevel::O3 => stages::standard(&profile),
        };
        HloPasses { pipeline, profile }
    }
}

/// Module after a compiler's passes. A separate type, so that [`Compiler::run_backend`] cannot receive an unprocessed
/// module.
#[derive(Clone, Debug)]
pub struct OptimizedModule(VerifiedModule);

impl OptimizedModule {
    /// Marks a module as processed by the calling compiler's passes.
    pub fn new(module: VerifiedModule) -> OptimizedModule {
        OptimizedModule(module)
    }

    /// Returns the module.
    pub fn into_inner(self) -> VerifiedModule {
        self.0
    }
}

impl std::ops::Deref for OptimizedModule {
    type Target = Module;
    fn deref(&self) -> &Module {
        &self.0
    }
}

/// Optional ability: compiles to files, possibly for another machine.
pub trait AheadOfTimeCompiler: Send + Sync {
    /// Runs the passes for the target of the options, which may differ from the target of [`Compiler::run_hlo_passes`],
    /// and compiles the modules to files. Several modules become entry functions of one object.
    ///
    /// The files depend only on modules and options, not on the compiling machine or its number of threads. Errors:
    /// [`xla_hlo::Error::InvalidArgument`] for an unknown target, and for several modules if the compiler's files hold
    /// only one.
    fn compile_ahead_of_time(
        &self,
        modules: Vec<VerifiedModule>,
        options: &AotCompilationOptions,
    ) -> Result<Vec<AotFile>>;
}

/// Options of ahead-of-time compilation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AotCompilationOptions {
    /// Options of every compilation. [`CompileOptions::threads`] is the number of threads that compile.
    pub compile: CompileOptions,
    /// Target triple, such as `aarch64-unknown-linux-gnu`; `None` for the compiling machine.
    pub target: Option<String>,
    /// Processor names as the code generator knows them; empty for the target's baseline (not the compiling machine's
    /// processor). An object for several processors contains code for each. It runs the code of the last processor in
    /// the list whose features are available, so list the oldest processor first.
    pub cpus: Vec<String>,
    /// Processor features to add (`+avx2`) or remove (`-avx512f`), in order.
    pub features: Vec<String>,
    /// ABI, by the code generator's name, for triples with several ABIs; `None` for the default one.
    pub abi: Option<String>,
    /// Relocation model of the code.
    pub relocation: Relocation,
    /// Whether a multiplication and an addition from separate instructions may be contracted to an FMA, with a single
    /// rounding.
    pub contraction: Contraction,
    /// Names of the entry functions, one for each module; empty to derive them from the modules' names.
    pub symbols: Vec<String>,
    /// Stem of the file names; `None` for the name of the first entry function.
    pub name: Option<String>,
    /// C++ namespace of the declarations in a header, such as `robot::vision`; `None` for the global one.
    pub namespace: Option<String>,
    /// Optimisation goal of the code.
    pub optimize: Optimize,
    /// Maximum number of the caller's threads that one call of a program may use; at most
    /// [`MOST_THREADS`](AotCompilationOptions::MOST_THREADS). `None` for the calling thread alone.
    pub threads: Option<NonZeroUsize>,
    /// Largest stack frame that is accepted, in bytes; `None` for 16 KiB.
    pub stack_limit: Option<u32>,
    /// Location of large constants.
    pub constants: ConstantsIn,
    /// Whether to produce a static library of the object file, for build systems.
    pub archive: bool,
    /// Additional files for readers and build systems.
    pub extras: Vec<AotExtra>,
    /// Custom calls that are compiled to calls of the application's own functions.
    pub externals: Vec<ExternalCall>,
    /// Assembler of the backend's output, for backends that rely on an external one.
    pub assembler: Assembler,
}

impl AotCompilationOptions {
    /// Maximum number of threads of one call of a program.
    pub const MOST_THREADS: usize = 1024;
}

/// Custom call that is compiled to a call of a C function, which the application links.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExternalCall {
    /// Target of the custom call.
    pub target: String,
    /// Name of the function; `None` for the target's name.
    pub symbol: Option<String>,
}

/// Relocation model: how code refers to code and data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Relocation {
    /// Position-independent code, for shared libraries, and for programs on most systems.
    #[default]
    Pic,
    /// Absolute addresses, resolved by the linker: kernels, firmware.
    Static,
}

/// Optimisation goal of generated code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Optimize {
    /// Minimal run time.
    #[default]
    Speed,
    /// Minimal code size.
    Size,
}

/// Location of large constants of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConstantsIn {
    /// In the object.
    #[default]
    Object,
    /// In a separate file, which the caller maps or reads.
    File,
}

/// Additional file next to an object, for readers or build systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AotExtra {
    /// Assembly code of the target.
    Assembly,
    /// Input of the code generator: LLVM IR.
    Ir,
    /// CMake target, for other projects to link.
    Cmake,
}

/// Whether a multiplication and an addition from separate instructions may be contracted to an FMA, with a single
/// rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Contraction {
    /// Contract on targets with fused multiply-add.
    #[default]
    Allow,
    /// Round after each instruction.
    Forbid,
}

/// Program that assembles the backend's output; `ptxas` for NVIDIA GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Assembler {
    /// The default assembler if it is installed; otherwise the loading machine assembles the program.
    #[default]
    IfFound,
    /// The assembler at this path.
    At(PathBuf),
    /// No assembler: the loading machine assembles the program.
    None,
}

/// File that an ahead-of-time compilation produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AotFile {
    /// File name without a directory: `model.o`, `model.h`.
    pub name: String,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// Optional ability: loads serialised executables.
pub trait LoadExecutable: Send + Sync {
    /// Loads an executable. [`xla_hlo::Error::InvalidArgument`] for bytes that are truncated, corrupted, of another
    /// version or for another machine; the message names the cause.
    ///
    /// The bytes may contain machine code, which runs unchanged: the caller is responsible for their origin. The checks
    /// detect accidents, not attacks.
    fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<Arc<dyn Executable>>;

    /// Returns the dependencies of a serialised program's code besides module and options, such as the processor and
    /// the version of the code generator. They are part of the key in the on-disk cache. `None` if loading compiles
    /// again, so that caching would save nothing.
    fn cache_target(&self) -> Option<String>;

    /// Whether a serialised program contains machine code for the host, which [`load`](LoadExecutable::load) maps into
    /// this process. The `xla` command loads such a file only if the user names the platform. Backends override the
    /// default `true` with `false` for programs that are compiled again, and for code that runs only on a device.
    fn holds_host_code(&self) -> bool {
        true
    }
}
