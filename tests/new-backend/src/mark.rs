//! The mark in the manifest of a crate that `new-backend` made, without which `remove-backend` removes nothing.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const MARK: &str = "\n[package.metadata]\nmade-by = \"cargo xtask new-backend\"\n";

/// Adds the mark to a manifest.
pub fn put(manifest: &Path) -> Result<()> {
    let text = read(manifest)? + MARK;
    fs::write(manifest, text).with_context(|| format!("cannot write {}", manifest.display()))
}

/// Whether a manifest has the mark.
pub fn is_on(manifest: &Path) -> Result<bool> {
    Ok(read(manifest)?.contains(MARK))
}

fn read(manifest: &Path) -> Result<String> {
    fs::read_to_string(manifest).with_context(|| format!("cannot read {}", manifest.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_copies_have_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for own in ["backend-cpu", "backend-template"] {
            assert!(!is_on(&root.join(own).join("Cargo.toml")).unwrap(), "{own} could be removed");
        }
        let manifest = std::env::temp_dir().join(format!("xtask-mark-{}.toml", std::process::id()));
        fs::copy(root.join("backend-template/Cargo.toml"), &manifest).unwrap();
        put(&manifest).unwrap();
        assert!(is_on(&manifest).unwrap());
        fs::remove_file(manifest).unwrap();
    }
}
