//! Reads MODULE from a file or standard input.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use xla::hlo::{Error, Module, Result, ResultExt, VerifiedModule};
use xla::service::serialized;
use xla::stablehlo::ArgumentShapes;
use xla::{Client, CompileOptions, LoadedExecutable, ModuleSource};

use super::failure::{BadInput, Failure, Outcome};
use super::output;

/// Limit on the size of a module in bytes.
const LIMIT: u64 = 2 << 30;

/// Argument that names a program.
#[derive(clap::Args, Debug)]
pub struct ProgramArg {
    /// Program: HLO or StableHLO, as text or serialised (format detected from the content); - for standard input
    #[arg(value_name = "MODULE")]
    module: PathBuf,
    #[command(flatten)]
    shapes: ShapesArg,
}

/// Option with the shapes of a program's arguments.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ShapesArg {
    /// Shapes of arguments with dynamic dimensions in StableHLO: arg0=f32[8,4],arg2=s32[8]
    #[arg(long, value_name = "SHAPES")]
    shapes: Option<ArgumentShapes>,
}

/// Arguments that name a program to run.
#[derive(clap::Args, Debug)]
pub struct RunnableArg {
    /// Program: HLO or StableHLO, as text or serialised (format detected from the content); - for standard input
    #[arg(value_name = "MODULE", required_unless_present = "executable")]
    module: Option<PathBuf>,
    #[command(flatten)]
    shapes: ShapesArg,
    /// Run the machine code in a file of `xla compile`, which must be trusted; host code requires --platform
    #[arg(long, value_name = "FILE", conflicts_with_all = ["module", "shapes"])]
    executable: Option<PathBuf>,
}

/// Program to run.
pub enum Runnable {
    /// Module to compile.
    Module(Source),
    /// Executable to load.
    Executable(Stored),
}

/// Serialised executable.
pub struct Stored {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl From<Option<ArgumentShapes>> for ShapesArg {
    fn from(shapes: Option<ArgumentShapes>) -> ShapesArg {
        ShapesArg { shapes }
    }
}

impl RunnableArg {
    /// Reads the program.
    pub fn read(&self) -> Outcome<Runnable> {
        match (&self.executable, &self.module) {
            (Some(path), _) => {
                Ok(Runnable::Executable(Stored { path: path.clone(), bytes: read(Some(path)).bad_input()? }))
            }
            (None, Some(module)) => ProgramArg::new(module.clone(), self.shapes.clone()).read().map(Runnable::Module),
            (None, None) => Err(Failure::usage("name a module, or --executable FILE")),
        }
    }
}

impl Stored {
    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the platform that the program was compiled for.
    pub fn platform(&self) -> Outcome<String> {
        serialized::platform_of(&self.bytes).context(|| self.path.display().to_string()).bad_input()
    }

    /// Loads the program. Bytes that this platform cannot load are bad input.
    pub fn load(&self, client: &Client, options: &CompileOptions) -> Outcome<LoadedExecutable> {
        client.load(&self.bytes, options).map_err(|error| {
            let bad_input = matches!(error, Error::InvalidArgument(_));
            Failure { error: error.context(self.path.display().to_string()), bad_input }
        })
    }
}

impl Runnable {
    /// Returns the path of the file; `None` for standard input.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Runnable::Module(source) => source.path(),
            Runnable::Executable(stored) => Some(stored.path()),
        }
    }

    /// Returns the name of the file without its extension, for reports; `-` for standard input.
    pub fn stem(&self) -> String {
        let stem = self.path().and_then(Path::file_stem);
        let stem = stem.map_or_else(|| "-".to_string(), |stem| stem.to_string_lossy().into_owned());
        stem.strip_suffix(".hlo").map(str::to_string).unwrap_or(stem)
    }
}

/// Program that was read but not parsed.
pub struct Source {
    path: Option<PathBuf>,
    content: ModuleSource,
    shapes: ArgumentShapes,
}

impl ProgramArg {
    /// Creates the argument, for a subcommand with another syntax.
    pub fn new(module: PathBuf, shapes: ShapesArg) -> ProgramArg {
        ProgramArg { module, shapes }
    }

    /// Reads the program.
    pub fn read(&self) -> Outcome<Source> {
        let path = (self.module.as_os_str() != "-").then(|| self.module.clone());
        let name = path.as_deref().map_or("standard input".into(), Path::to_string_lossy);
        let bytes = read(path.as_deref()).bad_input()?;
        let content = ModuleSource::new(bytes).context(|| name).bad_input()?;
        Ok(Source { path, content, shapes: self.shapes.shapes.clone().unwrap_or_default() })
    }

    /// Reads, parses and verifies the program.
    pub fn module(&self) -> Outcome<(Source, VerifiedModule)> {
        let source = self.read()?;
        let module = source.verified()?;
        Ok((source, module))
    }
}

impl Source {
    /// Returns the path of the file; `None` for standard input.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the shapes of the program's arguments, for additions.
    pub fn shapes_mut(&mut self) -> &mut ArgumentShapes {
        &mut self.shapes
    }

    /// Returns the name of the program on the command line.
    fn name(&self) -> String {
        self.path().map_or_else(|| "standard input".to_string(), |path| path.display().to_string())
    }

    /// Parses the program.
    pub fn parse(&self) -> Outcome<Module> {
        let _span = tracing::info_span!("parse").entered();
        let (module, omitted) = self.content.parse_for(&self.shapes).context(|| self.name()).bad_input()?;
        self.say_omitted(omitted);
        Ok(module)
    }

    /// Warns on standard error, once per process, that constants without data are treated as zeros.
    fn say_omitted(&self, omitted: usize) {
        static SAID: AtomicBool = AtomicBool::new(false);
        if omitted > 0 && !SAID.swap(true, Ordering::Relaxed) {
            let what = if omitted == 1 { "constant has" } else { "constants have" };
            let name = output::escape(&self.name());
            // A closed standard error does not prevent the program from running.
            let _ = writeln!(
                std::io::stderr(),
                "warning: {name}: {omitted} {what} no data, {{...}}, and {} as zeros",
                if omitted == 1 { "counts" } else { "count" }
            );
        }
    }

    /// Parses and verifies the program.
    pub fn verified(&self) -> Outcome<VerifiedModule> {
        self.verify(self.parse()?)
    }

    /// Verifies the module of this program.
    pub fn verify(&self, module: Module) -> Outcome<VerifiedModule> {
        let _span = tracing::info_span!("verify").entered();
        VerifiedModule::new(module).context(|| self.name()).bad_input()
    }
}

fn read(path: Option<&Path>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let (name, taken) = match path {
        None => ("standard input".to_string(), std::io::stdin().take(LIMIT + 1).read_to_end(&mut bytes)),
        Some(path) => {
            let name = path.display().to_string();
            (name, File::open(path).and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes)))
        }
    };
    let taken = taken.map_err(|e| Error::not_found(format!("cannot read {name}: {e}")).with_source(e))?;
    if taken as u64 > LIMIT {
        return Err(Error::resource_exhausted(format!("{name} is larger than {} GiB", LIMIT >> 30)));
    }
    Ok(bytes)
}
