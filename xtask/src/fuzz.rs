//! `cargo xtask fuzz`: random programs against the evaluator, and the fuzz targets where cargo-fuzz is installed.

use std::fs;

use anyhow::{Context, Result, bail};
use pico_args::Arguments;

use crate::shell::{cargo, output, program, root, run as run_program};
use crate::{build, finish, packages};

pub const HELP: &str = "\
Compares random programs of all families: the evaluator, the evaluator after the passes, the platform with and without
optimisation, a second compilation, the text form and the protobuf. Failing programs are shrunk and kept in target/fuzz, even if the
process that ran them died. Then runs each target of fuzz/ for as long, if cargo-fuzz is installed (`cargo install cargo-fuzz`):
text, proto, npz, passes, bytecode and mlir, each from seeds of the corpus, within 10 s and 2 GiB an input. Findings
are in fuzz/artifacts/TARGET.

  cargo xtask fuzz --seconds 600                   all of it, ten minutes each
  cargo xtask fuzz --target none --programs 2000   random programs alone, 2,000 of each family
  cargo xtask fuzz --target proto --seconds 60     one target alone

  --seconds N      duration (default 60), and as long for each target
  --programs N     number of programs of each family instead
  --seed N         first seed, to repeat a run
  --family NAME    only programs of this family
  --idioms         only programs of idioms of machine learning at the edges of vectors: `--family idioms`
  --devices N      instead: programs for 2 to N devices, with collectives, against the evaluator of all devices
  --platform NAME  the platform (default cpu)
  --target-cpu CPU platform cpu generates code for another processor, as for `cargo xtask test-backend`
  --sanitize       memory of platform cpu that nobody has written to holds something else in each of two runs
  --each-pass      instead of the platform, each pass alone: it keeps results, and comes to rest
  --jobs N         number of programs run at the same time (default 1)
  --target NAME    only this target of fuzz/ and no random programs; or `none` of them
";

/// Options that are handed on to `xla-tests fuzz`.
const HANDED_ON: &[&str] = &["--programs", "--seed", "--family", "--devices", "--platform", "--target-cpu", "--jobs"];

pub fn run(mut args: Arguments) -> Result<()> {
    let seconds: Option<u64> = args.opt_value_from_str("--seconds")?;
    let target: Option<String> = args.opt_value_from_str("--target")?;
    let mut words = vec!["fuzz".to_owned(), "--keep".to_owned(), "target/fuzz".to_owned()];
    for &name in HANDED_ON {
        if let Some(value) = args.opt_value_from_str::<_, String>(name)? {
            words.extend([name.to_owned(), value]);
        }
    }
    if args.contains("--idioms") {
        words.extend(["--family", "idioms"].map(str::to_owned));
    }
    for flag in ["--each-pass", "--sanitize"] {
        words.extend(args.contains(flag).then(|| flag.to_owned()));
    }
    finish(args)?;
    packages::ensure()?;
    let counted = words.iter().any(|word| word == "--programs");
    if !counted || seconds.is_some() {
        words.extend(["--seconds".to_owned(), seconds.unwrap_or(60).to_string()]);
    }
    let mut failed = Vec::new();
    if target.as_deref().is_none_or(|target| target == "none") {
        failed.extend(run_program(program(build::xla_tests()?, &words)).is_err().then(|| "random programs".to_owned()));
    }
    failed.extend(targets(target.as_deref(), seconds.unwrap_or(60))?);
    if !failed.is_empty() {
        bail!("findings of {}; see above, target/fuzz and fuzz/artifacts", failed.join(", "));
    }
    Ok(())
}

/// Runs fuzz targets; returns the names of the targets with findings.
fn targets(only: Option<&str>, seconds: u64) -> Result<Vec<String>> {
    let all = names()?;
    let chosen: Vec<&String> = all.iter().filter(|name| only.is_none_or(|only| only == *name)).collect();
    if chosen.is_empty() {
        return match only {
            Some("none") | None => Ok(Vec::new()),
            Some(name) => bail!("fuzz/fuzz_targets has no {name}; it has {}", all.join(", ")),
        };
    }
    if output(cargo(&["fuzz", "--version"])).is_none() {
        if let Some(name) = only {
            bail!("target {name} needs cargo-fuzz, which is not installed: `cargo install cargo-fuzz`");
        }
        println!("\ncargo-fuzz is not installed, so the targets of fuzz/ are left out: `cargo install cargo-fuzz`");
        return Ok(Vec::new());
    }
    run_program(program("python3", &["fuzz/seeds.py"]))?;
    let mut failed = Vec::new();
    for name in chosen {
        // Without a sanitizer: the code under test is safe Rust, and a stable compiler builds it.
        let mut command = cargo(&["fuzz", "run", "--sanitizer", "none", name, "--"]);
        command.arg(format!("-max_total_time={seconds}"));
        command.args(["-rss_limit_mb=2048", "-timeout=10", "-max_len=16384", "-verbosity=1", "-print_final_stats=1"]);
        if run_program(command).is_err() {
            failed.push(format!("target {name}"));
        }
    }
    Ok(failed)
}

/// The fuzz targets, sorted.
fn names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("fuzz/fuzz_targets")).context("fuzz/fuzz_targets")? {
        names.extend(entry?.path().file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_is_a_program_of_the_manifest() {
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        for name in names().unwrap() {
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
        }
        let error = targets(Some("pudding"), 1).unwrap_err().to_string();
        assert!(error.contains("no pudding") && error.contains("text"), "{error}");
    }
}
