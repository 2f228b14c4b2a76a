//! `cargo xtask ptxas`: assembles every program for GPUs, reports the resource usage of its kernels, and estimates from
//! machine code how long they take. No GPU is needed.
//!
//! ```text
//! wheel      NVIDIA's tools                       roofline   estimates of the benchmark programs (crate sass-model)
//! ```

mod roofline;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pico_args::Arguments;
use rayon::prelude::*;
use sass_model::kernel::Kernel;
use sass_model::model::Measured;
use sass_model::rows::{PROGRAMS, Row, Summary};
use serde_json::Value;

use crate::corpus::{self, problem};
use crate::shell::{program, root, run as run_program};
use crate::{build, finish, packages};
use roofline::Roofline;
pub use wheel::{NVDISASM, PTXAS};

pub const HELP: &str = "\
Compiles programs for GPUs and assembles their kernels with NVIDIA's ptxas: registers, spills and shared memory of each program.
Fails when a program cannot be assembled, when a kernel spills, and when products of warp groups wait for each other. The rows of
all programs go to target/ptxas/ARCH.txt; shown are failures, spills, and all rows of a short list.

  --arch ARCH[,ARCH]  architectures (default sm_80,sm_90,sm_90a,sm_100; with --roofline sm_90,sm_90a)
  --filter TEXT       only programs whose name contains TEXT
  --quick             tests/ and the benchmark programs of this repository alone, without those of many large kernels
  --roofline          the benchmark programs of this repository (with --quick those of tests/, too), whose machine code is
                      disassembled: instructions, loads in flight, tensor instructions and spills of each kernel and inner loop,
                      and how long it takes at least. Fails when a kernel is worse than docs/results/roofline-ARCH.txt has it
                      and, with no reason in that table, when it is slower by instructions than by memory, or less than a third
                      of an inner loop with tensor instructions are such. Every loop goes to target/ptxas/roofline-ARCH.txt
  --update            with --roofline: writes that table anew, and keeps its reasons
  --ptxas FILE        assembler; else the one in PATH (not with --roofline), else one fetched into target/ptxas: NVIDIA's wheel
                      nvidia-cuda-nvcc-cu12 12.9.86 (40 MB, under the licence of the CUDA toolkit)
  --nvdisasm FILE     disassembler; else one fetched likewise: nvidia-cuda-nvdisasm 13.5.37 (5 MB)
  --xla FILE          the `xla` command to compile with (default: builds it)
  --jobs N            number of programs at a time (default: the number of CPUs)

The programs are those of ../shared/bench and ../shared/corpus where they are there, else those of tests/corpus; and those of tests/.
";

const ARCHITECTURES: &str = "sm_80,sm_90,sm_90a,sm_100";
/// Architectures with a table: the ones that programs are compiled for in process on an H100, and for files.
const TABLE_ARCHITECTURES: &str = "sm_90,sm_90a";

/// Greatest length of a list of programs that is shown whole.
const SHORT: usize = 60;

