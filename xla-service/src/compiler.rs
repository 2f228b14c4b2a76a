//! Compiler trait: verified module to executable, just in time or ahead of time.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use xla_hlo::{Module, Result, VerifiedModule};
use xla_passes::{Pipeline, TargetProfile, stages};

use crate::executable::Executable;
use crate::options::{CompileOptions, OptLevel};

/// Compiles modules for one kind of device.
///
/// # Contract
///
/// - **Checked by the caller:** the module is verified; every computation has a root, shapes agree, the call graph is a
///   tree of finite depth. A compiler finding otherwise says [`xla_hlo::Error::Internal`].
/// - **Unsupported operations** are [`xla_hlo::Error::Unimplemented`], naming the instruction and the platform. They
///   are never compiled into something else.
/// - **No device needed.** Compiling works on machines without the device; only running needs it.
/// - **Threads.** Several modules may be compiled at the same time. Results depend on the arguments alone: no flag,
///   environment variable or earlier compilation changes them.
pub trait Compiler: Send + Sync + fmt::Debug {
    /// Rewrites the module for this device: simplify, fuse, lay out, schedule, whatever [`Compiler::run_backend`] wants
    /// to see.
    ///
    /// Parameters and results keep number, element types and dimensions; layouts left open become those of the device.
    fn run_hlo_passes(&self, module: VerifiedModule, options: &CompileOptions) -> Result<OptimizedModule>;

    /// Makes an executable of a module that this compiler's [`Compiler::run_hlo_passes`] returned.
    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>>;

    /// The passes that [`Compiler::run_hlo_passes`] runs, for tools that show them, cut them short or find the one that
    /// breaks a program; `None` for a compiler that leaves modules as they are or does not use [`xla_passes`].
    fn passes(&self, options: &CompileOptions) -> Result<Option<HloPasses>> {
        let _ = options;
        Ok(None)
    }

    /// The ability to compile to files, if this compiler has it.
    fn ahead_of_time(&self) -> Option<&dyn AheadOfTimeCompiler> {
        None
    }

    /// The loader of programs that [`crate::executable::SerializeExecutable`] wrote, if this compiler has one.
    fn loader(&self) -> Option<&dyn LoadExecutable> {
        None
    }
}

/// A compiler's passes, and the target profile that they get; [`crate::optimize`] runs them.
pub struct HloPasses {
    /// The passes in order.
    pub pipeline: Pipeline,
    /// The target.
    pub profile: TargetProfile,
}

impl HloPasses {
    /// The standard stages at this level of optimisation: all of them, or at [`OptLevel::O0`] those that programs
    /// cannot do without.
    pub fn for_level(level: OptLevel, profile: TargetProfile) -> HloPasses {
        let pipeline = match level {
            OptLevel::O0 => stages::needed(&profile),
            OptLevel::O1 | OptLevel::O2 | OptLevel::O3 => stages::standard(&profile),
        };
        HloPasses { pipeline, profile }
    }
}

/// A module after a compiler's passes. A type of its own, so that [`Compiler::run_backend`] cannot be handed a raw
/// module.
#[derive(Clone, Debug)]
pub struct OptimizedModule(VerifiedModule);

impl OptimizedModule {
    /// Says that the module has been through the passes of the compiler that calls this.
    pub fn new(module: VerifiedModule) -> OptimizedModule {
        OptimizedModule(module)
    }

