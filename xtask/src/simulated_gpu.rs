//! The driver of tests/simulated-gpu in the place of NVIDIA's.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{cargo, metadata, run};

/// The names that programs look for.
const NAMES: [&str; 2] = ["libcuda.so", "libcuda.so.1"];

/// Where programs look for libraries first.
const VARIABLE: &str = "LD_LIBRARY_PATH";

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

/// Runs the tests of the backend's CUDA code, which without a driver are skipped. The one that loses the device has a process of its own.
pub fn unit_tests(folder: &Path) -> Result<()> {
    const LOST: &str = "cuda::tests::a_lost_device_is_told_with_what_was_under_way";
    let mut most = cargo(&["test", "--package", "backend-gpu-nvptx", "--lib", "cuda::"]);
    provide(&mut most, folder);
    run(most)?;
    let mut lost = cargo(&["test", "--package", "backend-gpu-nvptx", "--lib", LOST, "--", "--exact"]);
    provide(&mut lost, folder);
    // The test asks whether it is alone.
    lost.env("NEXTEST", "1");
    run(lost)
}
