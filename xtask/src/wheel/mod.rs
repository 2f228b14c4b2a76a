//! `cargo xtask wheel`: the JAX plugin as one file that `pip install` takes.

mod check;
mod library;
mod licences;
mod package;

use std::path::{Path, PathBuf};

use anyhow::Result;
use pico_args::Arguments;

use crate::shell::root;
use crate::{build, finish, packages};

pub const HELP: &str = "\
Builds the JAX plugin with LLVM linked statically, and packs it with its Python package and all licences into one wheel, for any
CPython from 3.11 on. Then checks it: size, exported symbols, needed libraries, and in a fresh environment a training script,
whose losses must be those of XLA's own CPU platform, and the package's tests. The wheel runs on systems whose C library is not older than this one's.

  --out DIR           where the wheel goes (default: target/wheel)
  --platforms LIST    platforms of the library, of cpu, gpu, template (default: cpu; gpu brings LLVM's passes along, and is too large)
  --profile NAME      Cargo's profile (default: XTASK_PROFILE, or release)
  --no-check          build alone
";

/// Choices of one build.
struct Options {
    out: PathBuf,
    /// Cargo's features of the plugin's crate.
    features: String,
    profile: String,
    check: bool,
}

pub fn run(mut args: Arguments) -> Result<()> {
    let out: Option<PathBuf> = args.opt_value_from_str("--out")?;
    let options = Options {
        out: out.map_or_else(|| Ok(work()), std::path::absolute)?,
        features: args.opt_value_from_str("--platforms")?.unwrap_or_else(|| FEATURES.to_owned()),
        profile: args.opt_value_from_str("--profile")?.unwrap_or_else(build::profile),
        check: !args.contains("--no-check"),
    };
    finish(args)?;
    make(&options)
}

/// Builds the wheel without options, and checks it.
pub fn check() -> Result<()> {
    make(&Options { out: work(), features: FEATURES.to_owned(), profile: build::profile(), check: true })
}

/// With the GPU's code generator and the passes that it needs, LLVM is half as large again.
const FEATURES: &str = "cpu";

/// Folder of intermediate files.
fn work() -> PathBuf {
    root().join("target/wheel")
}

fn make(options: &Options) -> Result<()> {
    packages::ensure()?;
    step(1, "the library, with LLVM in it");
    let library = library::build(&options.profile, &options.features)?;
    let exported = check::library(&library)?;
    step(2, "the wheel");
    let wheel = package::pack(&library, &options.out)?;
    let sizes = check::sizes(&wheel, &options.profile)?;
    step(3, "a training script and the package's tests in a fresh environment");
    match options.check {
        true => check::training(&wheel).and_then(|()| check::programs())?,
        false => println!("left out"),
    }
    println!("\n{}\n{sizes}, exported: {exported}", wheel.display());
    Ok(())
}

fn step(number: usize, what: &str) {
    println!("\n[{number}/3] {what}");
}

/// Name of a file without its folder.
fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
