//! The driver of tests/simulated-gpu in the place of NVIDIA's.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{cargo, metadata, output, program, run};
use crate::test_backend;

/// The names that programs look for.
const NAMES: [&str; 2] = ["libcuda.so", "libcuda.so.1"];

/// Where programs look for libraries first.
const VARIABLE: &str = "LD_LIBRARY_PATH";

/// Levels of the conformance suite that take seconds on the simulated device.
const QUICK_LEVELS: &str = "0,1,3,5";

/// Builds the driver, and gives the folder where it has the names of NVIDIA's.
pub fn library() -> Result<PathBuf> {
    run(cargo(&["build", "--release", "--package", "simulated-gpu"]))?;
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?;
    let built = Path::new(target).join("release/libsimulated_gpu.so");
    let folder = Path::new(target).join("simulated-gpu");
    fs::create_dir_all(&folder)?;
    for name in NAMES {
        fs::copy(&built, folder.join(name)).with_context(|| built.display().to_string())?;
    }
    Ok(folder)
}

/// Lets a command find the driver in that folder before any other.
pub fn provide(command: &mut Command, folder: &Path) {
    let mut path = OsString::from(folder);
    if let Some(others) = std::env::var_os(VARIABLE) {
        path.push(":");
        path.push(others);
    }
    command.env(VARIABLE, path);
}

/// Runs the tests of the backend's CUDA code, which without a driver are skipped. The test that loses the device runs only where each has a
/// process of its own.
pub fn unit_tests(folder: &Path) -> Result<()> {
    // All of the workspace is named, so that what was built for its tests serves here, too.
    let words = match output(cargo(&["nextest", "--version"])) {
        Some(_) => ["nextest", "run", "--workspace", "-E", "package(backend-gpu-nvptx) & test(/^cuda::/)"],
        None => ["test", "--workspace", "--lib", "--quiet", "cuda::"],
    };
    let mut tests = cargo(&words);
    provide(&mut tests, folder);
    run(tests)
}

/// What fits into CI: those tests, and the quick cases of the conformance suite's lower levels.
pub fn check() -> Result<()> {
    let folder = library()?;
    unit_tests(&folder)?;
    let words = ["conformance", "gpu", "--quick", "--level", QUICK_LEVELS];
    let mut conformance = program(test_backend::tests_command("gpu")?, &words);
    provide(&mut conformance, &folder);
    run(conformance)
}
