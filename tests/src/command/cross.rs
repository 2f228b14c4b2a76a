//! `xla-tests cross`: runs programs of the corpus, compiled ahead of time, on emulated processors.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

use rayon::prelude::*;
use xla::Platform;
use xla::cpu::{CodeGenerators, CpuOptions, platform_with};
use xla_tests::corpus;
use xla_tests::cross::{self, CUSTOM_CALL, CrossRun, CrossTarget, GNU_LINKS, TARGETS, Verdict};

use super::Outcome;

/// Options.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Targets, by name [default: all]
    targets: Vec<String>,
    /// Suites of the corpus
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "models")]
    suite: Vec<String>,
    /// Only cases whose name contains this
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    /// Maximum number of threads of a call; a single thread executes all parts, in descending order
    #[arg(long, value_name = "N", default_value = "3")]
    threads: NonZeroUsize,
    /// Also link a program for each of some triples with GNU ld
    #[arg(long)]
    gnu_ld: bool,
}

/// Runs all cases on all targets; fails if any result is wrong.
pub fn run(arguments: Arguments) -> Outcome {
    let targets = chosen(&arguments.targets)?;
    let platform = platform_with(CpuOptions { generators: CodeGenerators::all(), ..CpuOptions::default() });
    let folder = std::env::temp_dir().join(format!("xla-cross-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (mut failed, mut tried) = (false, 0);
    for target in targets {
        if !target.runs_here() {
            println!("{}: this machine's processor cannot run it", target.name);
            continue;
        }
        for suite in arguments.suite.iter().map(String::as_str).chain([CUSTOM_CALL]) {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            let mut names = if suite == CUSTOM_CALL { vec![suite.to_string()] } else { corpus::names(suite)? };
            names.retain(|name| arguments.case.as_ref().is_none_or(|part| name.contains(part)));
            if names.is_empty() {
                continue;
            }
            let check = |name: &String| -> Result<Verdict, Box<dyn std::error::Error + Send + Sync>> {
                let folder = folder.join(name);
                std::fs::create_dir_all(&folder)?;
                let case = match suite {
                    CUSTOM_CALL => cross::custom_call(&folder)?,
                    _ => corpus::case(suite, name)?,
                };
                Ok(CrossRun { platform: &*platform, folder, threads: arguments.threads }.check(&case, target))
            };
            let verdicts: Vec<_> = names.par_iter().map(check).collect();
            for (name, verdict) in names.iter().zip(verdicts) {
                let (word, text) = match verdict.map_err(|error| error.to_string())? {
                    Verdict::Agrees => ("agree", None),
                    Verdict::Refused(text) => ("refused", Some(text)),
                    Verdict::NeedsBuiltins(text) => ("not linked without builtins", Some(text)),
                    Verdict::Emulator(text) => ("stopped by the emulator", Some(text)),
                    Verdict::Failed(text) => ("FAILED", Some(text)),
                };
                failed |= word == "FAILED";
                tried += 1;
                *counts.entry(word).or_default() += 1;
                if let Some(text) = text {
                    println!("{} {suite}/{name}: {word}: {text}", target.name);
                }
            }
            let counts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
            println!("{} {suite}: {}", target.name, counts.join(", "));
        }
    }
    if arguments.gnu_ld {
        failed |= !links(&*platform, &folder)?;
    }
    std::fs::remove_dir_all(&folder)?;
    if tried == 0 {
        return Err("no case was run: no name contains that text, or no target is one of this machine".into());
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// Links a program for each triple with GNU ld; returns whether all links succeed.
fn links(platform: &dyn Platform, folder: &Path) -> Result<bool, Box<dyn std::error::Error>> {
    let mut failed = 0;
    for link in GNU_LINKS {
        let folder = folder.join(link.triple);
        std::fs::create_dir_all(&folder)?;
        if let Err(error) = link.check(platform, &folder) {
            println!("{} GNU ld: FAILED: {error}", link.triple);
            failed += 1;
        }
    }
    println!("GNU ld: {} triples link, {failed} do not", GNU_LINKS.len() - failed);
    Ok(failed == 0)
}

fn chosen(names: &[String]) -> Result<Vec<&'static CrossTarget>, String> {
    if names.is_empty() {
        return Ok(TARGETS.iter().collect());
    }
    let find = |name: &String| {
        let known = || TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
        let found = TARGETS.iter().find(|target| target.name == *name);
        found.ok_or_else(|| format!("no target is called {name:?}; there are {}", known()))
    };
    names.iter().map(find).collect()
}
