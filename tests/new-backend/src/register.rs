//! Registration of a backend in the workspace: lines that name the original are copied for it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::name::Name;
use crate::name::ORIGINAL;

/// Files that list the backends, a line each.
const FILES: &[&str] =
    &["Cargo.toml", "xla/Cargo.toml", "xla/src/lib.rs", "tests/Cargo.toml", "python/plugin/Cargo.toml"];

/// Adds, after each line that names the original, the same line with the new name.
pub fn add(root: &Path, name: &Name) -> Result<()> {
    edit(root, |text| {
        let lines = text.lines().flat_map(|line| {
            let copy = names_original(line).then(|| name.rename(line));
            std::iter::once(line.to_owned()).chain(copy)
        });
        join(lines)
    })
}

/// Removes the lines that [`add`] added.
pub fn remove(root: &Path, name: &Name) -> Result<()> {
    edit(root, |text| {
        let added: Vec<String> = text.lines().filter(|l| names_original(l)).map(|l| name.rename(l)).collect();
        join(text.lines().filter(|line| !added.iter().any(|a| a == line)).map(str::to_owned))
    })
}

fn names_original(line: &str) -> bool {
    let is_comment = line.trim_start().starts_with(['#', '/']);
    !is_comment && line.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == ORIGINAL)
}

fn join(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}

fn read(root: &Path, file: &str) -> Result<String> {
    fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))
}

fn edit(root: &Path, change: impl Fn(&str) -> String) -> Result<()> {
    for file in FILES {
        let text = read(root, file)?;
        ensure!(text.lines().any(names_original), "{file} does not name the backend {ORIGINAL}");
        fs::write(root.join(file), change(&text)).with_context(|| format!("cannot write {file}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_can_be_taken_back() {
        let root = std::env::temp_dir().join(format!("xtask-register-{}", std::process::id()));
        for file in FILES {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "# the template\nbackend-template = 1\ncpu = 2\n").unwrap();
        }
        let acme = Name::parse("acme").unwrap();
        add(&root, &acme).unwrap();
        let text = read(&root, FILES[1]).unwrap();
        assert_eq!(text, "# the template\nbackend-template = 1\nbackend-acme = 1\ncpu = 2\n");
        remove(&root, &acme).unwrap();
        assert_eq!(read(&root, FILES[1]).unwrap(), "# the template\nbackend-template = 1\ncpu = 2\n");
        fs::remove_dir_all(root).unwrap();
    }
}
