//! Copies a crate under another name.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::name::Name;

/// Copies the files of a crate, renamed inside and outside; returns how many. Build products are left out.
pub fn copy(from: &Path, to: &Path, name: &Name) -> Result<usize> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let mut count = 0;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let file = entry.file_name();
        if file == "target" || file == "Cargo.lock" {
            continue;
        }
        let target = to.join(name.rename(&file.to_string_lossy()));
        if entry.file_type()?.is_dir() {
            count += copy(&entry.path(), &target, name)?;
            continue;
        }
        let bytes = fs::read(entry.path()).with_context(|| format!("cannot read {}", entry.path().display()))?;
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => name.rename(&text).into_bytes(),
            Err(binary) => binary.into_bytes(),
        };
        fs::write(&target, bytes).with_context(|| format!("cannot write {}", target.display()))?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_folders_and_words_are_renamed() {
        let scratch = std::env::temp_dir().join(format!("xtask-copy-{}", std::process::id()));
        let (from, to) = (scratch.join("from"), scratch.join("to"));
        fs::create_dir_all(from.join("src/template")).unwrap();
        fs::create_dir_all(from.join("target/debug")).unwrap();
        fs::write(from.join("src/template/mod.rs"), "pub struct Template;").unwrap();
        fs::write(from.join("picture.bin"), [0xff, 0xfe, 0x00]).unwrap();
        assert_eq!(copy(&from, &to, &Name::parse("acme").unwrap()).unwrap(), 2);
        assert_eq!(fs::read_to_string(to.join("src/acme/mod.rs")).unwrap(), "pub struct Acme;");
        assert_eq!(fs::read(to.join("picture.bin")).unwrap(), [0xff, 0xfe, 0x00]);
        assert!(!to.join("target").exists());
        fs::remove_dir_all(scratch).unwrap();
    }
}
