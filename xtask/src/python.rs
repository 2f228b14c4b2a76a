//! Python with the modules that a command needs.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::packages::{self, Package};
use crate::shell::{output, program, root, run};

/// A Python that can import `module`: the machine's own, or one of an environment under `target/`, made when needed
/// with `pip install REQUIREMENT...`.
pub fn with_module(module: &str, requirement: &[&str]) -> Result<PathBuf> {
    let venv = root().join("target/python");
    for python in [PathBuf::from("python3"), interpreter(&venv)] {
        if imports(&python, module) {
            return Ok(python);
        }
    }
    println!("python3 has no {module}: making an environment with it in target/python");
    environment(&venv, &[])?;
    install(&interpreter(&venv), requirement)
}

/// Whether a Python can import a module.
pub fn imports(python: &Path, module: &str) -> bool {
    output(program(python, &["-c", &format!("import {module}")])).is_some()
}

/// An environment in a folder, made by the machine's Python: with `--clear` in `options`, one with nothing in it.
pub fn environment(folder: &Path, options: &[&str]) -> Result<PathBuf> {
    packages::provide(&Package {
        debian: "python3-venv",
        elsewhere: "Install Python 3 with its modules venv and ensurepip.",
        find: || match output(program("python3", &["-c", "import ensurepip, venv"])) {
            Some(_) => Ok(()),
            None => Err("Python's modules venv and ensurepip are missing.".to_owned()),
        },
    })?;
    let mut command = program("python3", &["-m", "venv"]);
    command.args(options).arg(folder);
    run(command)?;
    Ok(interpreter(folder))
}

/// Installs packages into the environment of a Python, which is returned.
pub fn install(python: &Path, requirement: &[&str]) -> Result<PathBuf> {
    run(program(python, &[&["-m", "pip", "install", "--quiet", "--disable-pip-version-check"], requirement].concat()))?;
    Ok(python.to_path_buf())
}

/// The Python of an environment.
pub fn interpreter(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}
