//! `cargo xtask book`: the book, as pages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pico_args::Arguments;

use crate::shell::{capture, cargo, line, output, program, root, run as run_program};
use crate::{build, finish, packages};

pub const HELP: &str = "\
Generates docs/src/operations.md from the op table and docs/src/internals/pass-reference.md from the registry of passes, then builds the
book with mdBook into target/book. Where there is no mdBook it is built from crates.io into target/tools, which takes about a minute once.
Fails where a link leads nowhere, and where mdBook has a warning.

  --check          do not write the generated pages: fail where one is out of date
";

pub fn run(mut args: Arguments) -> Result<()> {
    let is_check = args.contains("--check");
    finish(args)?;
    packages::ensure()?;
    let mut words = vec!["operations", "docs/src/operations.md"];
    words.extend(is_check.then_some("--check"));
    run_program(program(build::xla_tests()?, &words))?;
    pass_reference(is_check)?;
    build()
}

/// Generates the page of all passes, or compares it.
fn pass_reference(is_check: bool) -> Result<()> {
    const PAGE: &str = "docs/src/internals/pass-reference.md";
    let page = capture(program(build::xla()?, &["opt", "--list-passes=markdown"]))?;
    let path = root().join(PAGE);
    if !is_check {
        return fs::write(&path, page).with_context(|| format!("cannot write {PAGE}"));
    }
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    if text != page {
        bail!("{PAGE} is out of date: run `cargo xtask book`");
    }
    Ok(())
}

/// Builds the book as it is.
pub fn build() -> Result<()> {
    let broken = broken_links(&root().join("docs/src"))?;
    if !broken.is_empty() {
        bail!("links of the book that lead nowhere:\n  {}", broken.join("\n  "));
    }
    pages()?;
    println!("the book: target/book/index.html");
    Ok(())
}

/// Runs mdBook, which calls it a success where an included file is missing: its warnings are errors here.
fn pages() -> Result<()> {
    let mut command = program(mdbook()?, &["build", "docs"]);
    println!("\n$ {}", line(&command));
    let done = command.output().context("mdBook cannot run")?;
    let said = String::from_utf8_lossy(&done.stderr);
    print!("{said}");
    if !done.status.success() || [" WARN ", "ERROR "].iter().any(|word| said.contains(word)) {
        bail!("mdBook reports problems of the book, see above");
    }
    Ok(())
}

/// mdBook: the machine's own, or one of this repository.
fn mdbook() -> Result<PathBuf> {
    let own = root().join("target/tools/bin/mdbook");
    for mdbook in [PathBuf::from("mdbook"), own.clone()] {
        if output(program(&mdbook, &["--version"])).is_some() {
            return Ok(mdbook);
        }
    }
    println!("there is no mdBook: building it into target/tools");
    // Not optimised, it is built in half the time, and writes the book in a blink all the same.
    let options = ["--locked", "--no-default-features", "--debug", "--root", "target/tools"];
    let mut build = cargo(&[&["install", "mdbook", "--version", "^0.5"], &options[..]].concat());
    build.env("CARGO_PROFILE_DEV_DEBUG", "0");
    run_program(build).context("mdBook could not be built")?;
    Ok(own)
}

/// Relative links whose file is not there, and pages that the summary does not list.
fn broken_links(source: &Path) -> Result<Vec<String>> {
    let mut pages = Vec::new();
    collect(source, &mut pages)?;
    let mut broken = Vec::new();
    let mut listed = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
        let folder = page.parent().unwrap_or(source);
        for link in links(&text) {
            let target = folder.join(link);
            if page.ends_with("SUMMARY.md") {
                listed.push(target.clone());
            }
            if !target.is_file() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    let unlisted = pages.iter().filter(|page| !page.ends_with("SUMMARY.md") && !listed.contains(page));
    broken.extend(unlisted.map(|page| format!("SUMMARY.md does not list {}", page.display())));
    Ok(broken)
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

/// Targets of links to files of the book, without fragments.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets
        .filter(|target| !target.contains("://") && !target.starts_with('#'))
        .map(|target| target.split('#').next().unwrap_or(target))
        .filter(|target| target.ends_with(".md"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found() {
        let text = "[a](a.md) [b](https://x.org/b.md) [c](../c/d.md#part) [e](#here) `v[i](j)`";
        assert_eq!(links(text), ["a.md", "../c/d.md"]);
    }

    #[test]
    fn every_link_of_the_book_leads_somewhere() {
        assert_eq!(broken_links(&root().join("docs/src")).unwrap(), Vec::<String>::new());
    }
}
