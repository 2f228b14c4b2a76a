//! The steps of the book's chapter "One operation, natively", done to a fork.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Folder of the chapter's code.
const CHAPTER: &str = "docs/src/backend/examples";

/// Adds the operation of the chapter to a crate: its function, the two lines that call it, and its test. `root` is the
/// repository.
pub fn add(root: &Path, folder: &Path) -> Result<()> {
    let function = read(&root.join(CHAPTER).join("convolution.rs"))?;
    let target = folder.join("src/lowering/convolution.rs");
    fs::write(&target, function).with_context(|| format!("cannot write {}", target.display()))?;
    insert(&folder.join("src/lowering/mod.rs"), "mod dot;", "mod convolution;\n")?;
    let line = "Op::Convolution(op) => convolution::lower(cx, op),\n        ";
    insert(&folder.join("src/lowering/mod.rs"), "Op::Dot(op) =>", line)?;
    let tests = folder.join("tests/backend/lowering.rs");
    let text = read(&tests)? + "\n" + &read(&root.join(CHAPTER).join("convolution_test.txt"))?;
    fs::write(&tests, text).with_context(|| format!("cannot write {}", tests.display()))
}

/// Inserts `text` in front of the only occurrence of `before`.
fn insert(file: &Path, before: &str, text: &str) -> Result<()> {
    let old = read(file)?;
    ensure!(old.matches(before).count() == 1, "{} does not have `{before}` once", file.display());
    fs::write(file, old.replace(before, &format!("{text}{before}")))
        .with_context(|| format!("cannot write {}", file.display()))
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}
