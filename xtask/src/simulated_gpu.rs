//! The driver of tests/simulated-gpu in the place of NVIDIA's, alone or with the libraries of
//! tests/simulated-libraries.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::build;
use crate::shell::{cargo, output, program, run};

/// Stand-ins for NVIDIA's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// The driver: our own kernels do everything.
    Driver,
    /// The driver with cuBLASLt, cuDNN, cuFFT and NCCL of CUDA 12, and a profiler.
    Libraries,
    /// File name of the driver of CUDA 13.
    NewLibraries,
}

impl Installed {
    /// The package that has all of it.
    fn package(self) -> &'static str {
        match self {
            Installed::Driver => "simulated-gpu",
            Installed::Libraries | Installed::NewLibraries => "simulated-libraries",
        }
    }

    /// The folder inside of the target directory.
    fn folder(self) -> &'static str {
        match self {
            Installed::Driver => "simulated-gpu",
            Installed::Libraries => "simulated-libraries",
            Installed::NewLibraries => "simulated-libraries-13",
        }
    }

    /// The names that programs look for.
    fn names(self) -> &'static [&'static str] {
        match self {
            Installed::Driver => &["libcuda.so", "libcuda.so.1"],
            Installed::Libraries => &[
                "libcuda.so.1",
                "libcublasLt.so.12",
                "libcudnn.so.9",
                "libcufft.so.11",
                "libnccl.so.2",
                "libsimulated-nvtx.so",
            ],
            Installed::NewLibraries => {
                &["libcuda.so.1", "libcublasLt.so.13", "libcudnn.so.9", "libcufft.so.12", "libnccl.so.2"]
            }
        }
    }
}

/// Variable that names the first folders of libraries.
const VARIABLE: &str = "LD_LIBRARY_PATH";

/// Levels of the conformance suite that take seconds on the simulated device.
const QUICK_LEVELS: &str = "0,1,3,5";

/// Level of programs for several devices.
const DEVICES_LEVEL: &str = "7";

/// Level and filter of cases that call libraries.
const CALLING: &[&str] = &["2,4", "--filter", "fft"];

/// Functions that kernels compute by approximate instructions, as parts of the names of their cases.
const APPROXIMATE: &[&str] = &["divide", "erf", "exponential", "log", "power", "rsqrt", "tanh"];

/// Builds it, and returns the folder where it has the names of NVIDIA's files. All names are one file, so that it is
/// loaded once.
pub fn library(installed: Installed) -> Result<PathBuf> {
    let package = installed.package();
    let built = build::package(package, &["--lib"])?.join(format!("lib{}.so", package.replace('-', "_")));
    let folder = build::target()?.join(installed.folder());
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
    // All of the workspace is named, so that the build of its tests serves here, too.
    let words = match (output(cargo(&["nextest", "--version"])), installed) {
        (Some(_), Installed::Driver) => {
            vec![
                "nextest",
                "run",
                "--workspace",
                "-E",
                "package(backend-gpu-nvptx) & test(/^(cuda::|graphs::|libraries::no_fallback)/)",
            ]
        }
        (Some(_), Installed::Libraries | Installed::NewLibraries) => {
            let which =
                "package(backend-gpu-nvptx) & test(/^(collectives|cuda|graphs|libraries|lowering::libraries)::/)";
            vec!["nextest", "run", "--workspace", "-E", which]
        }
        (None, Installed::Driver) => vec!["test", "--workspace", "--lib", "--quiet", "cuda::"],
        (None, Installed::Libraries | Installed::NewLibraries) => {
            vec!["test", "--workspace", "--lib", "--quiet", "--", "cuda::", "lowering::libraries::"]
        }
    };
    let mut tests = cargo(&words);
    provide(&mut tests, folder);
    run(tests)
}

/// The part of the backend tests that fits into CI: those tests, and the quick cases of the conformance suite's lower
/// levels; with libraries, of CUDA 12 those tests, and of CUDA 13 programs that call them.
pub fn check(tests: &Path) -> Result<()> {
    let [driver, libraries, new] =
        [library(Installed::Driver)?, library(Installed::Libraries)?, library(Installed::NewLibraries)?];
    unit_tests(Installed::Driver, &driver)?;
    conformance(tests, &driver, &[QUICK_LEVELS], None)?;
    unit_tests(Installed::Libraries, &libraries)?;
    conformance(tests, &new, CALLING, None)?;
    // Programs for several devices, with collectives by NCCL and by the service.
    for folder in [&libraries, &driver] {
        conformance(tests, folder, &[DEVICES_LEVEL], Some("devices=4"))?;
        corpus_on_devices(folder)?;
    }
    // Each approximate instruction as wrong, on either side, as its document allows.
    for side in ["approx=low", "approx=high"] {
        for function in APPROXIMATE {
            conformance(tests, &driver, &["2", "--filter", function], Some(side))?;
        }
    }
    Ok(())
}

/// Runs the programs of the corpus for several devices on eight of them.
fn corpus_on_devices(folder: &Path) -> Result<()> {
    const TEST: &str = "devices_of_gpus_agree_without_a_join";
    let mut tests = match output(cargo(&["nextest", "--version"])) {
        Some(_) => cargo(&["nextest", "run", "--workspace", "-E", &format!("package(xla-tests) & test({TEST})")]),
        None => cargo(&["test", "--workspace", "--quiet", TEST]),
    };
    provide(&mut tests, folder);
    tests.env("SIMULATED_GPU", "devices=8");
    run(tests)
}

/// Quick cases of those levels, with options of the simulated device.
fn conformance(tests: &Path, folder: &Path, levels: &[&str], options: Option<&str>) -> Result<()> {
    let mut command = program(tests, &[&["conformance", "gpu", "--quick", "--level"], levels].concat());
    provide(&mut command, folder);
    command.envs(options.map(|options| ("SIMULATED_GPU", options)));
    run(command)
}
