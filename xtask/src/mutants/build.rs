//! Builds of the rewritten sources: a copy of the tree, and mutants dropped until rustc accepts it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use mutants::{Branch, Mutant, rewrite, support};
use serde_json::Value;

use super::report::Settled;
use super::run::{Kind, Program};
use crate::shell::{capture, cargo, output, program, root};

/// Copy of the sources that holds the mutants.
pub struct Tree {
    pub root: PathBuf,
    target: PathBuf,
    /// Mutants in the sources.
    pub made: BTreeSet<u32>,
    /// Number of mutants that rustc rejects.
    pub rejected: usize,
}

impl Tree {
    /// Copies the sources into a folder and writes the mutants into them.
    pub fn build(folder: &Path, mutants: &[Mutant]) -> Result<Tree> {
        let mut tree =
            Tree { root: folder.join("tree"), target: folder.join("build"), made: BTreeSet::new(), rejected: 0 };
        let mut files: BTreeMap<&str, Vec<&Mutant>> = BTreeMap::new();
        mutants.iter().for_each(|mutant| files.entry(&mutant.file).or_default().push(mutant));
        let packages: BTreeSet<&str> = mutants.iter().map(Mutant::package).collect();
        let roots: BTreeSet<String> = packages.iter().map(|package| format!("{package}/src/lib.rs")).collect();
        tree.copy(|name| files.contains_key(name) || roots.contains(name))?;
        for name in &roots {
            let text = fs::read_to_string(root().join(name))? + &support(mutants.len())?;
            write(&tree.root.join(name), text.as_bytes())?;
        }
        let mut rejected = Settled::rejected(folder);
        let mut dropped = HashSet::new();
        for mutant in mutants {
            if rejected.has(mutant)? {
                dropped.insert(mutant.id);
            }
        }
        loop {
            let branches = tree.write(&files, &dropped)?;
            let errors = match tree.errors("check", &packages)? {
                // Lints of the optimizer may reject a mutant that the type checker accepts.
                errors if errors.is_empty() => tree.errors("build", &packages)?,
                errors => errors,
            };
            let mut blamed: Vec<u32> = errors.iter().flat_map(|error| blamed(&branches, error)).collect();
            blamed.retain(|&id| dropped.insert(id));
            for mutant in mutants.iter().filter(|mutant| blamed.contains(&mutant.id)) {
                rejected.add(mutant)?;
            }
            println!("{} errors; {} mutants dropped", errors.len(), dropped.len());
            if errors.is_empty() {
                tree.made = branches.values().flatten().map(|branch| branch.id).collect();
                tree.rejected = dropped.len();
                return Ok(tree);
            }
            if blamed.is_empty() {
                bail!("the rewritten sources do not compile: {}", errors[0].message);
            }
        }
    }

    /// Copies the files that git tracks, except the rewritten ones.
    fn copy(&self, is_rewritten: impl Fn(&str) -> bool) -> Result<()> {
        let list = program("git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        for name in capture(list)?.split('\0').filter(|name| !name.is_empty() && !is_rewritten(name)) {
            let from = root().join(name);
            if from.is_file() {
                write(&self.root.join(name), &fs::read(from)?)?;
            }
        }
        Ok(())
    }

    fn write(
        &self,
        files: &BTreeMap<&str, Vec<&Mutant>>,
        dropped: &HashSet<u32>,
    ) -> Result<BTreeMap<String, Vec<Branch>>> {
        let mut branches = BTreeMap::new();
        for (name, mutants) in files {
            let source = fs::read_to_string(root().join(name)).with_context(|| format!("cannot read {name}"))?;
            let done = rewrite(&source, mutants, dropped).with_context(|| format!("in {name}"))?;
            write(&self.root.join(name), done.text.as_bytes())?;
            branches.insert((*name).to_owned(), done.branches);
        }
        Ok(branches)
    }

    /// Cargo in the copy, with a target folder of its own.
    fn cargo(&self, args: &[&str], packages: &BTreeSet<&str>) -> Command {
        let mut command = cargo(args);
        command.args(packages.iter().flat_map(|package| ["--package", package]));
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        // Optimizing the rewritten crates takes longer than their tests do.
        command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
        command.env_remove("CARGO_MANIFEST_DIR");
        command
    }

