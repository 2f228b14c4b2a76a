//! One packed folder with everything that a report needs, for a machine that has Python and the driver alone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;

use crate::corpus::{self, problem};
use crate::shell::{program, root, run};
use crate::{build, link, packages, ptxas};

/// Default architecture of executables: the one that programs are compiled for in process on an H100.
pub const ARCHITECTURE: &str = "sm_90a";

/// File next to the executables that states their architecture; `tests/gpu/steps/toolbox.py` reads it.
const ARCHITECTURE_FILE: &str = "architecture";

/// Name of the folder that is packed, and of the archive.
const NAME: &str = "xla-gpu";

/// Greatest size in bytes.
const PACKED: u64 = 40_000_000;

/// Version 2.N of the C library that the commands need at most, which systems of 2022 have.
const C_LIBRARY: u32 = 35;

/// A random number from the kernel.
const ARC4RANDOM: &str = "\
#include <stdint.h>
#include <sys/random.h>

uint32_t arc4random(void) {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}
";

/// Sources of the report, and places of the programs, with the endings of files.
const SOURCES: &[(&str, &str)] = &[
    ("tests/gpu", "py"),
    ("tests/gpu/steps", "py"),
    ("tests/corpus/generate/bench/inputs.py", "py"),
    ("tests/corpus/suites", "zip"),
    ("tests/conformance/programs", "hlo"),
    ("tests/conformance/programs/kernels", "hlo"),
    ("tests/conformance/idioms", "hlo"),
    ("tests/regressions", "hlo"),
];

/// Suites whose programs are no executables: they take several devices.
const SEVERAL_DEVICES: &str = "multi_device";

/// Limits of the small form, as in `steps/corpus.py`: programs of a suite, and bytes of their inputs and outputs.
const SMALL: usize = 2;
const SMALL_BYTES: u64 = 4000;
const SMALL_BENCH: &[&str] = &["dispatch_floor", "elementwise_4k"];

/// Choices of one bundle.
pub struct Options {
    pub out: PathBuf,
    pub architecture: String,
    pub ptxas: Option<PathBuf>,
    /// Executables of a few programs alone.
    pub small: bool,
}

/// Folder of intermediate files.
pub fn work() -> PathBuf {
    root().join("target/gpu-bundle")
}

/// Makes the archive, checks it, and returns its path.
pub fn make(options: &Options) -> Result<PathBuf> {
    packages::ensure()?;
    let stage = work().join(NAME);
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    fs::create_dir_all(&stage)?;
    println!("\n[1/4] the commands, with LLVM in them");
    println!("needed: {}", commands(&stage)?);
    println!("\n[2/4] scripts and suites");
    for (source, ending) in SOURCES {
        collect(&root().join(source), &stage.join(place(source)), ending)?;
    }
    println!("\n[3/4] executables for {}", options.architecture);
    let programs = programs(options.small)?;
    executables(options, &programs, &stage)?;
    println!("\n[4/4] the archive");
    pack(&stage, &options.out)
}

/// Place in the bundle for a file, or for the files of a folder.
fn place(source: &str) -> &str {
    match source {
        "tests/gpu" => "",
        "tests/gpu/steps" => "steps",
        "tests/corpus/generate/bench/inputs.py" => "inputs.py",
        other => other,
    }
}

