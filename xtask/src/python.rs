//! Python with the modules that a command needs.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::packages::{self, Package};
use crate::shell::{output, program, root, run};

/// A Python that can import `module`: the machine's own, or one of an environment under `target/`, made when needed
/// with `pip install REQUIREMENT...`.
pub fn with_module(module: &str, requirement: &[&str]) -> Result<PathBuf> {
    let import = format!("import {module}");
    let venv = root().join("target/python");
    let own = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    for python in [Path::new("python3"), &own] {
        if output(program(python, &["-c", &import])).is_some() {
            return Ok(python.to_path_buf());
        }
    }
    println!("python3 has no {module}: making an environment with it in target/python");
    packages::provide(&Package {
        debian: "python3-venv",
        elsewhere: "Install Python 3 with its modules venv and ensurepip.",
        find: || match output(program("python3", &["-c", "import ensurepip, venv"])) {
            Some(_) => Ok(()),
            None => Err("Python's modules venv and ensurepip are missing.".to_owned()),
        },
    })?;
    run(program("python3", &["-m".as_ref(), "venv".as_ref(), venv.as_os_str()]))?;
    run(program(&own, &[&["-m", "pip", "install", "--quiet", "--disable-pip-version-check"], requirement].concat()))?;
    Ok(own)
}
