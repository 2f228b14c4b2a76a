//! `xla compile`: compiles programs ahead of time, to files.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use xla::hlo::{Error, Result};
use xla::service::compiler::AotFile;
use xla::service::{
    AotCompilationOptions, AotExtra, Assembler, ConstantsIn, Contraction, ExternalCall, Optimize, Relocation,
    write_files,
};
use xla::stablehlo::ArgumentShapes;

use super::failure::{Failure, Outcome};
use super::process;
use super::program::ProgramArg;
use super::session::{PlatformArg, Session};

const EXAMPLES: &str = "\
Examples:
  xla compile module.hlo -o build                                   for this machine and all of its kind
  xla compile module.hlo --cpu native -o build                      for this machine's processor
  xla compile module.hlo --target aarch64-unknown-linux-gnu \\
      --cpu neoverse-v1 --features +sve2,-sve-aes -o build          for another one
  xla compile module.hlo --cpu x86-64-v2,x86-64-v3,x86-64-v4 \\
      -o build                                                      code for each, chosen when the object is called
  xla compile encode.hlo decode.hlo --name model -o build           two entries of one object, which share their constants
  xla compile module.hlo --platform gpu --target sm_90 -o build     for a GPU: build/NAME.xlax, where NAME is the module's
  xla run --executable build/NAME.xlax --inputs-seed 0              on the machine with that GPU

The output depends on the platform. For cpu it is NAME.o, which needs no library, NAME.h, which declares it for C and C++, NAME.rs,
which does for Rust, NAME.json, which describes it for tools, and NAME.bin with --constants file, to be mapped or read. For gpu it is the
executable and its kernels as PTX, and, if ptxas is found, as machine code with kernels.json, the resource usage of each. No device of the
target is needed.";

/// Compile programs ahead of time, to files
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Programs: HLO or StableHLO, as text or serialised (format detected from the content); - for standard input
    #[arg(value_name = "MODULE", required = true)]
    modules: Vec<PathBuf>,
    /// Shapes of arguments with dynamic dimensions in StableHLO: arg0=f32[8,4],arg2=s32[8]; once for each module
    #[arg(long, value_name = "SHAPES")]
    shapes: Vec<ArgumentShapes>,
    #[command(flatten)]
    platform: PlatformArg,
    /// Target triple, or GPU architecture: sm_90, or sm_90a (H100 only) [default: this machine's; for gpu sm_90]
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// LLVM name of the target processor, or native; several for x86, oldest first [default: the target's baseline]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cpu: Vec<String>,
    /// Processor features to add or remove
    #[arg(long, value_name = "+A,-B", value_delimiter = ',', allow_hyphen_values = true)]
    features: Vec<String>,
    /// ABI, for targets that have several, such as lp64d [default: the target's]
    #[arg(long, value_name = "NAME")]
    abi: Option<String>,
    /// Relocation model: pic runs at any address, static at a fixed one
    #[arg(long, value_name = "KIND", default_value = "pic", value_parser = ["pic", "static"])]
    relocation: String,
    /// Round each product before it is added, even if the target has fused multiply-add
    #[arg(long)]
    no_contract: bool,
    /// Optimization goal
    #[arg(long, value_name = "GOAL", default_value = "speed", value_parser = ["speed", "size"])]
    optimize_for: String,
    /// Divide the work of a call among N threads, by the application's parallel_for callback
    #[arg(long, value_name = "N")]
    run_threads: Option<NonZeroUsize>,
    /// Reject a program if one of its functions needs more bytes of stack [default: 16384]
    #[arg(long, value_name = "BYTES")]
    stack_limit: Option<u32>,
    /// Name of the entry function, once for each module [default: the module's name, as an identifier]
    #[arg(long = "symbol", value_name = "NAME")]
    symbols: Vec<String>,
    /// Base name of the files [default: name of the first entry function]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Namespace of the header's declarations in C++, such as robot::vision
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Location of large constants: the object, or the file NAME.bin
    #[arg(long, value_name = "PLACE", default_value = "object", value_parser = ["object", "file"])]
    constants: String,
    /// Also write libNAME.a, a static library of NAME.o
    #[arg(long)]
    archive: bool,
    /// Additional files: assembly, LLVM IR, a CMake target
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = ["asm", "ir", "cmake"])]
    emit: Vec<String>,
    /// Compile the custom call T to a call of the application's C function NAME [default: T]; may be repeated
    #[arg(long, value_name = "T[=NAME]")]
    external: Vec<String>,
    /// Assembler for GPU code, or "none" to assemble when the program is loaded [default: ptxas, if it is found]
    #[arg(long, value_name = "FILE")]
    ptxas: Option<PathBuf>,
    /// Output directory
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Generate code in this process, a child of the process PARENT. The command starts itself with this option, so
    /// that a crash of LLVM does not end the command
    #[arg(long, hide = true, value_name = "PARENT")]
    in_this_process: Option<u32>,
}

impl Args {
    /// Whether this process starts a child process that does the work.
    pub fn starts_child(&self) -> bool {
        self.in_this_process.is_none()
    }

    fn assembler(&self) -> Assembler {
        match &self.ptxas {
            None => Assembler::IfFound,
            Some(path) if path.as_os_str() == "none" => Assembler::None,
            Some(path) => Assembler::At(path.clone()),
        }
    }