    /// Takes the module out.
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

/// Optional ability: compile to files for a machine that may be another one.
pub trait AheadOfTimeCompiler: Send + Sync {
    /// Runs the passes for the target of the options, which may be another one than that of
    /// [`Compiler::run_hlo_passes`], and compiles the modules to files: one or more, which are entries of one object.
    ///
    /// The files depend on modules and options alone: not on the machine that compiles, nor on the threads that it
    /// compiles with. A target that does not exist is [`xla_hlo::Error::InvalidArgument`], and so are several modules
    /// where the compiler's files hold one.
    fn compile_ahead_of_time(
        &self,
        modules: Vec<VerifiedModule>,
        options: &AotCompilationOptions,
    ) -> Result<Vec<AotFile>>;
}

/// Targets of ahead-of-time compilation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AotCompilationOptions {
    /// The options of every compilation. [`CompileOptions::threads`] are those that compile.
    pub compile: CompileOptions,
    /// Target triple, such as `aarch64-unknown-linux-gnu`; `None` for the machine that compiles.
    pub target: Option<String>,
    /// Processor names as the compiler's back end knows them; none for the target's baseline (not the compiling
    /// machine's own). An object for several has code for each, and runs that for the last one whose features the
    /// processor has: name the oldest one first.
    pub cpus: Vec<String>,
    /// Processor features to add (`+avx2`) or take away (`-avx512f`), in order.
    pub features: Vec<String>,
    /// ABI, by the code generator's name for it, where the triple leaves a choice; `None` for the usual one.
    pub abi: Option<String>,
    /// The way in which code refers to code and data.
    pub relocation: Relocation,
    /// Whether a multiplication and an addition of two instructions may be rounded once.
    pub contraction: Contraction,
    /// Names of the entry functions, one for each module; none for the modules' names made into identifiers.
    pub symbols: Vec<String>,
    /// Stem of the file names; `None` for the name of the first entry function.
    pub name: Option<String>,
    /// Namespace of what a header declares in C++, such as `robot::vision`; `None` for the global one.
    pub namespace: Option<String>,
    /// Goal of the code.
    pub optimize: Optimize,
    /// Threads that one call of a program may use, of those that the caller has: at most
    /// [`MOST_THREADS`](AotCompilationOptions::MOST_THREADS). `None` for its own alone.
    pub threads: Option<NonZeroUsize>,
    /// Bytes of a stack frame from which on a program is refused; `None` for 16 KiB.
    pub stack_limit: Option<u32>,
    /// The place of large constants.
    pub constants: ConstantsIn,
    /// Whether there is to be a static library of the object file, as build systems link it.
    pub archive: bool,
    /// Files for people and build systems.
    pub extras: Vec<AotExtra>,
    /// Custom calls that become calls of the application's own functions.
    pub externals: Vec<ExternalCall>,
    /// The assembler of the backend's output, for backends that leave it to another program.
    pub assembler: Assembler,
}

impl AotCompilationOptions {
    /// The most threads that one call of a program may use.
    pub const MOST_THREADS: usize = 1024;
}

/// A custom call that is a call of a C function, which whoever links the object has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExternalCall {
    /// The custom call's target.
    pub target: String,
    /// The function's name; `None` for that of the target.
    pub symbol: Option<String>,
}

/// The way in which code refers to code and data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Relocation {
    /// By distance, so that it runs at any address: shared libraries, and programs of most systems.
    #[default]
    Pic,
    /// By address, which the linker knows: kernels, firmware.
    Static,
}

/// Goal of generated code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Optimize {
    /// Being done soon.
    #[default]
    Speed,
    /// Being small.
    Size,
}

/// The place of large constants of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConstantsIn {
    /// The object.
    #[default]
    Object,
    /// A file beside it, whose contents the caller maps or reads.
    File,
}

/// A file beside an object, for people or build systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AotExtra {
    /// The code as the target's assembly.
    Assembly,
    /// The code as the code generator gets it; LLVM IR.
    Ir,
    /// A target of CMake, which others link.
    Cmake,
}

/// Whether a multiplication and an addition of two instructions may be rounded once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Contraction {
    /// On targets with fused multiply-add.
    #[default]
    Allow,
    /// Each instruction rounds.
    Forbid,
}

/// A program that makes machine code of assembly; for GPUs of NVIDIA `ptxas`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Assembler {
    /// The usual one, if it is installed; else the machine that loads the program makes the machine code.
    #[default]
    IfFound,
    /// That one.
    At(PathBuf),
    /// None: the machine that loads the program makes the machine code.
    None,
}

/// A file that an ahead-of-time compilation made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AotFile {
    /// File name without a directory: `model.o`, `model.h`.
    pub name: String,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// Optional ability: load executables that were serialised before.
pub trait LoadExecutable: Send + Sync {
    /// Loads an executable. Bytes that are truncated, garbled, of another version or for another machine are
    /// [`xla_hlo::Error::InvalidArgument`], saying which.
    ///
    /// The bytes may hold machine code, which is run as it is: the caller vouches for their origin. The checks find
    /// accidents, not attacks.
    fn load(&self, bytes: &[u8], options: &CompileOptions) -> Result<Arc<dyn Executable>>;

    /// Dependencies of the code in a serialised program beside module and options, such as the processor and the
    /// version of the code generator: programs are kept on disk under it. `None` where loading compiles again, so that
    /// keeping them gains nothing.
    fn cache_target(&self) -> Option<String>;

    /// Whether a serialised program holds machine code for the host, which [`load`](LoadExecutable::load) makes part of
    /// this process. The `xla` command loads such a file only where its user names the platform. `true` unless a
    /// backend says otherwise: `false` is right for programs that are compiled again and for code that runs on a device
    /// alone.
    fn holds_host_code(&self) -> bool {
        true
    }
}
