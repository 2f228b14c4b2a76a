//! Checks of a wheel: one exported symbol, no library that a bare system lacks, its size, and programs that run.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::work;
use crate::shell::{capture, line, program, root, run};
use crate::{link, python};

/// The function that JAX looks for.
const ENTRY: &str = "GetPjrtApi";

/// Greatest sizes in bytes, packed and installed, of a release build and of others. Most of it is LLVM.
const RELEASE: [u64; 2] = [20_500_000, 60_000_000];
const OTHERS: [u64; 2] = [23_500_000, 65_000_000];

/// Checks the exports and dependencies of the library, and returns the exported symbols.
pub fn library(path: &Path) -> Result<String> {
    let mut command = program("nm", &["--dynamic", "--defined-only", "--format=just-symbols"]);
    command.arg(path);
    let symbols = capture(command)?;
    let exported: Vec<&str> = symbols.split_whitespace().collect();
    ensure!(exported == [ENTRY], "{} exports {}, not {ENTRY} alone", path.display(), exported.join(", "));
    link::check_needs(path)?;
    Ok(exported.join(", "))
}

/// Checks the sizes of a wheel, whose limits depend on the profile, and returns them as text.
pub fn sizes(wheel: &Path, profile: &str) -> Result<String> {
    let packed = fs::metadata(wheel)?.len();
    let mut archive = zip::ZipArchive::new(fs::File::open(wheel)?)?;
    let mut installed = 0;
    for index in 0..archive.len() {
        installed += archive.by_index(index)?.size();
    }
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let said = format!("{} packed, {} installed", megabytes(packed), megabytes(installed));
    let [most_packed, most_installed] = if profile == "release" { RELEASE } else { OTHERS };
    let limits = format!("at most {} and {} are wanted", megabytes(most_packed), megabytes(most_installed));
    ensure!(packed <= most_packed && installed <= most_installed, "{said}; {limits}");
    Ok(said)
}

/// Installs the wheel where nothing else is, trains, and compares with XLA's own platform for the CPU.
pub fn training(wheel: &Path) -> Result<()> {
    let python = python::environment(&work().join("fresh"), &["--clear"])?;
    python::install(&python, &[&wheel.to_string_lossy()])?;
    let found = losses(&python, "xlars")?;
    let expected = losses(&python, "cpu")?;
    ensure!(found.len() == expected.len() && found.len() > 2, "{} losses, {} of XLA", found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        ensure!(
            (found - expected).abs() <= 1e-3 * expected.abs().max(1.0),
            "losses differ: {found}, XLA has {expected}"
        );
    }
    ensure!(found[found.len() - 1] < found[0] / 10.0, "the losses do not fall: {found:?}");
    Ok(())
}

/// Runs the package's own tests in the environment of [`training`]: a list of small programs, then pytest.
pub fn programs() -> Result<()> {
    let python = python::interpreter(&work().join("fresh"));
    // JAX writes exported programs with flatbuffers, which it does not bring.
    python::install(&python, &["pytest", "flatbuffers"])?;
    let tests = root().join("python/jax-xlars/tests");
    let mut command = on_platform(&python, "xlars");
    command.arg(tests.join("smoke.py"));
    run(command)?;
    let mut command = on_platform(&python, "xlars");
    command.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]).arg(tests).env("ROUNDS", "1");
    run(command)
}

/// A Python that does not see the package in the repository.
fn on_platform(python: &Path, platform: &str) -> Command {
    let mut command = program(python, &["-I"]);
    command.current_dir(work()).env("JAX_PLATFORMS", platform);
    command.env_remove("XLARS_LIBRARY").env_remove("XLARS_PLATFORM");
    command
}

/// Trains on a platform, and returns the losses that the script prints: `step 10 loss 2.530731`.
fn losses(python: &Path, platform: &str) -> Result<Vec<f64>> {
    let mut command = on_platform(python, platform);
    command.arg(root().join("python/jax-xlars/examples/train.py"));
    println!("\n$ JAX_PLATFORMS={platform} {}", line(&command));
    let done = command.output()?;
    let text = String::from_utf8_lossy(&done.stdout);
    print!("{text}");
    if !done.status.success() {
        bail!("{}", String::from_utf8_lossy(&done.stderr).trim_end());
    }
    let loss = |line: &str| line.rsplit_once(" loss ").map(|(_, loss)| loss.parse().with_context(|| line.to_owned()));
    text.lines().filter_map(loss).collect()
}
