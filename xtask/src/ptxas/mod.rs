//! `cargo xtask ptxas`: assembles every program for GPUs and reports the resource usage of its kernels. No GPU is
//! needed.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pico_args::Arguments;
use rayon::prelude::*;
use serde_json::Value;

use crate::corpus::{self, problem};
use crate::shell::{output, program, root, run as run_program, xla_command};
use crate::{finish, packages, python};

pub const HELP: &str = "\
Compiles programs for GPUs and assembles their kernels with NVIDIA's ptxas: registers, spills and shared memory of each program,
and failures. The rows of all programs go to target/ptxas/ARCH.txt; shown are failures, spills, and all rows of a short list.

  --arch ARCH[,ARCH]  architectures (default sm_80,sm_90,sm_100)
  --filter TEXT       only programs whose name contains TEXT
  --quick             tests/ and the benchmark programs of this repository alone
  --ptxas FILE        assembler; else the one in PATH, else one fetched into target/ptxas: NVIDIA's wheel
                      nvidia-cuda-nvcc-cu12 12.9.86 (40 MB, under the licence of the CUDA toolkit)
  --xla FILE          the `xla` command to compile with (default: the release form, which is built)
  --jobs N            number of programs at a time (default: the number of CPUs)

The programs are those of ../shared/bench and ../shared/corpus where they are there, else those of tests/corpus; and those of tests/.
";

const ARCHITECTURES: &str = "sm_80,sm_90,sm_100";

/// The wheel that has the assembler, and its place therein.
const WHEEL: &str = "nvidia-cuda-nvcc-cu12==12.9.86";
const PLACE: &str = "nvidia/cuda_nvcc/bin/ptxas";

/// Greatest length of a list of programs that is shown whole.
const SHORT: usize = 60;

pub fn run(mut args: Arguments) -> Result<()> {
    let architectures = args.opt_value_from_str("--arch")?.unwrap_or_else(|| ARCHITECTURES.to_owned());
    let filter: Option<String> = args.opt_value_from_str("--filter")?;
    let ptxas: Option<PathBuf> = args.opt_value_from_str("--ptxas")?;
    let xla: Option<PathBuf> = args.opt_value_from_str("--xla")?;
    let jobs: Option<usize> = args.opt_value_from_str("--jobs")?;
    let quick = args.contains("--quick");
    finish(args)?;
    let tools = Tools {
        ptxas: find_or_fetch(ptxas)?,
        xla: match xla {
            Some(xla) => fs::canonicalize(&xla).with_context(|| xla.display().to_string())?,
            None => built()?,
        },
        jobs: jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1),
    };
    let mut programs = programs(quick)?;
    programs.retain(|(name, _)| filter.as_ref().is_none_or(|text| name.contains(text)));
    check(&tools, &programs, &architectures)
}

/// The quick form, where an assembler can be had; for CI, which need not have a network.
pub fn quick_if_possible() -> Result<()> {
    match find_or_fetch(None) {
        Ok(ptxas) => {
            let jobs = std::thread::available_parallelism().map_or(1, usize::from);
            check(&Tools { ptxas, xla: built()?, jobs }, &programs(true)?, "sm_90")
        }
        Err(error) => {
            println!("left out, there is no ptxas: {error:#}");
            Ok(())
        }
    }
}

/// Tools that compile the programs.
struct Tools {
    ptxas: PathBuf,
    xla: PathBuf,
    jobs: usize,
}

fn built() -> Result<PathBuf> {
    packages::ensure()?;
    xla_command()
}

