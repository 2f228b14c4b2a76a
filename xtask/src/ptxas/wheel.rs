//! NVIDIA's tools, on the search path or from their wheels.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::python;
use crate::shell::{output, program, root, run};

/// A tool, and the wheel that has it.
pub struct Tool {
    pub name: &'static str,
    /// The wheel, with its version.
    pub wheel: &'static str,
    /// Its place in the wheel.
    place: &'static str,
    /// The folder under `target/ptxas` that the wheel is unpacked into.
    folder: &'static str,
    /// The size of the wheel, for people.
    size: &'static str,
}

pub const PTXAS: Tool = Tool {
    name: "ptxas",
    wheel: "nvidia-cuda-nvcc-cu12==12.9.86",
    place: "nvidia/cuda_nvcc/bin/ptxas",
    folder: "wheel",
    size: "40 MB",
};

/// It reads the assembler's output.
pub const NVDISASM: Tool = Tool {
    name: "nvdisasm",
    wheel: "nvidia-cuda-nvdisasm==13.5.37",
    place: "nvidia/cu13/bin/nvdisasm",
    folder: "nvdisasm",
    size: "5 MB",
};

impl Tool {
    /// The one that was named, or that of the search path, or one under `target/`.
    pub fn find_or_fetch(&self, named: Option<PathBuf>) -> Result<PathBuf> {
        if named.is_none() && runs(Path::new(self.name)) {
            return Ok(PathBuf::from(self.name));
        }
        self.named_or_fetched(named)
    }

    /// The one that was named, or one under `target/`.
    pub fn named_or_fetched(&self, named: Option<PathBuf>) -> Result<PathBuf> {
        match named {
            Some(path) => fs::canonicalize(&path).with_context(|| path.display().to_string()),
            None => self.fetched(),
        }
    }

    /// Path of the tool in NVIDIA's wheel, which is fetched if it is not there.
    pub fn fetched(&self) -> Result<PathBuf> {
        let Tool { name, wheel, size, .. } = self;
        let folder = root().join("target/ptxas").join(self.folder);
        let fetched = folder.join(self.place);
        if runs(&fetched) {
            return Ok(fetched);
        }
        println!("{name} is missing: fetching NVIDIA's wheel {wheel} ({size}, under the licence of the CUDA toolkit)");
        let python = python::with_module("pip", &["pip"])?;
        let mut install =
            program(python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        install.arg("--target").arg(&folder).arg(wheel);
        run(install)?;
        if !runs(&fetched) {
            bail!("{wheel} is installed, yet {} does not run", fetched.display());
        }
        Ok(fetched)
    }
}

fn runs(tool: &Path) -> bool {
    output(program(tool, &["--version"])).is_some()
}