    /// Errors of the packages' libraries in `cargo check` or `cargo build`.
    fn errors(&self, command: &str, packages: &BTreeSet<&str>) -> Result<Vec<CompileError>> {
        let messages = messages(self.cargo(&[command, "--lib", "--message-format", "json"], packages))?;
        let errors = messages.iter().map(|value| &value["message"]).filter(|message| message["level"] == "error");
        Ok(errors.filter(|message| message["spans"].as_array().is_some_and(|s| !s.is_empty())).map(error).collect())
    }

    /// Builds the tests of packages and returns the programs that run them.
    pub fn tests(&self, packages: &BTreeSet<&str>) -> Result<Vec<Program>> {
        let messages = messages(self.cargo(&["test", "--no-run", "--message-format", "json"], packages))?;
        if messages.last().is_none_or(|last| last["success"] != true) {
            bail!("the tests of the rewritten sources do not compile; see {}", self.root.display());
        }
        let programs = messages.iter().filter_map(|value| {
            let kind = match (value["profile"]["test"] == true, value["target"]["name"].as_str()?) {
                (true, _) => Kind::Tests,
                (false, "xla-tests") => Kind::Conformance,
                (false, _) => return None,
            };
            let folder = Path::new(value["manifest_path"].as_str()?).parent()?.to_path_buf();
            Some(Program { kind, path: PathBuf::from(value["executable"].as_str()?), folder })
        });
        Ok(programs.collect())
    }
}

/// An error of rustc and its places, as file and bytes.
struct CompileError {
    message: String,
    /// Whether a match lacks an arm.
    lacks_arm: bool,
    places: Vec<(String, usize, usize)>,
}

fn error(message: &Value) -> CompileError {
    let spans = message["spans"].as_array().into_iter().flatten();
    let place = |span: &Value| {
        let byte = |key: &str| span[key].as_u64().unwrap_or(0) as usize;
        (span["file_name"].as_str().unwrap_or_default().to_owned(), byte("byte_start"), byte("byte_end"))
    };
    let (first, other): (Vec<_>, Vec<_>) = spans.partition(|span| span["is_primary"] == true);
    let places = first.into_iter().chain(other).map(place).collect();
    let lacks_arm = message["code"]["code"] == "E0004";
    CompileError { lacks_arm, message: message["rendered"].as_str().unwrap_or_default().to_owned(), places }
}

/// Mutants that can cause an error: the one whose text has it, or all of the smallest part of the source around it.
fn blamed(branches: &BTreeMap<String, Vec<Branch>>, error: &CompileError) -> Vec<u32> {
    let within = |range: &std::ops::Range<usize>, start: usize, end: usize| range.start <= start && end <= range.end;
    for (file, start, end) in &error.places {
        let here = branches.get(file).into_iter().flatten();
        let own: Vec<u32> = here.filter(|b| within(&b.own, *start, *end)).map(|branch| branch.id).collect();
        if !own.is_empty() && !error.lacks_arm {
            return own;
        }
    }
    for (file, start, end) in &error.places {
        let around: Vec<_> = branches
            .get(file)
            .into_iter()
            .flatten()
            .filter(|b| within(&b.around, *start, *end))
            .filter(|b| b.is_arm || !error.lacks_arm)
            .collect();
        if let Some(least) = around.iter().map(|branch| branch.around.len()).min() {
            return around.iter().filter(|b| b.around.len() == least).map(|b| b.id).collect();
        }
    }
    Vec::new()
}

/// Messages of a cargo command, whether or not it succeeds.
fn messages(mut command: Command) -> Result<Vec<Value>> {
    println!("\n$ {}", crate::shell::line(&command));
    let done = command.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&done.stdout);
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Writes a file unless it has that text already: cargo rebuilds by modification time.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Whether cargo-mutants, which lists the mutants, is installed.
pub fn has_cargo_mutants() -> bool {
    output(cargo(&["mutants", "--version"])).is_some()
}
