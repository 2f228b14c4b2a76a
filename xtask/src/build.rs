//! Building programs and libraries of the workspace.
//!
//! Commands build with Cargo's profile `release`. `.ci/run` names the profile of the tests in [`VARIABLE`] instead, so
//! that programs and tests share their crates.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{cargo, metadata, run};

/// Environment variable that names the Cargo profile.
const VARIABLE: &str = "XTASK_PROFILE";

/// Selection with which third-party crates have the features that the tests of the workspace enable, so that a build in
/// the tests' profile uses their dependencies.
const UNIFIED: &[&str] =
    &["--package", "xla-tests", "--package", "xla-pjrt-plugin", "--features", "xla-pjrt-plugin/unify"];

/// Returns the Cargo profile that programs are built with.
pub fn profile() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| "release".to_owned())
}

/// Returns Cargo's target directory.
pub fn target() -> Result<PathBuf> {
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?;
    Ok(PathBuf::from(target))
}

/// Returns the folder in `target` that has the results of a profile.
pub fn results(target: &Path, profile: &str) -> PathBuf {
    target.join(match profile {
        "dev" | "test" => "debug",
        "bench" => "release",
        other => other,
    })
}

/// Builds a package with [`profile`], and returns the folder of the results.
pub fn package(name: &str, options: &[&str]) -> Result<PathBuf> {
    let profile = profile();
    let unified = if profile == "dev" { UNIFIED } else { &[] };
    run(cargo(&[&["build", "--profile", &profile, "--package", name], options, unified].concat()))?;
    Ok(results(&target()?, &profile))
}

/// Builds the `xla` command and returns its path.
pub fn xla() -> Result<PathBuf> {
    binary("xla", &[])
}

/// Builds `xla-tests` with its default features and returns its path.
pub fn xla_tests() -> Result<PathBuf> {
    binary("xla-tests", &[])
}

/// Builds the program that has the name of its package, and returns its path.
pub fn binary(package_name: &str, options: &[&str]) -> Result<PathBuf> {
    let folder = package(package_name, &[&["--bin", package_name], options].concat())?;
    Ok(folder.join(format!("{package_name}{}", std::env::consts::EXE_SUFFIX)))
}

/// Returns a `cargo rustc` command for a package with these features alone, to which linker flags can be added.
pub fn rustc(package: &str, features: &str, profile: &str) -> Command {
    let unified = if profile == "dev" { ",unify" } else { "" };
    let features = format!("{features}{unified}");
    cargo(&["rustc", "--profile", profile, "--package", package, "--no-default-features", "--features", &features])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_cargo_share_folders() {
        let folder = |profile: &str| results(Path::new("target"), profile);
        assert_eq!(["dev", "test"].map(folder), ["target/debug"; 2].map(PathBuf::from));
        assert_eq!(["release", "bench"].map(folder), ["target/release"; 2].map(PathBuf::from));
        assert_eq!(folder("own"), Path::new("target/own"));
    }
}