    fn options(&self, session: &Session) -> AotCompilationOptions {
        AotCompilationOptions {
            compile: session.compile_options(),
            target: self.target.clone(),
            cpus: self.cpu.clone(),
            features: self.features.clone(),
            abi: self.abi.clone(),
            relocation: if self.relocation == "static" { Relocation::Static } else { Relocation::Pic },
            contraction: if self.no_contract { Contraction::Forbid } else { Contraction::Allow },
            symbols: self.symbols.clone(),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            optimize: if self.optimize_for == "size" { Optimize::Size } else { Optimize::Speed },
            threads: self.run_threads,
            stack_limit: self.stack_limit,
            constants: if self.constants == "file" { ConstantsIn::File } else { ConstantsIn::Object },
            archive: self.archive,
            extras: self.emit.iter().map(|kind| extra(kind)).collect(),
            externals: self.external.iter().map(|text| external(text)).collect(),
            assembler: self.assembler(),
        }
    }
}

fn extra(kind: &str) -> AotExtra {
    match kind {
        "asm" => AotExtra::Assembly,
        "ir" => AotExtra::Ir,
        _ => AotExtra::Cmake,
    }
}

fn external(text: &str) -> ExternalCall {
    match text.rsplit_once('=') {
        Some((target, symbol)) => ExternalCall { target: target.to_string(), symbol: Some(symbol.to_string()) },
        None => ExternalCall { target: text.to_string(), symbol: None },
    }
}

/// Compiles the programs.
pub fn run(session: &Session, args: &Args) -> Outcome {
    let Some(parent) = args.in_this_process else { return in_child() };
    process::end_with_parent(parent)?;
    let registry = session.registry_for_files();
    let platform = session.platform(&registry, &args.platform)?;
    let compiler = platform.compiler();
    let ahead = compiler.ahead_of_time().ok_or_else(|| {
        Error::unimplemented(format!("platform {} cannot compile to files (ahead of time) yet", platform.name()))
    })?;
    if args.shapes.len() > args.modules.len() {
        let (shapes, modules) = (args.shapes.len(), args.modules.len());
        return Err(Failure::usage(format!("--shapes is given {shapes} times for {modules} modules")));
    }
    let shapes = args.shapes.iter().cloned().map(Some).chain(std::iter::repeat(None));
    let modules = args.modules.iter().zip(shapes);
    let modules = modules.map(|(path, shapes)| Ok(ProgramArg::new(path.clone(), shapes.into()).module()?.1));
    let modules = modules.collect::<Outcome<Vec<_>>>()?;
    let files = ahead.compile_ahead_of_time(modules, &args.options(session)).map_err(|error| match error {
        // An unknown target, or an assembler that was not found.
        Error::InvalidArgument(_) | Error::NotFound(_) => Failure { error, bad_input: true },
        // The target does not support the program, or it exceeds the target's limits.
        Error::Unimplemented(_) | Error::ResourceExhausted(_) => Failure::usage(error.message()),
        error => Failure { error, bad_input: false },
    })?;
    Ok(write(&args.output, &files)?)
}

/// Runs this command again in a child process, and reports a crash of that process.
fn in_child() -> Outcome {
    let this = std::env::current_exe().map_err(|error| not_started(&error))?;
    let status = std::process::Command::new(this)
        .args(std::env::args_os().skip(1))
        .arg(format!("--in-this-process={}", std::process::id()))
        .status();
    let status = status.map_err(|error| not_started(&error))?;
    match status.code() {
        Some(0) => Ok(()),
        // The child process has reported the error.
        Some(code) => std::process::exit(code),
        None => Err(Error::internal(format!("LLVM crashed on this target or program ({status})")).into()),
    }
}

/// Returns the error of a child process that cannot be started.
fn not_started(error: &io::Error) -> Error {
    let message = format!("cannot start the process that generates code: {error}");
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Error::failed_precondition(message),
        // No more processes, or no memory for one.
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => Error::resource_exhausted(message),
        _ if has_too_many_files(error) => Error::resource_exhausted(message),
        _ => Error::internal(message),
    }
}

/// Whether the process, or the machine, has no file descriptors left. [`io::ErrorKind`] has no such kind.
#[cfg(unix)]
fn has_too_many_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

#[cfg(not(unix))]
fn has_too_many_files(_: &io::Error) -> bool {
    false
}

/// Writes either all files or none.
fn write(directory: &Path, files: &[AotFile]) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(|error| {
        let message = format!("cannot create the folder {}: {error}", directory.display());
        Error::failed_precondition(message).with_source(error)
    })?;
    write_files(files.iter().map(|file| (directory.join(&file.name), &file.bytes[..])))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_a_lack_of_processes_memory_or_files_is_resource_exhaustion() {
        let kind = |code: i32| not_started(&io::Error::from_raw_os_error(code));
        for code in [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE] {
            assert!(matches!(kind(code), Error::ResourceExhausted(_)), "{:?}", kind(code));
        }
        for code in [libc::ENOENT, libc::EACCES] {
            assert!(matches!(kind(code), Error::FailedPrecondition(_)), "{:?}", kind(code));
        }
        // Too long a list of arguments, an error of the disk.
        for code in [libc::E2BIG, libc::EIO] {
            assert!(matches!(kind(code), Error::Internal(_)), "{:?}", kind(code));
        }
    }
}