pub fn run(mut args: Arguments) -> Result<()> {
    let architectures: Option<String> = args.opt_value_from_str("--arch")?;
    let filter: Option<String> = args.opt_value_from_str("--filter")?;
    let ptxas: Option<PathBuf> = args.opt_value_from_str("--ptxas")?;
    let nvdisasm: Option<PathBuf> = args.opt_value_from_str("--nvdisasm")?;
    let xla: Option<PathBuf> = args.opt_value_from_str("--xla")?;
    let jobs: Option<usize> = args.opt_value_from_str("--jobs")?;
    let quick = args.contains("--quick");
    let (estimates, update) = (args.contains("--roofline"), args.contains("--update"));
    finish(args)?;
    if update && (!estimates || filter.is_some() || quick) {
        bail!("--update goes with --roofline, and without --filter and --quick");
    }
    let roofline = match estimates {
        true => {
            Some(Roofline { nvdisasm: NVDISASM.named_or_fetched(nvdisasm)?, update, whole: filter.is_none() && !quick })
        }
        false => None,
    };
    let tools = Tools {
        // Other assemblers write other code than the one that the table is of.
        ptxas: if estimates { PTXAS.named_or_fetched(ptxas)? } else { PTXAS.find_or_fetch(ptxas)? },
        xla: match xla {
            Some(xla) => fs::canonicalize(&xla).with_context(|| xla.display().to_string())?,
            None => built()?,
        },
        jobs: jobs.unwrap_or_else(default_jobs).max(1),
        roofline,
    };
    let mut programs = programs(quick || estimates)?;
    programs.retain(|(name, _)| filter.as_ref().is_none_or(|text| name.contains(text)));
    programs.retain(|(name, _)| quick || !estimates || name.starts_with(PROGRAMS));
    programs.retain(|(name, _)| !quick || !is_slow(name));
    let default = if estimates { TABLE_ARCHITECTURES } else { ARCHITECTURES };
    check(&tools, &programs, architectures.as_deref().unwrap_or(default))
}

/// The quick form with the benchmark programs' estimates, as far as the tools can be had; for CI, which need not have a
/// network.
pub fn quick_if_possible() -> Result<()> {
    let (ptxas, roofline) = match (PTXAS.fetched(), NVDISASM.fetched()) {
        (Ok(ptxas), Ok(nvdisasm)) => (Ok(ptxas), Some(Roofline { nvdisasm, update: false, whole: false })),
        (_, Err(error)) => {
            println!("no estimates are made, there is no nvdisasm: {error:#}");
            (PTXAS.find_or_fetch(None), None)
        }
        (Err(_), Ok(_)) => (PTXAS.find_or_fetch(None), None),
    };
    match ptxas {
        Ok(ptxas) => {
            let tools = Tools { ptxas, xla: built()?, jobs: default_jobs(), roofline };
            let mut programs = programs(true)?;
            programs.retain(|(name, _)| !is_slow(name));
            check(&tools, &programs, TABLE_ARCHITECTURES)
        }
        Err(error) => {
            println!("left out, there is no ptxas: {error:#}");
            Ok(())
        }
    }
}

fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Tools that compile the programs.
struct Tools {
    ptxas: PathBuf,
    xla: PathBuf,
    jobs: usize,
    /// Treatment of the benchmark programs' machine code, if it is disassembled.
    roofline: Option<Roofline>,
}

fn built() -> Result<PathBuf> {
    packages::ensure()?;
    build::xla()
}

/// Suite of programs for several devices, which the command refuses.
const SEVERAL_DEVICES: &str = "multi_device";

/// Programs with many large kernels, by the beginnings of their names: seconds in all.
const SLOW: &[&str] = &["bench/attention_backward_", "bench/layer_", "bench/resnet18_b64_"];

