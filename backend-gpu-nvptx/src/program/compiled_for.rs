//! Target that a program was compiled for, and the GPUs that run its code.

use std::fmt;

use serde::{Deserialize, Serialize};
use xla_hlo::{Error, Result};

/// Target of code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CompiledFor {
    /// GPUs of an architecture, such as `sm_90`, and later ones.
    Gpu(String),
    /// Processor that emulates a GPU, by LLVM's names.
    Host {
        /// Target triple.
        triple: String,
        /// CPU model.
        cpu: String,
        /// CPU features, such as `+avx2`.
        features: Vec<String>,
    },
}

/// Kinds of code of a program that run on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeFit {
    /// Cubins and PTX.
    MachineCode,
    /// PTX only.
    Ptx,
}

impl CompiledFor {
    /// Returns the kind of code that runs on a GPU of this compute capability. PTX runs on later GPUs, cubins only
    /// within a generation. Code for an architecture with a suffix (`sm_90a`) runs on no other GPU.
    /// [`Error::InvalidArgument`] if no code runs.
    pub fn on_gpu(&self, (major, minor): (u32, u32)) -> Result<CodeFit> {
        let CompiledFor::Gpu(architecture) = self else {
            return Err(Error::invalid_argument(format!("the program was compiled for {self}, not for a GPU")));
        };
        let (made_major, made_minor, is_specific) = capability(architecture).ok_or_else(|| {
            Error::invalid_argument(format!(
                "the program was compiled for {architecture:?}, which is not a GPU architecture"
            ))
        })?;
        let same = (made_major, made_minor) == (major, minor);
        if same || !is_specific && made_major == major && made_minor <= minor {
            return Ok(CodeFit::MachineCode);
        }
        if !is_specific && (made_major, made_minor) < (major, minor) {
            return Ok(CodeFit::Ptx);
        }
        Err(Error::invalid_argument(format!(
            "the program was compiled for {architecture}, but this GPU is sm_{major}{minor}: compile it with `--target {}`",
            own_architecture((major, minor))
        )))
    }
}

/// Returns the architecture of code for this compute capability alone. It has a suffix if the GPU has
/// architecture-specific instructions that generated code uses.
pub(crate) fn own_architecture((major, minor): (u32, u32)) -> String {
    let letter = if (major, minor) == (9, 0) { "a" } else { "" };
    format!("sm_{major}{minor}{letter}")
}

/// Parses an architecture into its compute capability, and whether it has a suffix: `sm_90a` is 9, 0 and true.
pub(crate) fn capability(architecture: &str) -> Option<(u32, u32, bool)> {
    let rest = architecture.strip_prefix("sm_")?;
    let digits = rest.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let number: u32 = digits.parse().ok()?;
    Some((number / 10, number % 10, digits.len() < rest.len()))
}

impl fmt::Display for CompiledFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompiledFor::Gpu(architecture) => write!(f, "GPU {architecture}"),
            CompiledFor::Host { triple, cpu, .. } => write!(f, "processor {cpu} ({triple})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_on_what_came_later() {
        let on = |compiled_for: &str, gpu| CompiledFor::Gpu(compiled_for.to_string()).on_gpu(gpu).ok();
        assert_eq!(on("sm_80", (8, 0)), Some(CodeFit::MachineCode));
        assert_eq!(on("sm_80", (8, 9)), Some(CodeFit::MachineCode));
        assert_eq!(on("sm_80", (9, 0)), Some(CodeFit::Ptx));
        assert_eq!(on("sm_90a", (9, 0)), Some(CodeFit::MachineCode));
        assert_eq!(on("sm_90a", (10, 0)), None);
        assert_eq!(on("sm_100", (12, 0)), Some(CodeFit::Ptx));
        let error = CompiledFor::Gpu("sm_90".to_string()).on_gpu((8, 6)).unwrap_err();
        assert_eq!(
            error.message(),
            "the program was compiled for sm_90, but this GPU is sm_86: compile it with `--target sm_86`"
        );
        let error = CompiledFor::Gpu("sm_100".to_string()).on_gpu((9, 0)).unwrap_err();
        assert_eq!(
            error.message(),
            "the program was compiled for sm_100, but this GPU is sm_90: compile it with `--target sm_90a`"
        );
    }

    #[test]
    fn code_for_one_gpu_has_its_own_architecture() {
        let own = [(7, 0), (8, 6), (9, 0), (10, 0), (12, 0)].map(own_architecture);
        assert_eq!(own, ["sm_70", "sm_86", "sm_90a", "sm_100", "sm_120"]);
        for gpu in [(8, 9), (9, 0), (10, 3)] {
            assert_eq!(CompiledFor::Gpu(own_architecture(gpu)).on_gpu(gpu).ok(), Some(CodeFit::MachineCode));
        }
    }
}
