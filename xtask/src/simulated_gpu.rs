//! The driver of tests/simulated-gpu in the place of NVIDIA's, alone or with the libraries of
//! tests/simulated-libraries.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{cargo, metadata, output, program, run};

/// Stand-ins for NVIDIA's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// The driver: our own kernels do everything.
    Driver,
    /// The driver with cuBLASLt, cuDNN and cuFFT.
    Libraries,
}

impl Installed {
    /// The package that has all of it, which is the name of its folder as well.
    fn package(self) -> &'static str {
        match self {
            Installed::Driver => "simulated-gpu",
            Installed::Libraries => "simulated-libraries",
        }
    }

    /// The names that programs look for.
    fn names(self) -> &'static [&'static str] {
        const ALL: &[&str] = &["libcuda.so", "libcuda.so.1", "libcublasLt.so.12", "libcudnn.so.9", "libcufft.so.11"];
        match self {
            Installed::Driver => &ALL[..2],
            Installed::Libraries => ALL,
        }
    }
}

/// Variable that names the first folders of libraries.
const VARIABLE: &str = "LD_LIBRARY_PATH";

/// Levels of the conformance suite that take seconds on the simulated device.
const QUICK_LEVELS: &str = "0,1,3,5";

/// Level and filter of cases that call libraries.
const CALLING: &[&str] = &["2,4", "--filter", "fft"];

/// Functions that kernels compute by approximate instructions, as parts of the names of their cases.
const APPROXIMATE: &[&str] = &["divide", "erf", "exponential", "log", "power", "rsqrt", "tanh"];

/// Builds it, and returns the folder where it has the names of NVIDIA's files. All names are one file, so that it is
/// loaded once.
pub fn library(installed: Installed) -> Result<PathBuf> {
    let package = installed.package();
    run(cargo(&["build", "--release", "--package", package]))?;
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?;
    let built = Path::new(target).join(format!("release/lib{}.so", package.replace('-', "_")));
    let folder = Path::new(target).join(package);
    fs::create_dir_all(&folder)?;
    let copy = folder.join("all.so");
    // A file of an earlier build stays as it is for programs that run with it.
    let fresh = |file: &Path| if file.exists() { fs::remove_file(file) } else { Ok(()) };
    fresh(&copy)?;
    fs::copy(&built, &copy).with_context(|| built.display().to_string())?;
    for name in installed.names() {
        let link = folder.join(name);
        fresh(&link)?;
        fs::hard_link(&copy, &link).with_context(|| link.display().to_string())?;
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

/// Runs the tests of the backend's CUDA code, which without a driver are skipped. The test that loses the device runs
/// only where each has a process of its own. With libraries, recognised library calls are made as well.
pub fn unit_tests(installed: Installed, folder: &Path) -> Result<()> {
    // All of the workspace is named, so that what was built for its tests serves here, too.
    let words = match (output(cargo(&["nextest", "--version"])), installed) {
        (Some(_), Installed::Driver) => {
            vec!["nextest", "run", "--workspace", "-E", "package(backend-gpu-nvptx) & test(/^cuda::/)"]
        }
        (Some(_), Installed::Libraries) => {
            let which = "package(backend-gpu-nvptx) & test(/^(cuda|libraries|lowering::libraries)::/)";
            vec!["nextest", "run", "--workspace", "-E", which]
        }
        (None, Installed::Driver) => vec!["test", "--workspace", "--lib", "--quiet", "cuda::"],
        (None, Installed::Libraries) => {
            vec!["test", "--workspace", "--lib", "--quiet", "--", "cuda::", "lowering::libraries::"]
        }
    };
    let mut tests = cargo(&words);
    provide(&mut tests, folder);
    run(tests)
}

/// The part of the backend tests that fits into CI: those tests, and the quick cases of the conformance suite's lower
/// levels; with libraries, programs that call them.
pub fn check(tests: &Path) -> Result<()> {
    let quick = ["conformance", "gpu", "--quick", "--level"];
    for (installed, words) in [(Installed::Driver, [QUICK_LEVELS].as_slice()), (Installed::Libraries, CALLING)] {
        let folder = library(installed)?;
        unit_tests(installed, &folder)?;
        let mut conformance = program(tests, &[&quick[..], words].concat());
        provide(&mut conformance, &folder);
        run(conformance)?;
    }
    approximate_functions(tests)
}

/// Those functions with each instruction as wrong, on either side, as its document allows.
fn approximate_functions(tests: &Path) -> Result<()> {
    let folder = library(Installed::Driver)?;
    for side in ["low", "high"] {
        for function in APPROXIMATE {
            let mut conformance =
                program(tests, &["conformance", "gpu", "--quick", "--level", "2", "--filter", function]);
            provide(&mut conformance, &folder);
            conformance.env("SIMULATED_GPU", format!("approx={side}"));
            run(conformance)?;
        }
    }
    Ok(())
}