fn is_slow(name: &str) -> bool {
    SLOW.iter().any(|slow| name.starts_with(slow))
}

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
    collect(&corpus::unpack("bench_gpu")?, "bench", &mut found)?;
    let large = root.join("target/ptxas/large");
    if large.exists() {
        fs::remove_dir_all(&large)?;
    }
    let script = root.join("tests/corpus/generate/bench/make_large_programs.py");
    run_program(program("python3", &[&script, &large]))?;
    collect(&large, "large", &mut found)?;
    if !quick {
        match shared.join("corpus").exists() {
            true => collect(&shared.join("corpus"), "corpus", &mut found)?,
            false => {
                for suite in corpus::SUITES.iter().filter(|suite| **suite != SEVERAL_DEVICES) {
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
    let mut problems = Vec::new();
    for architecture in architectures.split(',') {
        let mut rows = assemble_all(tools, programs, architecture)?;
        if let Some(roofline) = &tools.roofline {
            roofline.estimate(&mut rows, architecture)?;
        }
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let file = root().join(format!("target/ptxas/{architecture}.txt"));
        fs::write(&file, format!("{}\n{text}", Row::HEAD)).with_context(|| file.display().to_string())?;
        println!("\n{architecture}\n{}", Row::HEAD);
        rows.iter().filter(|row| rows.len() <= SHORT || row.is_notable()).for_each(|row| println!("{row}"));
        let total = Summary::of(&rows);
        println!("{architecture}: {total}");
        if total.failures > 0 {
            problems.push(format!("{} programs cannot be assembled", total.failures));
        }
        if total.spilling > 0 {
            problems.push(format!("{} kernels spill", total.spilling));
        }
        if let Some(Err(error)) = tools.roofline.as_ref().map(|roofline| roofline.report(&rows, architecture)) {
            problems.push(format!("{error:#}"));
        }
    }
    if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("; ")) }
}

fn assemble_all(tools: &Tools, programs: &[(String, PathBuf)], architecture: &str) -> Result<Vec<Row>> {
    let scratch = root().join("target/ptxas/out");
    fs::create_dir_all(&scratch)?;
    let row = |(name, path): &(String, PathBuf)| {
        let folder = scratch.join(rayon::current_thread_index().unwrap_or_default().to_string());
        let outcome = assemble(tools, (name, path), architecture, &folder).map_err(|error| format!("{error:#}"));
        Row { name: name.clone(), outcome }
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(tools.jobs).build()?;
    let mut rows: Vec<Row> = pool.install(|| programs.par_iter().map(row).collect());
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(rows)
}

/// Compiles a program into an empty folder, and reads the assembler's output.
fn assemble(tools: &Tools, (name, path): (&str, &Path), architecture: &str, folder: &Path) -> Result<Vec<Measured>> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let mut command = program(&tools.xla, &["compile"]);
    // Without the alternatives that a GPU would measure: the usual kernels.
    command.arg(path).args(["--platform", "gpu", "--target", architecture, "--threads", "1", "--no-autotune"]);
    command.arg("--ptxas").arg(&tools.ptxas).arg("-o").arg(folder);
    if let Some(problem) = problem(command) {
        bail!("{problem}");
    }
    let report = folder.join("kernels.json");
    let text = fs::read_to_string(&report).with_context(|| report.display().to_string())?;
    let json: Value = serde_json::from_str(&text)?;
    if let Some(loss) = serialized(&json) {
        bail!("{loss}");
    }
    let kernels = json["kernels"].as_array().context("kernels.json lists no kernels")?.iter();
    let kernels: Vec<Kernel> = kernels.map(Kernel::read).collect::<Result<_>>()?;
    match &tools.roofline {
        Some(_) if name.starts_with(PROGRAMS) => Roofline::with_code(kernels, folder),
        Some(_) | None => Ok(kernels.into_iter().map(|kernel| Measured { kernel, ..Measured::default() }).collect()),
    }
}

/// The assembler's word that products of warp groups wait for each other: it could not leave their registers alone.
fn serialized(json: &Value) -> Option<&str> {
    let warnings = json["warnings"].as_array()?.iter().filter_map(Value::as_str);
    warnings.into_iter().find(|warning| warning.contains("wgmma") && warning.contains("serialized"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_that_wait_for_each_other_are_told() {
        let loss = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ...";
        let json =
            |warning: &str| serde_json::json!({ "warnings": ["ptxas warning : another", warning], "kernels": [] });
        assert_eq!(serialized(&json(loss)), Some(loss));
        assert_eq!(serialized(&json("ptxas info    : (C7509) Potential Performance Loss: something new")), None);
    }

    #[test]
    fn programs_of_the_repository_are_found_by_name() {
        let mut found = Vec::new();
        collect(&root().join("tests/regressions"), "tests/regressions", &mut found).unwrap();
        assert!(found.iter().any(|(name, _)| name == "tests/regressions/acosh_below_one"), "{found:?}");
    }
}
