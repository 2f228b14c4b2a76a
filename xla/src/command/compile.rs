//! `xla compile`: a program as files for a machine that may be another one.

use std::path::{Path, PathBuf};

use xla::hlo::{Error, Result};
use xla::service::AotCompilationOptions;
use xla::service::compiler::AotFile;

use super::failure::Outcome;
use super::program::ProgramArg;
use super::session::{PlatformArg, Session};

const EXAMPLES: &str = "\
Examples:
  xla compile module.hlo -o build                                   for this machine
  xla compile module.hlo --target aarch64-unknown-linux-gnu \\
      --cpu neoverse-v1 --features +sve,-crypto -o build             for another one

What comes out is up to the platform: for cpu an object file and a C header. No device of the target is needed.";

/// Compile a program ahead of time, to files
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    program: ProgramArg,
    #[command(flatten)]
    platform: PlatformArg,
    /// The target triple [default: this machine's]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// The processor, by the name that the platform's code generator has for it [default: the target's baseline]
    #[arg(long, value_name = "NAME")]
    cpu: Option<String>,
    /// Processor features to add or take away
    #[arg(long, value_name = "+A,-B", value_delimiter = ',', allow_hyphen_values = true)]
    features: Vec<String>,
    /// The directory that gets the files
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

/// Compiles the program.
pub fn run(session: &Session, args: &Args) -> Outcome {
    let registry = session.registry();
    let platform = session.platform(&registry, &args.platform)?;
    let compiler = platform.compiler();
    let ahead = compiler.ahead_of_time().ok_or_else(|| {
        Error::unimplemented(format!("platform {} cannot compile to files (ahead of time) yet", platform.name()))
    })?;
    let (_, module) = args.program.module()?;
    let options = AotCompilationOptions {
        compile: session.compile_options(),
        target: args.target.clone(),
        cpu: args.cpu.clone(),
        features: args.features.clone(),
        ..AotCompilationOptions::default()
    };
    let optimized = compiler.run_hlo_passes(module, &options.compile)?;
    let files = ahead.compile_ahead_of_time(optimized, &options)?;
    Ok(files.iter().try_for_each(|file| write(&args.output, file))?)
}

fn write(directory: &Path, file: &AotFile) -> Result<()> {
    let path = directory.join(&file.name);
    let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, &file.bytes));
    written.map_err(|e| Error::failed_precondition(format!("cannot write {}: {e}", path.display())).with_source(e))
}
