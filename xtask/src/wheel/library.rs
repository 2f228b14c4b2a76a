//! The shared library of the plugin, with LLVM, the C++ library and their dependencies linked into it.

use std::path::PathBuf;

use anyhow::Result;

use super::work;
use crate::shell::run;
use crate::{build, link};

/// Builds the library with a profile and features, and returns its path.
pub fn build(profile: &str, features: &str) -> Result<PathBuf> {
    let mut command = build::rustc("xla-pjrt-plugin", features, profile);
    link::statically(&mut command, &work().join("link"))?;
    command.args(["-C", "link-arg=-Wl,-z,pack-relative-relocs"]);
    run(command)?;
    Ok(build::results(&build::target()?, profile).join("libpjrt_plugin_xlars.so"))
}
