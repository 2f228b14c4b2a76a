//! The shared library of the plugin: LLVM, the C++ library and what they need are linked into it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use super::work;
use crate::packages::{self, Package};
use crate::shell::{cargo, metadata, output, program, run};

/// Parts of LLVM where the linker may look, with those that they need. What is not used in the end is left out.
const COMPONENTS: &[&str] = &["native", "nvptx", "orcjit", "passes", "irreader", "bitwriter", "linker", "mcjit"];

/// Archives that LLVM needs besides its own, and who has them.
const ARCHIVES: &[(&str, Package)] = &[
    ("libstdc++.a", archive("g++", || find("libstdc++.a").map(drop))),
    ("libz.a", archive("zlib1g-dev", || find("libz.a").map(drop))),
    ("libzstd.a", archive("libzstd-dev", || find("libzstd.a").map(drop))),
];

const fn archive(debian: &'static str, find: fn() -> Result<(), String>) -> Package {
    Package { debian, elsewhere: "Install the static forms of the C++ library, zlib and zstd.", find }
}

/// Builds the library with a profile and features, and returns its path.
pub fn build(profile: &str, features: &str) -> Result<PathBuf> {
    let folder = work().join("link");
    stand_ins(&folder)?;
    let mut command = cargo(&["rustc", "--package", "xla-pjrt-plugin", "--no-default-features"]);
    command
        .args(["--features", features, "--profile", profile, "--", "-L"])
        .arg(format!("native={}", folder.display()));
    // What is missing is missed here, not by who loads the library.
    command.args(["-C", "link-arg=-Wl,--gc-sections,-z,defs,-z,pack-relative-relocs", "-C", "strip=symbols"]);
    run(command)?;
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?;
    Ok(Path::new(target).join(profile).join("libpjrt_plugin_xlars.so"))
}

/// All archives that are linked into the library.
pub fn archives() -> Result<Vec<PathBuf>> {
    let mut all = llvm_archives()?;
    for (name, package) in ARCHIVES {
        packages::provide(package)?;
        all.push(find(name).map_err(|missing| anyhow!(missing))?);
    }
    Ok(all)
}

/// Writes scripts for the linker in the place of LLVM's and C++'s shared libraries, which name the archives instead.
/// The crates that were built for the shared libraries are linked as they are.
fn stand_ins(folder: &Path) -> Result<()> {
    let archives: Vec<String> = archives()?.iter().map(|archive| archive.display().to_string()).collect();
    let script = format!("/* The static forms of a shared library. */\nGROUP({})\n", archives.join("\n"));
    let llvm = packages::find_llvm().map_err(|missing| anyhow!(missing))?;
    let shared =
        output(program(&llvm.config, &["--link-shared", "--libnames"])).context("llvm-config knows no library")?;
    fs::create_dir_all(folder)?;
    for library in [shared.as_str(), "libstdc++.so"] {
        let path = folder.join(library);
        // A file that is not touched links nothing anew.
        if fs::read_to_string(&path).is_ok_and(|present| present == script) {
            continue;
        }
        fs::write(&path, &script).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn llvm_archives() -> Result<Vec<PathBuf>> {
    let llvm = packages::find_llvm().map_err(|missing| anyhow!(missing))?;
    let words = [&["--link-static", "--libfiles"], COMPONENTS].concat();
    let files = output(program(&llvm.config, &words)).unwrap_or_default();
    let files: Vec<PathBuf> = files.split_whitespace().map(PathBuf::from).collect();
    match files.iter().find(|file| !file.exists()) {
        Some(file) => bail!("LLVM {} has no {}: its static libraries are needed here", llvm.version, file.display()),
        None if files.is_empty() => bail!("{} knows no static libraries", llvm.config.display()),
        None => Ok(files),
    }
}

/// Asks the linker's driver where an archive is.
fn find(name: &str) -> Result<PathBuf, String> {
    let found = output(program("cc", &[format!("-print-file-name={name}")])).unwrap_or_default();
    // It answers with the bare name when there is none.
    match fs::canonicalize(&found) {
        Ok(path) if found.contains('/') => Ok(path),
        _ => Err(format!("`cc` finds no {name}.")),
    }
}
