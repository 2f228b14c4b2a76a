//! `xla compile`: compiles a program ahead of time, to files.

use std::path::{Path, PathBuf};

use xla::hlo::{Error, Result};
use xla::service::compiler::AotFile;
use xla::service::{AotCompilationOptions, Assembler};

use super::failure::{Failure, Outcome};
use super::program::ProgramArg;
use super::session::{PlatformArg, Session};

const EXAMPLES: &str = "\
Examples:
  xla compile module.hlo -o build                                   for this machine
  xla compile module.hlo --target aarch64-unknown-linux-gnu \\
      --cpu neoverse-v1 --features +sve,-crypto -o build             for another one
  xla compile module.hlo --platform gpu --target sm_90 -o build     for a GPU: build/NAME.xlax, where NAME is the module's
  xla run --executable build/NAME.xlax --inputs-seed 0              on the machine with that GPU

The output depends on the platform: for gpu the executable and its kernels as PTX, and, if ptxas is found, as machine
code with kernels.json, the resource usage of each. No device of the target is needed.";

/// Compile a program ahead of time, to files
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    program: ProgramArg,
    #[command(flatten)]
    platform: PlatformArg,
    /// Target triple, or GPU architecture such as sm_90 [default: this machine's; for gpu sm_90]
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Target processor, by the code generator's name for it [default: the target's baseline]
    #[arg(long, value_name = "NAME")]
    cpu: Option<String>,
    /// Processor features to add or remove
    #[arg(long, value_name = "+A,-B", value_delimiter = ',', allow_hyphen_values = true)]
    features: Vec<String>,
    /// Assembler for GPU code, or "none" to assemble when the program is loaded [default: ptxas, if it is found]
    #[arg(long, value_name = "FILE")]
    ptxas: Option<PathBuf>,
    /// Output directory
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

impl Args {
    fn assembler(&self) -> Assembler {
        match &self.ptxas {
            None => Assembler::IfFound,
            Some(path) if path.as_os_str() == "none" => Assembler::None,
            Some(path) => Assembler::At(path.clone()),
        }
    }
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
        assembler: args.assembler(),
        ..AotCompilationOptions::default()
    };
    let files = ahead.compile_ahead_of_time(module, &options).map_err(|error| {
        // A target that there is not, an assembler that is not there.
        let bad_input = matches!(error, Error::InvalidArgument(_) | Error::NotFound(_));
        Failure { error, bad_input }
    })?;
    Ok(files.iter().try_for_each(|file| write(&args.output, file))?)
}

fn write(directory: &Path, file: &AotFile) -> Result<()> {
    let path = directory.join(&file.name);
    let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, &file.bytes));
    written.map_err(|e| Error::failed_precondition(format!("cannot write {}: {e}", path.display())).with_source(e))
}
