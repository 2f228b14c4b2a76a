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
pub const PROFILE: &str = "tests/downstream/profile.toml";

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
        run_program(cargo(&[
            "run",
            "--quiet",
            "--config",
            PROFILE,
            "--manifest-path",
            &format!("tests/downstream/{name}/Cargo.toml"),
            "--target-dir",
            "target",
        ]))?;
    }
    Ok(())
}
