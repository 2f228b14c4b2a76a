//! Ahead-of-time compilation of programs in build scripts; the crate calls them as typed functions.
//!
//! ```toml
//! [build-dependencies]
//! xla-build = { path = "../this-repository/xla-build" }
//! ```
//!
//! In `build.rs`:
//!
//! ```text
//! fn main() {
//!     xla_build::Program::new("detect.hlo").compile();
//! }
//! ```
//!
//! ```text
//! // src/main.rs, or lib.rs, with or without the standard library
//! include!(concat!(env!("OUT_DIR"), "/detect.rs"));
//!
//! let (mut arena, mut scores) = (detect::Arena::new(), [0.0; 10]);
//! detect::run(&mut arena, &image, &mut scores);
//! ```
//!
//! The program is HLO or StableHLO, as text or serialized. It is compiled for the target that Cargo builds for, with
//! the features that Rust code may use there; `RUSTFLAGS="-C target-cpu=native"` applies to it too. Only the build
//! script links LLVM: the application gets an object file that needs no library.

#![warn(missing_docs)]

mod target;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use xla::cpu::{CodeGenerators, CpuOptions, platform_with};
use xla::service::{AotCompilationOptions, ConstantsIn, Contraction, ExternalCall, Optimize, write_files};
use xla::{Error, ModuleSource, Result, ResultExt, VerifiedModule};

pub use target::CargoTarget;

/// Builder for the compilation of a program, or of several into one object: files and options.
#[derive(Clone, Debug)]
pub struct Program {
    sources: Vec<PathBuf>,
    options: AotCompilationOptions,
}

/// Compiled program.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Name of the module in Rust, of the symbol, and of the files; of several programs, the name of the first.
    pub name: String,
    /// Folder of the output files: `NAME.rs` to include, `NAME.h`, `NAME.json`, `NAME.o`, and the library to link.
    pub folder: PathBuf,
}

impl Program {
    /// Selects the program in a file, whose path is relative to the package's folder. The file determines its name.
    pub fn new(source: impl Into<PathBuf>) -> Program {
        let options = AotCompilationOptions { archive: true, ..AotCompilationOptions::default() };
        Program { sources: Vec::new(), options }.and(source)
    }

    /// Adds a program to the same object; equal constants of all programs are stored once. The bindings have a module
    /// for each program; files and library keep the name of the first.
    #[must_use]
    pub fn and(mut self, source: impl Into<PathBuf>) -> Program {
        let source = source.into();
        let stem = source.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = stem.split('.').next().unwrap_or_default().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        self.options.symbols.push(name);
        self.sources.push(source);
        self
    }

