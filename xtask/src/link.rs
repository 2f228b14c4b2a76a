//! Static linking of LLVM and the C++ library into commands and libraries, and the shared libraries that remain.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::packages::{self, Package};
use crate::shell::{capture, output, program};

/// Components of LLVM for the linker; their dependencies are added, and unused objects are left out.
const COMPONENTS: &[&str] = &["native", "nvptx", "orcjit", "passes", "irreader", "bitwriter", "linker", "mcjit"];

/// Archives that LLVM needs besides its own, and the packages that contain them.
const ARCHIVES: &[(&str, Package)] = &[
    ("libstdc++.a", archive("g++", || find("libstdc++.a").map(drop))),
    ("libz.a", archive("zlib1g-dev", || find("libz.a").map(drop))),
    ("libzstd.a", archive("libzstd-dev", || find("libzstd.a").map(drop))),
];

/// Libraries that every system with glibc has, and that `manylinux` allows.
const SYSTEM: &[&str] =
    &["libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libdl.so.2", "librt.so.1", "libpthread.so.0"];

const fn archive(debian: &'static str, find: fn() -> Result<(), String>) -> Package {
    Package { debian, elsewhere: "Install the static forms of the C++ library, zlib and zstd.", find }
}

/// Completes a `cargo rustc` command so that LLVM is linked statically, by linker scripts in `folder`. The linker, not
/// the loader, reports undefined symbols.
pub fn statically(command: &mut Command, folder: &Path) -> Result<()> {
    stand_ins(folder)?;
    command.args(["--", "-L"]).arg(format!("native={}", folder.display()));
    command.args(["-C", "link-arg=-Wl,--gc-sections,-z,defs", "-C", "strip=symbols"]);
    Ok(())
}

/// All archives that are linked in.
pub fn archives() -> Result<Vec<PathBuf>> {
    let mut all = llvm_archives()?;
    for (name, package) in ARCHIVES {
        packages::provide(package)?;
        all.push(find(name).map_err(|missing| anyhow!(missing))?);
    }
    Ok(all)
}

/// Checks that a file depends only on libraries of every Linux system, and returns their names.
pub fn check_needs(file: &Path) -> Result<Vec<String>> {
    let mut command = program("readelf", &["--dynamic", "--wide"]);
    command.arg(file);
    let dynamic = capture(command)?;
    let foreign: Vec<&str> = needed(&dynamic).filter(|name| !SYSTEM.contains(name)).collect();
    ensure!(foreign.is_empty(), "{} needs {}, which a system may lack", file.display(), foreign.join(", "));
    Ok(needed(&dynamic).map(str::to_owned).collect())
}

/// The version of the C library that a file needs at least, such as `2.35`.
pub fn c_library(file: &Path) -> Result<String> {
    let mut command = program("readelf", &["--version-info", "--wide"]);
    command.arg(file);
    newest(&capture(command)?).with_context(|| format!("{} needs no version of the C library", file.display()))
}

/// The newest version in `readelf --version-info`: `0x0010:   Name: GLIBC_2.34  Flags: none  Version: 8`. What is no
/// number, an ability of the loader, is newer than all numbers.
fn newest(versions: &str) -> Option<String> {
    let names = versions.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_"));
    let numbers = |name: &str| -> Option<Vec<u32>> { name.split('.').map(|part| part.parse().ok()).collect() };
    names.max_by_key(|name| (numbers(name).is_none(), numbers(name))).map(str::to_owned)
}

/// Names in `readelf --dynamic`: `0x1 (NEEDED)  Shared library: [libm.so.6]`.
fn needed(dynamic: &str) -> impl Iterator<Item = &str> {
    let lines = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    lines.filter_map(|line| line.split_once('[')?.1.split_once(']')).map(|(name, _)| name)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_found() {
        let versions =
            " 0x0010:   Name: GLIBC_2.9  Flags: none\n 0x20:   Name: GLIBC_2.34  Flags: none\n Name: GCC_4.2";
        assert_eq!(newest(versions).unwrap(), "2.34");
        assert_eq!(newest(&format!("{versions} GLIBC_ABI_DT_RELR")).unwrap(), "ABI_DT_RELR");
        assert_eq!(newest("nothing"), None);
    }

    #[test]
    fn needed_libraries_are_read() {
        let dynamic = " 0x01 (NEEDED)  Shared library: [libm.so.6]\n 0x0e (SONAME)  Library soname: [x.so]\n 0x01 (NEEDED) Shared library: [libLLVM.so.22.1]\n";
        assert_eq!(needed(dynamic).collect::<Vec<_>>(), ["libm.so.6", "libLLVM.so.22.1"]);
    }
}
