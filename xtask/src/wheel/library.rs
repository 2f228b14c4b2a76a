//! The shared library of the plugin, with LLVM, the C++ library and their dependencies linked into it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::work;
use crate::link;
use crate::shell::{cargo, metadata, run};

/// Builds the library with a profile and features, and returns its path.
pub fn build(profile: &str, features: &str) -> Result<PathBuf> {
    let mut command = cargo(&["rustc", "--package", "xla-pjrt-plugin", "--no-default-features"]);
    command.args(["--features", features, "--profile", profile]);
    link::statically(&mut command, &work().join("link"))?;
    command.args(["-C", "link-arg=-Wl,-z,pack-relative-relocs"]);
    run(command)?;
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?;
    Ok(Path::new(target).join(profile).join("libpjrt_plugin_xlars.so"))
}
