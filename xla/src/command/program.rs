//! Reads MODULE: a file or standard input, its format detected from its content.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use xla::hlo::{Error, Module, Result, ResultExt, VerifiedModule, proto, text};
use xla::service::serialized;
use xla::stablehlo;
use xla::{Client, CompileOptions, LoadedExecutable};

use super::failure::{BadInput, Failure, Outcome};

/// A larger module is refused.
const LIMIT: u64 = 2 << 30;

/// The argument that names a program.
#[derive(clap::Args, Debug)]
pub struct ProgramArg {
    /// The program: HLO or StableHLO, as text or serialised, told by content; - for standard input
    #[arg(value_name = "MODULE")]
    module: PathBuf,
}

/// The argument that names a program that is to run.
#[derive(clap::Args, Debug)]
pub struct RunnableArg {
    /// The program: HLO or StableHLO, as text or serialised, told by content; - for standard input
    #[arg(value_name = "MODULE", required_unless_present = "executable")]
    module: Option<PathBuf>,
    /// Take a program that `xla compile` wrote instead; its platform is in it
    #[arg(long, value_name = "FILE", conflicts_with = "module")]
    executable: Option<PathBuf>,
}

/// A program that is to run.
pub enum Runnable {
    /// One to compile.
    Module(Source),
    /// One to load.
    Executable(Stored),
}

/// A compiled program, as bytes.
pub struct Stored {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl RunnableArg {
    /// Reads the program.
    pub fn read(&self) -> Outcome<Runnable> {
        match (&self.executable, &self.module) {
            (Some(path), _) => {
                Ok(Runnable::Executable(Stored { path: path.clone(), bytes: read(Some(path)).bad_input()? }))
            }
            (None, Some(module)) => ProgramArg::new(module.clone()).read().map(Runnable::Module),
            (None, None) => Err(Failure::usage("name a module, or --executable FILE")),
        }
    }
}

impl Stored {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The platform whose program it is.
    pub fn platform(&self) -> Outcome<String> {
        serialized::platform_of(&self.bytes).context(|| self.path.display().to_string()).bad_input()
    }

    /// Loads it. Bytes that this platform cannot load are bad input.
    pub fn load(&self, client: &Client, options: &CompileOptions) -> Outcome<LoadedExecutable> {
        client.load(&self.bytes, options).map_err(|error| {
            let bad_input = matches!(error, Error::InvalidArgument(_));
            Failure { error: error.context(self.path.display().to_string()), bad_input }
        })
    }
}

impl Runnable {
    /// The file, unless it was standard input.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Runnable::Module(source) => source.path(),
            Runnable::Executable(stored) => Some(stored.path()),
        }
    }

    /// The name of the file without its ending, for reports; `-` for standard input.
    pub fn stem(&self) -> String {
        let stem = self.path().and_then(Path::file_stem);
        let stem = stem.map_or_else(|| "-".to_string(), |stem| stem.to_string_lossy().into_owned());
        stem.strip_suffix(".hlo").map(str::to_string).unwrap_or(stem)
    }
}

/// A program that was read, not parsed.
pub struct Source {
    path: Option<PathBuf>,
    content: Content,
}

/// A program in one of the forms that can be read.
#[derive(Debug)]
enum Content {
    /// HLO text.
    Text(String),
    /// Serialised HLO.
    Proto(Vec<u8>),
    /// A portable artifact of StableHLO: MLIR bytecode.
    Bytecode(Vec<u8>),
    /// StableHLO as MLIR text.
    Mlir(String),
}

impl ProgramArg {
    /// The argument, for a subcommand that takes it in another way.
    pub fn new(module: PathBuf) -> ProgramArg {
        ProgramArg { module }
    }

    /// Reads the program.
    pub fn read(&self) -> Outcome<Source> {
        let path = (self.module.as_os_str() != "-").then(|| self.module.clone());
        let name = path.as_deref().map_or("standard input".into(), Path::to_string_lossy);
        let bytes = read(path.as_deref()).bad_input()?;
        let content = content(bytes).context(|| name).bad_input()?;
        Ok(Source { path, content })
    }