/// Copies a file, or the files of a folder with that ending.
fn collect(from: &Path, to: &Path, ending: &str) -> Result<()> {
    if from.is_file() {
        fs::copy(from, to).with_context(|| from.display().to_string())?;
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let path = entry?.path();
        if let Some(name) = path.file_name().filter(|_| path.extension().is_some_and(|found| found == ending)) {
            fs::copy(&path, to.join(name)).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// Builds the commands for GPUs alone, with LLVM linked in, and returns a list of their dependencies. They are one file
/// with two names, half as large as two files.
fn commands(stage: &Path) -> Result<String> {
    let profile = build::profile();
    let mut command = build::rustc("xla-tests", "gpu", &profile);
    command.args(["--bin", "xla-tests"]);
    link::statically(&mut command, &work().join("link"))?;
    command.arg("-C").arg(format!("link-arg={}", random_numbers()?.display()));
    run(command)?;
    let place = stage.join("xla-tests");
    fs::copy(build::results(&build::target()?, &profile).join("xla-tests"), &place)?;
    fs::hard_link(&place, stage.join("xla"))?;
    let (libraries, version) = (link::check_needs(&place)?, link::c_library(&place)?);
    let minor = version.strip_prefix("2.").and_then(|rest| rest.split('.').next()?.parse().ok());
    // A later version comes from the C library of this machine: find the symbol that needs it, such as `arc4random`.
    let is_old = minor.is_some_and(|minor: u32| minor <= C_LIBRARY);
    ensure!(is_old, "{} needs GLIBC_{version}; 2.{C_LIBRARY} at most is wanted", place.display());
    Ok(format!("{}; the C library of version {version} or later", libraries.join(", ")))
}

/// Compiles the symbols that the static C++ library needs and C libraries before 2.36 lack.
fn random_numbers() -> Result<PathBuf> {
    let (source, object) = (work().join("arc4random.c"), work().join("arc4random.o"));
    // A file that is not touched links nothing anew.
    if fs::read_to_string(&source).is_ok_and(|present| present == ARC4RANDOM) && object.exists() {
        return Ok(object);
    }
    fs::write(&source, ARC4RANDOM)?;
    let mut command = program("cc", &["-c", "-O2", "-fPIC", "-o"]);
    command.args([&object, &source]);
    run(command)?;
    Ok(object)
}

/// A program of a suite.
struct Program {
    suite: String,
    name: String,
    path: PathBuf,
}

fn programs(small: bool) -> Result<Vec<Program>> {
    let mut found = Vec::new();
    for suite in corpus::archives()? {
        if suite == SEVERAL_DEVICES {
            continue;
        }
        let folder = corpus::unpack(&suite)?;
        let mut entries: Vec<PathBuf> = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        entries.sort();
        let of_bench = entries.iter().filter(|path| path.extension().is_some_and(|ending| ending == "hlo"));
        let of_suite = entries.iter().filter(|path| path.join("module.hlo").exists());
        let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let program = |path: &Path, file: PathBuf| Program { suite: suite.clone(), name: stem(path), path: file };
        let bench = of_bench.map(|path| program(path, path.clone()));
        found.extend(bench.filter(|program| !small || SMALL_BENCH.contains(&program.name.as_str())));
        let cases = of_suite.filter(|path| !small || array_bytes(path) <= SMALL_BYTES);
        let most = if small { SMALL } else { usize::MAX };
        found.extend(cases.map(|path| program(path, path.join("module.hlo"))).take(most));
    }
    Ok(found)
}

fn array_bytes(folder: &Path) -> u64 {
    let size = |name: &str| fs::metadata(folder.join(name)).map_or(0, |file| file.len());
    size("inputs.npz") + size("expected.npz")
}

/// Compiles programs with the bundle's own command. Refused programs are named and left out.
fn executables(options: &Options, programs: &[Program], stage: &Path) -> Result<()> {
    let assembler = ptxas::PTXAS.find_or_fetch(options.ptxas.clone());
    if let Err(error) = &assembler {
        println!("there is no ptxas, so the executables have PTX alone: {error:#}");
    }
    let assembler = assembler.unwrap_or_else(|_| "none".into());
    let scratch = work().join("compiled");
    let refused: Vec<String> = programs
        .par_iter()
        .filter_map(|program| {
            compile(options, program, &assembler, stage, &scratch)
                .map_err(|error| format!("{}/{}: {error:#}", program.suite, program.name))
                .err()
        })
        .collect();
    fs::write(stage.join("executables").join(ARCHITECTURE_FILE), &options.architecture)?;
    println!("{} executables", programs.len() - refused.len());
    for refused in &refused {
        println!("left out: {refused}");
    }
    // A few programs are refused for their own sake; many are a fault.
    ensure!(
        refused.len() * 10 <= programs.len(),
        "{} of {} programs cannot be compiled",
        refused.len(),
        programs.len()
    );
    Ok(())
}

fn compile(options: &Options, of: &Program, assembler: &Path, stage: &Path, scratch: &Path) -> Result<()> {
    let built = scratch.join(&of.suite).join(&of.name);
    let mut command = program(stage.join("xla"), &["compile"]);
    command.arg(&of.path).args(["--platform", "gpu", "--target", &options.architecture, "--threads", "1"]);
    command.args(["--name", "program"]).arg("--ptxas").arg(assembler).arg("-o").arg(&built);
    if let Some(problem) = problem(command) {
        anyhow::bail!("{problem}");
    }
    let folder = stage.join("executables").join(&of.suite);
    fs::create_dir_all(&folder)?;
    fs::copy(built.join("program.xlax"), folder.join(format!("{}.xlax", of.name)))?;
    fs::remove_dir_all(&built)?;
    Ok(())
}

/// Packs the folder, and checks the archive's size.
fn pack(stage: &Path, out: &Path) -> Result<PathBuf> {
    fs::create_dir_all(out)?;
    let archive = out.join(format!("{NAME}.tar.gz"));
    let mut command = program("tar", &["--create", "--use-compress-program=gzip -9"]);
    command
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--file"])
        .arg(&archive)
        .arg("--directory")
        .arg(stage.with_file_name(""))
        .arg(NAME);
    run(command)?;
    let bytes = fs::metadata(&archive)?.len();
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    println!("{}: {}", archive.display(), megabytes(bytes));
    ensure!(bytes <= PACKED, "it has {}, at most {} are wanted", megabytes(bytes), megabytes(PACKED));
    Ok(archive)
}
