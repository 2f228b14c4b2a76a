//! The house rules that neither the compiler nor clippy checks; `cargo xtask tidy` prints the findings.

mod circles;
mod layers;
mod lexer;
mod manifest;
mod prose;
mod references;
mod source;
mod text;
mod unit_tests;
mod unsafe_code;
mod words;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Folders that the root manifest excludes from the workspace.
const APART: &[&str] = &["fuzz/", "tests/downstream/", "examples/"];

/// One violation.
#[derive(Debug, PartialEq)]
pub struct Finding {
    /// Relative to the root of the repository.
    path: String,
    /// From 1; 0 when the finding is about the whole file.
    line: usize,
    rule: &'static str,
    /// Fault and remedy.
    advice: String,
}

impl Finding {
    fn failure(path: &str, line: usize, rule: &'static str, advice: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, rule, advice: advice.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { path, line, rule, advice } = self;
        match line {
            0 => write!(f, "{path}: {rule}: {advice}"),
            line => write!(f, "{path}:{line}: {rule}: {advice}"),
        }
    }
}

/// Circles of imports between the files of each crate, as text.
pub fn circles(root: &Path) -> Result<String> {
    let mut text = String::new();
    for (folder, files) in &sources(root, &committed_files(root)?) {
        let circles = circles::circles(files);
        let count: usize = circles.iter().map(Vec::len).sum();
        writeln!(text, "{folder}: {} circles of {count} of {} files", circles.len(), files.len())?;
        for circle in circles {
            writeln!(text, "  {}: {}", circle.len(), circle.join(" "))?;
        }
    }
    Ok(text)
}

/// The Rust files of each crate, below its `src`, with their contents.
fn sources<'f>(root: &Path, files: &'f [String]) -> BTreeMap<&'f str, Vec<(String, String)>> {
    let mut sources: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for path in files.iter().filter(|path| path.ends_with(".rs")) {
        let Some((folder, below)) = path.split_once("/src/") else { continue };
        let Ok(content) = fs::read_to_string(root.join(path)) else { continue };
        sources.entry(folder).or_default().push((below.to_owned(), content));
    }
    sources
}

/// Findings of all rules in the working tree at `root`.
pub fn findings(root: &Path) -> Result<Vec<Finding>> {
    let listed = unsafe_code::listed(&fs::read_to_string(root.join(unsafe_code::LIST))?);
    let mut found = unsafe_code::check_list(&listed, |path| fs::read_to_string(root.join(path)).ok());
    let files = committed_files(root)?;
    let mut comments = prose::Counts::default();
    for path in &files {
        let path = path.as_str();
        // Deleted files that are not committed yet, and files that are no text.
        let Ok(content) = fs::read_to_string(root.join(path)) else { continue };
        found.extend(text::check(path, &content));
        if path.ends_with(".rs") {
            let lines = lexer::lines(&content);
            found.extend(source::check(path, &content, &lines));
            found.extend(unsafe_code::check(path, &lines, &listed));
            found.extend(references::check_comments(path, &lines, &files));
            found.extend(words::check(path, &lines));
            found.extend(prose::check_openings(path, &lines));
            comments.add(path, &lines);
        }
        if path.ends_with(".md") {
            found.extend(references::check_text(path, &content, &files));
        }
        // Workspaces of their own inherit nothing.
        let is_member = !APART.iter().any(|folder| path.starts_with(folder));
        if path.ends_with("/Cargo.toml") && is_member {
            found.extend(manifest::check(path, &content));
        }
    }
    let (sources, metadata) = (sources(root, &files), metadata(root)?);
    for (folder, files) in &sources {
        found.extend(circles::check(folder, files));
    }
    found.extend(unit_tests::check(&metadata, &sources)?);
    found.extend(prose::check_budget(&comments, &fs::read_to_string(root.join(prose::BUDGET))?));
    found.extend(layers::check(&metadata)?);
    found.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok(found)
}

/// The files that git has or would take, with `/` between folders.
fn committed_files(root: &Path) -> Result<Vec<String>> {
    let args = ["-c", "core.quotepath=off", "ls-files", "--cached", "--others", "--exclude-standard"];
    let list = output(Command::new("git").args(args).current_dir(root))?;
    Ok(list.lines().map(str::to_owned).collect())
}

/// `cargo metadata` of the workspace.
fn metadata(root: &Path) -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["metadata", "--no-deps", "--format-version", "1"];
    Ok(serde_json::from_str(&output(Command::new(cargo).args(args).current_dir(root))?)?)
}

/// Standard output of a command that succeeds.
fn output(command: &mut Command) -> Result<String> {
    let done = command.output().with_context(|| format!("{command:?} cannot run"))?;
    ensure!(done.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&done.stderr));
    Ok(String::from_utf8(done.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let failures: Vec<String> = findings(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .unwrap()
            .iter()
            .map(Finding::to_string)
            .collect();
        assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    }

    #[test]
    fn findings_can_be_clicked() {
        assert_eq!(Finding::failure("a/b.rs", 3, "print", "do").to_string(), "a/b.rs:3: print: do");
        assert_eq!(Finding::failure("a/b.rs", 0, "size", "do").to_string(), "a/b.rs: size: do");
    }
}
