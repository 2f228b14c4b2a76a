//! `cargo xtask tidy`: the house rules that neither the compiler nor clippy checks.

mod circles;
mod layers;
mod lexer;
mod manifest;
mod prose;
mod references;
mod source;
mod text;
mod unsafe_code;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use anyhow::{Context, Result, bail};
use pico_args::Arguments;

use crate::shell::{metadata, output, program, root};

/// Folders that the root manifest excludes from the workspace.
const APART: &[&str] = &["fuzz/", "tests/downstream/", "examples/"];

pub const HELP: &str = "\
Each finding is `FILE:LINE: rule: what to do`. `--circles` prints the circles of imports of each
crate instead. The rules:

  module-doc      the first line of a Rust file is a `//!` sentence
  file-size       600 lines a file at most (tables and generated code exempt by name)
  function-size   80 lines a function at most, unless most of them are arms of a match or text
  width           120 columns in code and comments; only strings may be longer
  circle          no files of a crate that import each other
  reference       a file that a comment or a document names is there
  word            no word in names that gave way to the field's
  doc-begin       documentation begins with a verb or a noun, not with What, How, Where, That of, The same
  prose           phrasings that are hard to read (xtask/src/tidy/prose/markers.rs) stay within xtask/prose-budget.txt
  leftover        no todo!, unimplemented! or dbg!
  print           no printing in libraries
  public-docs     xla-hlo, xla-stablehlo, xla-passes, xla-service and xla ask the compiler for missing documentation
  unsafe          only in the files of xtask/unsafe-files.txt, each use under a comment with `SAFETY:`
  machine-path    no path of a developer's machine in any committed text
  manifest        dependency versions and lints stand in the root Cargo.toml alone
  layers          the one direction of dependency between the crates, LLVM only where it belongs
";

/// One violation.
#[derive(Debug, PartialEq)]
struct Finding {
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

pub fn run(mut args: Arguments) -> Result<()> {
    let lists_circles = args.contains("--circles");
    crate::finish(args)?;
    if lists_circles { print_circles() } else { check() }
}

/// Prints the circles of imports between the files of each crate.
fn print_circles() -> Result<()> {
    for (folder, files) in &sources(&committed_files()?) {
        let circles = circles::circles(files);
        let count: usize = circles.iter().map(Vec::len).sum();
        println!("{folder}: {} circles of {count} of {} files", circles.len(), files.len());
        for circle in circles {
            println!("  {}: {}", circle.len(), circle.join(" "));
        }
    }
    Ok(())
}

/// The Rust files of each crate, below its `src`, with their contents.
fn sources(files: &[String]) -> BTreeMap<&str, Vec<(String, String)>> {
    let mut sources: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for path in files.iter().filter(|path| path.ends_with(".rs")) {
        let Some((folder, below)) = path.split_once("/src/") else { continue };
        let Ok(content) = fs::read_to_string(root().join(path)) else { continue };
        sources.entry(folder).or_default().push((below.to_owned(), content));
    }
    sources
}

/// Prints findings and fails if a rule is broken.
pub fn check() -> Result<()> {
    let findings = findings()?;
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy: {} rules broken; `cargo xtask tidy --help` lists the rules", findings.len());
    }
    println!("tidy: nothing to mend");
    Ok(())
}

/// Everything that the rules find in the working tree.
fn findings() -> Result<Vec<Finding>> {
    let listed = unsafe_code::listed(&fs::read_to_string(root().join(unsafe_code::LIST))?);
    let mut found = unsafe_code::check_list(&listed, |path| fs::read_to_string(root().join(path)).ok());
    let files = committed_files()?;
    let mut comments = prose::Counts::default();
    for path in &files {
        let path = path.as_str();
        // Deleted files that are not committed yet, and files that are no text.
        let Ok(content) = fs::read_to_string(root().join(path)) else { continue };
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
    for (folder, files) in &sources(&files) {
        found.extend(circles::check(folder, files));
    }
    found.extend(prose::check_budget(&comments, &fs::read_to_string(root().join(prose::BUDGET))?));
    found.extend(layers::check(&metadata()?)?);
    found.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok(found)
}

/// The files that git has or would take, with `/` between folders.
fn committed_files() -> Result<Vec<String>> {
    let args = ["-c", "core.quotepath=off", "ls-files", "--cached", "--others", "--exclude-standard"];
    let list = output(program("git", &args)).context("`git ls-files` failed: tidy runs in a git checkout")?;
    Ok(list.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let failures: Vec<String> = findings().unwrap().iter().map(Finding::to_string).collect();
        assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    }

    #[test]
    fn findings_can_be_clicked() {
        assert_eq!(Finding::failure("a/b.rs", 3, "print", "do").to_string(), "a/b.rs:3: print: do");
        assert_eq!(Finding::failure("a/b.rs", 0, "file-size", "do").to_string(), "a/b.rs: file-size: do");
    }
}