/// The assembler that was named, or that of the search path, or one under `target/`.
pub fn find_or_fetch(named: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(path) = named {
        return fs::canonicalize(&path).with_context(|| path.display().to_string());
    }
    let folder = root().join("target/ptxas/wheel");
    let fetched = folder.join(PLACE);
    for candidate in [Path::new("ptxas"), &fetched] {
        if output(program(candidate, &["--version"])).is_some() {
            return Ok(candidate.to_path_buf());
        }
    }
    println!("ptxas is missing: fetching NVIDIA's wheel {WHEEL} (40 MB, under the licence of the CUDA toolkit)");
    let python = python::with_module("pip", &["pip"])?;
    let mut install = program(python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    install.arg("--target").arg(&folder).arg(WHEEL);
    run_program(install)?;
    if output(program(&fetched, &["--version"])).is_none() {
        bail!("{WHEEL} is installed, yet {} does not run", fetched.display());
    }
    Ok(fetched)
}

/// The suite of programs for several devices, which nobody compiles yet.
const SEVERAL_DEVICES: &str = "multi_device";

/// Programs by name.
fn programs(quick: bool) -> Result<Vec<(String, PathBuf)>> {
    let root = root();
    let mut found = Vec::new();
    let shared = root.join("../shared");
    for folder in ["tests/regressions", "tests/conformance/programs"] {
        collect(&root.join(folder), folder, &mut found)?;
    }
    if quick || !shared.join("bench/programs").exists() {
        collect(&corpus::unpack("bench")?, "bench", &mut found)?;
    } else {
        collect(&shared.join("bench/programs"), "bench", &mut found)?;
    }
    if !quick {
        match shared.join("corpus").exists() {
            true => collect(&shared.join("corpus"), "corpus", &mut found)?,
            false => {
                for suite in corpus::SUITES {
                    collect(&corpus::unpack(suite)?, &format!("corpus/{suite}"), &mut found)?;
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Adds the `.hlo` files of a folder and of those in it, under their paths without ending.
fn collect(folder: &Path, name: &str, found: &mut Vec<(String, PathBuf)>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stem == SEVERAL_DEVICES {
            continue;
        }
        if path.is_dir() {
            collect(&path, &format!("{name}/{stem}"), found)?;
        } else if path.extension().is_some_and(|ending| ending == "hlo") {
            let name = if stem == "module" { name.to_owned() } else { format!("{name}/{stem}") };
            found.push((name, path));
        }
    }
    Ok(())
}

fn check(tools: &Tools, programs: &[(String, PathBuf)], architectures: &str) -> Result<()> {
    if programs.is_empty() {
        bail!("there is no such program");
    }
    let mut failures = 0;
    for architecture in architectures.split(',') {
        let rows = assemble_all(tools, programs, architecture)?;
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let file = root().join(format!("target/ptxas/{architecture}.txt"));
        fs::write(&file, format!("{}\n{text}", Row::HEAD)).with_context(|| file.display().to_string())?;
        println!("\n{architecture}\n{}", Row::HEAD);
        rows.iter().filter(|row| rows.len() <= SHORT || row.is_notable()).for_each(|row| println!("{row}"));
        let total = Summary::of(&rows);
        println!("{architecture}: {total}");
        failures += total.failures;
    }
    if failures > 0 { bail!("{failures} programs cannot be assembled") } else { Ok(()) }
}

fn assemble_all(tools: &Tools, programs: &[(String, PathBuf)], architecture: &str) -> Result<Vec<Row>> {
    let scratch = root().join("target/ptxas/out");
    fs::create_dir_all(&scratch)?;
    let row = |(name, path): &(String, PathBuf)| {
        let folder = scratch.join(rayon::current_thread_index().unwrap_or_default().to_string());
        let outcome = assemble(tools, path, architecture, &folder).map_err(|error| format!("{error:#}"));
        Row { name: name.clone(), outcome }
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(tools.jobs).build()?;
    let mut rows: Vec<Row> = pool.install(|| programs.par_iter().map(row).collect());
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(rows)
}

/// Compiles a program into an empty folder, and reads the assembler's output.
fn assemble(tools: &Tools, path: &Path, architecture: &str, folder: &Path) -> Result<Vec<Kernel>> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let mut command = program(&tools.xla, &["compile"]);
    command.arg(path).args(["--platform", "gpu", "--target", architecture, "--threads", "1"]);
    command.arg("--ptxas").arg(&tools.ptxas).arg("-o").arg(folder);
    if let Some(problem) = problem(command) {
        bail!("{problem}");
    }
    let report = folder.join("kernels.json");
    let text = fs::read_to_string(&report).with_context(|| report.display().to_string())?;
    let json: Value = serde_json::from_str(&text)?;
    json["kernels"].as_array().context("kernels.json lists no kernels")?.iter().map(Kernel::read).collect()
}

/// Resources of a kernel.
struct Kernel {
    name: String,
    registers: u64,
    spill_bytes: u64,
    shared_bytes: u64,
}

impl Kernel {
    fn read(json: &Value) -> Result<Kernel> {
        let number = |key: &str| json[key].as_u64().with_context(|| format!("a kernel of kernels.json has no {key}"));
        Ok(Kernel {
            name: json["name"].as_str().unwrap_or_default().to_owned(),
            registers: number("registers")?,
            spill_bytes: number("spill_bytes")?,
            shared_bytes: number("shared_bytes")?,
        })
    }
}

/// A program with its kernels, or why there are none.
struct Row {
    name: String,
    outcome: Result<Vec<Kernel>, String>,
}

impl Row {
    const HEAD: &'static str = "kernels  most registers  spilled bytes  most shared bytes  program";

    fn is_notable(&self) -> bool {
        self.outcome.as_ref().map_or(true, |kernels| kernels.iter().any(|kernel| kernel.spill_bytes > 0))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels = match &self.outcome {
            Ok(kernels) => kernels,
            Err(problem) => return write!(f, "{}: {problem}", self.name),
        };
        let most = |what: fn(&Kernel) -> u64| kernels.iter().map(what).max().unwrap_or(0);
        let spilled: u64 = kernels.iter().map(|kernel| kernel.spill_bytes).sum();
        let (registers, shared) = (most(|kernel| kernel.registers), most(|kernel| kernel.shared_bytes));
        write!(f, "{:>7} {registers:>15} {spilled:>14} {shared:>18}  {}", kernels.len(), self.name)?;
        let spilling: Vec<&str> = kernels.iter().filter(|k| k.spill_bytes > 0).map(|k| k.name.as_str()).collect();
        if spilling.is_empty() { Ok(()) } else { write!(f, " ({})", spilling.join(", ")) }
    }
}

/// All rows in a line.
#[derive(Default)]
struct Summary {
    programs: usize,
    kernels: usize,
    failures: usize,
    spilling: usize,
    /// Number of kernels by registers, rounded up to a multiple of 32.
    registers: BTreeMap<u64, usize>,
}

impl Summary {
    fn of(rows: &[Row]) -> Summary {
        let mut summary = Summary { programs: rows.len(), ..Summary::default() };
        for row in rows {
            let Ok(kernels) = &row.outcome else {
                summary.failures += 1;
                continue;
            };
            summary.kernels += kernels.len();
            for kernel in kernels {
                summary.spilling += usize::from(kernel.spill_bytes > 0);
                *summary.registers.entry(kernel.registers.next_multiple_of(32)).or_default() += 1;
            }
        }
        summary
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { programs, kernels, failures, spilling, registers } = self;
        write!(f, "{programs} programs, {failures} of them fail; {kernels} kernels, {spilling} of them spill")?;
        let classes: Vec<String> = registers.iter().map(|(most, count)| format!("{count} up to {most}")).collect();
        if classes.is_empty() { Ok(()) } else { write!(f, "; registers: {}", classes.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, registers: u64, spill_bytes: u64) -> Kernel {
        Kernel { name: name.to_owned(), registers, spill_bytes, shared_bytes: 128 }
    }

    #[test]
    fn rows_and_their_sum() {
        let good = vec![kernel("k0_add", 16, 0), kernel("k1_dot", 255, 24)];
        let rows = [
            Row { name: "bench/a".to_owned(), outcome: Ok(good) },
            Row { name: "bench/b".to_owned(), outcome: Err("exit status: 1: error: no".to_owned()) },
            Row { name: "bench/c".to_owned(), outcome: Ok(Vec::new()) },
        ];
        assert_eq!(rows[0].to_string(), "      2             255             24                128  bench/a (k1_dot)");
        assert_eq!(rows[0].to_string().find("bench"), Row::HEAD.find("program"));
        assert_eq!(rows[1].to_string(), "bench/b: exit status: 1: error: no");
        assert_eq!(rows.iter().map(Row::is_notable).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(
            Summary::of(&rows).to_string(),
            "3 programs, 1 of them fail; 2 kernels, 1 of them spill; registers: 1 up to 32, 1 up to 256"
        );
    }

    #[test]
    fn programs_of_the_repository_are_found_by_name() {
        let mut found = Vec::new();
        collect(&root().join("tests/regressions"), "tests/regressions", &mut found).unwrap();
        assert!(found.iter().any(|(name, _)| name == "tests/regressions/acosh_below_one"), "{found:?}");
        let json: Value = serde_json::from_str(r#"{"name": "k", "registers": 8, "spill_bytes": 0}"#).unwrap();
        assert!(Kernel::read(&json).is_err());
    }
}
