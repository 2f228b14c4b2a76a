//! `cargo xtask gpu-report`: everything that is to be known about a GPU, in steps that cannot lose each other.

mod bundle;
mod check;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use pico_args::Arguments;

use crate::shell::{output, program, root, run as run_program};
use crate::{build, finish, packages, test_backend};

pub use check::check;

pub const HELP: &str = "\
For a machine with an NVIDIA GPU: what is there, signs of life, the corpus, conformance with and without NVIDIA's libraries, compute-sanitizer,
bandwidth beside a copy by the driver, the benchmark programs beside JAX (where python3 has one that sees the GPU), products beside
cuBLAS, launch costs, slow levels, threads. Each step is a process with a time limit; its results go line by line to OUT/STEP.jsonl, and a
page of all there is to OUT/report.md. Whatever ends the run, only the step under way is lost. Without a GPU it says so and fails.

  --steps A,B         only these steps; `python3 tests/gpu/report.py --help` lists them
  --deadline SECONDS  time for all: steps that no longer fit are left out and named
  --resume            leave out steps that OUT has finished results of
  --jobs N            programs and cases side by side, where nothing is timed
  --quick             smaller sizes, fewer repetitions
  --small             a few programs of a few elements: tries the steps themselves
  --driver DIR        another libcuda.so.1, such as that of `target/simulated-gpu`
  --libraries DIR     folder of cuBLASLt, cuDNN and cuFFT (default: those that are found)
  --out DIR           where results go (default: target/gpu-report); the page of a whole run is kept in docs/results as well

For a machine without Rust, LLVM and this repository:

  --bundle            packs a folder, at most 40 MB, that needs Python 3.8 and the driver alone: the commands with LLVM in them, suites,
                      programs as text and as executables with machine code, and run.py, which takes the options above.
                      With --out DIR it goes there (default: target/gpu-bundle)
  --arch ARCH         architecture of the executables (default: sm_90a, for an H100 or H200; another GPU runs programs as text alone)
  --ptxas FILE        assembler, as for `cargo xtask ptxas`; where there is none, executables have PTX alone
  --check             tries the bundle in small on the simulated GPU, without Rust on the search path: it is ended in the middle and
                      resumed (CI does that, with --small)

There: `tar xzf xla-gpu.tar.gz && python3 xla-gpu/run.py --deadline 3000 --out results`, then bring `results` back.
";

/// Options with a value that `report.py` takes as they are.
const HANDED_ON: &[&str] = &["--steps", "--deadline", "--jobs", "--driver", "--libraries", "--python", "--platform"];

pub fn run(mut args: Arguments) -> Result<()> {
    let out: Option<PathBuf> = args.opt_value_from_str("--out")?;
    let small = args.contains("--small");
    if args.contains("--bundle") {
        let options = bundle::Options {
            out: out.map_or_else(|| Ok(bundle::work()), std::path::absolute)?,
            architecture: args.opt_value_from_str("--arch")?.unwrap_or_else(|| bundle::ARCHITECTURE.to_owned()),
            ptxas: args.opt_value_from_str("--ptxas")?,
            small,
        };
        let is_checked = args.contains("--check");
        finish(args)?;
        let archive = bundle::make(&options)?;
        return if is_checked { check::try_out(&archive) } else { Ok(()) };
    }
    let mut words: Vec<String> = Vec::new();
    for &option in HANDED_ON {
        if let Some(value) = args.opt_value_from_str::<_, String>(option)? {
            words.extend([option.to_owned(), value]);
        }
    }
    for flag in ["--resume", "--quick"] {
        words.extend(args.contains(flag).then(|| flag.to_owned()));
    }
    words.extend(small.then(|| "--small".to_owned()));
    finish(args)?;
    let out = out.map_or_else(|| Ok(root().join("target/gpu-report")), std::path::absolute)?;
    here(&out, &words)
}

/// Runs the report on this machine.
fn here(out: &Path, words: &[String]) -> Result<()> {
    packages::ensure()?;
    let xla = build::xla()?;
    let is_real = !words.iter().any(|word| word == "--driver" || word == "--platform");
    if is_real {
        let platforms = output(program(&xla, &["platforms"])).context("`xla platforms` failed")?;
        if let Some(reason) = no_gpu(&platforms) {
            bail!("there is no GPU to report on: {reason}");
        }
    }
    let tests = test_backend::tests_command("gpu")?;
    let mut command = report(&root().join("tests/gpu/report.py"));
    for (name, path) in
        [("--xla", xla), ("--tests", tests), ("--data", root().join("tests")), ("--out", out.to_owned())]
    {
        command.arg(name).arg(path);
    }
    command.args(words);
    let done = run_program(command);
    if is_real {
        keep(out)?;
    }
    done
}

/// Python with a script of the report.
fn report(script: &Path) -> Command {
    let mut command = program("python3", &[script]);
    // Nothing is written into the source folders.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Keeps the page and the results of all steps in the repository, under the device's name and the date.
fn keep(out: &Path) -> Result<()> {
    let page = out.join("report.md");
    let Ok(text) = fs::read_to_string(&page) else { return Ok(()) };
    let title = text.lines().next().unwrap_or_default().to_lowercase();
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let stem = root().join("docs/results").join(format!("gpu-{}", words.collect::<Vec<_>>().join("-")));
    fs::create_dir_all(stem.with_file_name(""))?;
    let mut files: Vec<PathBuf> = fs::read_dir(out)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    let lines: String = files.iter().map(fs::read_to_string).collect::<std::io::Result<_>>()?;
    fs::copy(&page, stem.with_extension("md")).with_context(|| page.display().to_string())?;
    fs::write(stem.with_extension("jsonl"), lines)?;
    println!("{}", stem.with_extension("md").display());
    Ok(())
}

/// The reason that `xla platforms` lists no device of platform gpu; `None` if it does.
fn no_gpu(platforms: &str) -> Option<String> {
    let line = platforms.lines().find_map(|line| line.strip_prefix("gpu: "));
    match line {
        None => Some("this build has no platform gpu".to_owned()),
        Some(line) if line.ends_with(" device") || line.ends_with(" devices") => None,
        Some(line) => Some(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_gpu_is_explained() {
        assert_eq!(no_gpu("cpu: 1 device\ngpu: 2 devices\n  device 0: H200\n"), None);
        let absent = no_gpu("gpu: cannot be used here: there is no driver\n").unwrap();
        assert_eq!(absent, "cannot be used here: there is no driver");
        assert_eq!(no_gpu("gpu-emulated: 1 device\n").unwrap(), "this build has no platform gpu");
    }
}
