//! `cargo xtask downstream`: crates outside of the workspace, as users write them.

use anyhow::Result;
use pico_args::Arguments;

use crate::shell::{cargo, root, run as run_program};
use crate::{finish, packages};

pub const HELP: &str = "\
Builds and runs the crates of tests/downstream, which stand outside of this workspace: `xla` with one Cargo feature each, a private
backend registered beside those that are built in, and a CPU backend without LLVM, which runs a part of the conformance kit.
";

/// The crates, those first that link no LLVM.
const CRATES: &[&str] =
    &["no-backend", "only-gpu-run", "only-template", "private-backend", "cranelift-cpu", "only-cpu"];

/// Cargo configuration of builds outside of the workspace that share its target directory.
const PROFILE: &str = "tests/downstream/profile.toml";

/// Returns the arguments of Cargo for builds outside of the workspace that share its target directory.
pub fn profile() -> Vec<String> {
    let mut words = vec!["--config".to_owned(), root().join(PROFILE).display().to_string()];
    // The file takes precedence over the environment, and builds with different debug information share no crates.
    if let Ok(level) = std::env::var("CARGO_PROFILE_DEV_DEBUG") {
        let is_literal = level.parse::<u8>().is_ok() || level.parse::<bool>().is_ok();
        let level = if is_literal { level } else { format!("\"{level}\"") };
        words.extend(["--config".to_owned(), format!("profile.dev.debug={level}")]);
    }
    words
}

pub fn run(args: Arguments) -> Result<()> {
    finish(args)?;
    check()
}

pub fn check() -> Result<()> {
    packages::ensure()?;
    // The versions that this workspace was tested with.
    let lock = "tests/downstream/Cargo.lock";
    std::fs::copy(root().join("Cargo.lock"), root().join(lock))?;
    for name in CRATES {
        // Shares the target directory of the workspace: dependencies are built there already.
        let mut command = cargo(&["run", "--quiet"]);
        command.args(profile()).args(["--manifest-path", &format!("tests/downstream/{name}/Cargo.toml")]);
        command.args(["--target-dir", "target"]);
        run_program(command)?;
    }
    Ok(())
}