    /// Sets the name of the program that was added last, instead of its file's name. It is a C name and must be unique
    /// in a link.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Program {
        if let Some(symbol) = self.options.symbols.last_mut() {
            *symbol = name.into();
        }
        self
    }

    /// Compiles for a processor, by its LLVM name. With several x86 processors, ordered from the oldest one on, the
    /// object has code for each and runs the last one that the processor supports.
    #[must_use]
    pub fn cpu(mut self, cpu: impl Into<String>) -> Program {
        self.options.cpus.push(cpu.into());
        self
    }

    /// Enables (`+avx2`) or disables (`-avx512f`) a feature of the processor, by its LLVM name.
    #[must_use]
    pub fn feature(mut self, feature: impl Into<String>) -> Program {
        self.options.features.push(feature.into());
        self
    }

    /// Rounds each product before it is added, even if the target has fused multiply-add.
    #[must_use]
    pub fn without_contraction(mut self) -> Program {
        self.options.contraction = Contraction::Forbid;
        self
    }

    /// Optimizes for code size instead of speed.
    #[must_use]
    pub fn small(mut self) -> Program {
        self.options.optimize = Optimize::Size;
        self
    }

    /// Lets a call share its work among `threads` threads. The caller supplies them: `run` takes a function that runs
    /// the parts.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Program {
        self.options.threads = Some(threads);
        self
    }

    /// Rejects a program if one of its functions needs more than `bytes` of stack; the default is 16 KiB.
    #[must_use]
    pub fn stack_limit(mut self, bytes: u32) -> Program {
        self.options.stack_limit = Some(bytes);
        self
    }

    /// Rejects a program that needs more than `bytes` of memory, arguments and results included.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Program {
        self.options.compile.memory_limit = Some(bytes);
        self
    }

    /// Writes large constants to `NAME.bin` next to the object instead of into it. The application maps this file; the
    /// bindings have a type for its contents.
    #[must_use]
    pub fn constants_in_file(mut self) -> Program {
        self.options.constants = ConstantsIn::File;
        self
    }

    /// Lowers custom calls of that target to calls of a C function of the same name, which the application defines:
    /// `#[unsafe(no_mangle)] unsafe extern "C" fn`, with the signature that the bindings and the C header declare.
    #[must_use]
    pub fn external(mut self, target: impl Into<String>) -> Program {
        self.options.externals.push(ExternalCall { target: target.into(), symbol: None });
        self
    }

    /// Lowers custom calls like [`Program::external`], to a function with another name.
    #[must_use]
    pub fn external_as(mut self, target: impl Into<String>, symbol: impl Into<String>) -> Program {
        self.options.externals.push(ExternalCall { target: target.into(), symbol: Some(symbol.into()) });
        self
    }

    /// Compiles in a build script: for Cargo's target, into `OUT_DIR`, and instructs Cargo to link the program. An
    /// error ends the build with its message.
    pub fn compile(self) -> Compiled {
        match self.compile_and_tell() {
            Ok(compiled) => compiled,
            // Cargo shows the output of a build script that fails.
            Err(error) => panic!("{error}"),
        }
    }

    fn compile_and_tell(&self) -> Result<Compiled> {
        let cargo = CargoTarget::from_env()?;
        let sources = self.sources.iter().map(|source| cargo.manifest_dir.join(source)).collect();
        let compiled = Program { sources, ..self.clone() }.compile_for(&cargo, &cargo.out_dir)?;
        let depends = self.sources.iter().map(|source| format!("cargo::rerun-if-changed={}\n", source.display()));
        let words = format!(
            "{}cargo::rustc-link-search=native={}\ncargo::rustc-link-lib=static={}\n",
            depends.collect::<String>(),
            compiled.folder.display(),
            compiled.name
        );
        let told = std::io::stdout().write_all(words.as_bytes());
        told.map_err(|error| Error::internal(format!("cannot write to Cargo: {error}")).with_source(error))?;
        Ok(compiled)
    }

    /// Compiles for a target into a folder.
    ///
    /// Fails with:
    ///
    /// - [`Error::NotFound`] for a file that cannot be read;
    /// - [`Error::InvalidArgument`] for a malformed program, a name that is not a C identifier, or an unknown target,
    ///   processor or feature;
    /// - [`Error::Unimplemented`] for operations that the target does not support yet; the message lists all of them;
    /// - [`Error::ResourceExhausted`] if a limit of stack or memory is exceeded;
    /// - [`Error::FailedPrecondition`] for a file that cannot be written; no output files remain in this case.
    pub fn compile_for(&self, target: &CargoTarget, folder: &Path) -> Result<Compiled> {
        let modules = self.sources.iter().map(|source| module(source)).collect::<Result<Vec<VerifiedModule>>>()?;
        let place = || self.sources.iter().map(|source| source.display().to_string()).collect::<Vec<_>>().join(", ");
        let files = platform_with(CpuOptions { generators: CodeGenerators::all(), ..CpuOptions::default() })
            .compiler()
            .ahead_of_time()
            .ok_or_else(|| Error::internal("the CPU platform cannot compile ahead of time"))?
            .compile_ahead_of_time(modules, &target.options(self.options.clone()))
            .context(place)?;
        write_files(files.iter().map(|file| (folder.join(&file.name), &file.bytes[..])))?;
        let bindings = files.iter().find_map(|file| file.name.strip_suffix(".rs"));
        let name = bindings.ok_or_else(|| Error::internal("the program has no bindings"))?.to_string();
        Ok(Compiled { name, folder: folder.to_path_buf() })
    }
}

/// Reads the program in a file.
fn module(source: &Path) -> Result<VerifiedModule> {
    let place = || source.display().to_string();
    let bytes = std::fs::read(source)
        .map_err(|error| Error::not_found(format!("cannot read {}: {error}", place())).with_source(error))?;
    let (module, omitted) = ModuleSource::new(bytes).and_then(|source| source.parse()).context(place)?;
    if omitted > 0 {
        let text = format!("{}: {omitted} constants have no data, {{...}}; write them out", place());
        return Err(Error::invalid_argument(text));
    }
    VerifiedModule::new(module).context(place)
}