    /// Reads, parses and verifies the program.
    pub fn module(&self) -> Outcome<(Source, VerifiedModule)> {
        let source = self.read()?;
        let module = source.verified()?;
        Ok((source, module))
    }
}

impl Source {
    /// The file, unless it was standard input.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Name of the program on the command line.
    fn name(&self) -> String {
        self.path().map_or_else(|| "standard input".to_string(), |path| path.display().to_string())
    }

    /// Parses the program.
    pub fn parse(&self) -> Outcome<Module> {
        let _span = tracing::info_span!("parse").entered();
        let module = match &self.content {
            Content::Text(text) => text::parse_module_counting_omitted(text).map(|(module, omitted)| {
                self.say_omitted(omitted);
                module
            }),
            Content::Proto(bytes) => proto::parse_module(bytes),
            Content::Bytecode(bytes) => stablehlo::parse_bytecode(bytes),
            Content::Mlir(text) => stablehlo::parse_text(text),
        };
        module.context(|| self.name()).bad_input()
    }

    /// Says on standard error, once a process, that constants without data are zeros.
    fn say_omitted(&self, omitted: usize) {
        static SAID: AtomicBool = AtomicBool::new(false);
        if omitted > 0 && !SAID.swap(true, Ordering::Relaxed) {
            let what = if omitted == 1 { "constant has" } else { "constants have" };
            let name = self.name();
            // If standard error is closed, the program runs all the same.
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

/// The bytes as a program, or an error that names their format.
fn content(bytes: Vec<u8>) -> Result<Content> {
    if stablehlo::bytecode::is_bytecode(&bytes) {
        return Ok(Content::Bytecode(bytes));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::invalid_argument("the file is empty; it should hold a module in HLO text"));
    }
    let control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace() && *byte != 0x0b;
    let binary = bytes.iter().position(control);
    // A serialised module begins with field 1, or with field 2 where it has no name; in text both are white space or
    // control characters, and no serialised module is without the latter.
    if binary.is_some() && matches!(bytes[0], 0x0a | 0x12) {
        return Ok(Content::Proto(bytes));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            return Err(Error::invalid_argument(format!(
                "byte {at} is not UTF-8 text, and no module format begins so"
            )));
        }
    };
    if let Some(at) = binary {
        let byte = text.as_bytes()[at];
        return Err(Error::invalid_argument(format!("byte {at} is the control character {byte:#04x}: no HLO text")));
    }
    if is_mlir(&text) {
        return Ok(Content::Mlir(text));
    }
    Ok(Content::Text(text))
}

/// Whether the first line that says something is MLIR's.
fn is_mlir(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    let starts = ["module ", "module{", "#", "!", "\"builtin.module\"", "func.func", "builtin.module"];
    lines.next().is_some_and(|first| starts.iter().any(|start| first.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> String {
        content(bytes.to_vec()).unwrap_err().to_string()
    }

    #[test]
    fn formats_are_told_by_their_content() {
        assert!(matches!(content(b"// a comment\nHloModule m\n".to_vec()), Ok(Content::Text(_))));
        assert!(matches!(content(b"\n\nHloModule m\n".to_vec()), Ok(Content::Text(_))));
        assert!(matches!(content(b"\x0a\x04main\x12\x00".to_vec()), Ok(Content::Proto(_))));
        assert!(matches!(content(b"ML\xefR\x0dStableHLO".to_vec()), Ok(Content::Bytecode(_))));
        for mlir in ["module @jit_f {", "#loc = loc(unknown)\nmodule {", "// text\nfunc.func @main()"] {
            assert!(matches!(content(mlir.as_bytes().to_vec()), Ok(Content::Mlir(_))), "{mlir}");
        }
    }

    #[test]
    fn what_is_no_module_is_refused() {
        assert!(refusal(b" \n").starts_with("the file is empty"));
        assert!(refusal(b"HloModule \xff").starts_with("byte 10 is not UTF-8"));
        assert!(refusal(b"HloModule \0").starts_with("byte 10 is the control character 0x00"));
    }
}
