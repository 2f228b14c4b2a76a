//! Search for `ptxas`, and its execution.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use xla_hlo::{Error, Result, ResultExt};

use super::assembler::{Assemble, Cubin};
use super::report::Report;

/// Default path of `ptxas` in the CUDA toolkit.
const USUAL_PLACE: &str = "/usr/local/cuda/bin/ptxas";

/// Instructions to install `ptxas`.
const REMEDY: &str =
    "install the CUDA toolkit, or the Python package nvidia-cuda-nvcc-cu12, which has it as nvidia/cuda_nvcc/bin/ptxas";

/// Installed `ptxas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ptxas {
    program: PathBuf,
    version: String,
}

impl Ptxas {
    /// Finds the assembler: `program` if it is given, otherwise the first one on the shell's search path, then the one
    /// at the toolkit's default path. [`Error::NotFound`] with instructions to install it if there is none.
    pub fn find(program: Option<&Path>) -> Result<Ptxas> {
        if let Some(program) = program {
            return Ptxas::at(program);
        }
        match Ptxas::at(Path::new("ptxas")) {
            Err(Error::NotFound(_)) => {
                let usual = Ptxas::at(Path::new(USUAL_PLACE));
                usual.map_err(|_| {
                    Error::not_found(format!("ptxas is neither on the search path nor at {USUAL_PLACE}: {REMEDY}"))
                })
            }
            found => found,
        }
    }

    /// Checks the assembler at a path, or of a name on the search path.
    fn at(program: &Path) -> Result<Ptxas> {
        let output = run(Command::new(program).arg("--version"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = version(&text).filter(|_| output.status.success());
        let version = version.ok_or_else(|| {
            Error::failed_precondition(format!(
                "{} does not print a version as ptxas does: {REMEDY}",
                program.display()
            ))
        })?;
        Ok(Ptxas { program: program.to_path_buf(), version: version.to_string() })
    }

    /// Returns the version, such as `V12.9.86`.
    #[cfg(feature = "compile")]
    pub fn version(&self) -> &str {
        &self.version
    }
}

impl Assemble for Ptxas {
    fn tool(&self) -> String {
        format!("ptxas {}", self.version)
    }

    /// Assembles PTX. The error for rejected PTX quotes the messages of `ptxas`.
    fn assemble(&self, ptx: &str, target: &str) -> Result<Cubin> {
        let folder = tempfile::tempdir().map_err(|e| not_written(&std::env::temp_dir(), e))?;
        let (source, cubin) = (folder.path().join("program.ptx"), folder.path().join("program.cubin"));
        std::fs::write(&source, ptx).map_err(|e| not_written(&source, e))?;
        let mut command = Command::new(&self.program);
        command.args(["-v", "-arch", target]).arg("-o").args([&cubin, &source]);
        let output = run(&mut command)?;
        let said = [&*String::from_utf8_lossy(&output.stdout), &*String::from_utf8_lossy(&output.stderr)].concat();
        if !output.status.success() {
            return Err(refused(&said, &source).context(format!("ptxas {} for {target}", self.version)));
        }
        let bytes = std::fs::read(&cubin);
        let bytes = bytes.map_err(|e| Error::internal("ptxas succeeded but wrote no cubin").with_source(e));
        Ok(Cubin { bytes: bytes.context(|| cubin.display().to_string())?, report: Report::parse(&said) })
    }
}

fn run(command: &mut Command) -> Result<Output> {
    command.stdin(std::process::Stdio::null()).output().map_err(|error| {
        let program = Path::new(command.get_program()).display();
        let sentence = format!("{program} cannot be run: {error}; {REMEDY}");
        match error.kind() {
            ErrorKind::NotFound => Error::not_found(sentence),
            _ => Error::failed_precondition(sentence),
        }
        .with_source(error)
    })
}

/// Converts the messages of `ptxas` about rejected PTX to an error. The PTX is wrong, unless this version of `ptxas`
/// does not support the GPU or the PTX version.
fn refused(said: &str, source: &Path) -> Error {
    let complaints: Vec<_> = said.lines().filter(|line| !line.starts_with("ptxas info")).take(10).collect();
    let said = complaints.join("\n").replace(&*source.to_string_lossy(), "PTX");
    if said.contains("is not defined for option 'gpu-name'") {
        return Error::failed_precondition(format!(
            "ptxas does not support this GPU; a newer version may support it\n{said}"
        ));
    }
    if said.contains("Unsupported .version") {
        return Error::failed_precondition(format!(
            "ptxas does not support the version of the PTX; a newer version of ptxas is required\n{said}"
        ));
    }
    Error::internal(format!("ptxas rejected the PTX\n{said}"))
}

fn not_written(path: &Path, error: std::io::Error) -> Error {
    Error::failed_precondition(format!("{} cannot be written: {error}", path.display())).with_source(error)
}

/// Returns the last word of `Cuda compilation tools, release 12.9, V12.9.86`.
fn version(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.contains("compilation tools, release "))?;
    line.split_whitespace().next_back().filter(|word| word.starts_with('V'))
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use super::*;

    /// Kernel that multiplies, for `sm_80` and later.
    pub const PTX: &str = include_str!("scale.ptx");

    /// Returns the assembler of this machine, from the environment variable `XLA_PTXAS` or the search path. Without
    /// one, prints a message, and tests that need it are skipped.
    pub fn ptxas() -> Option<Ptxas> {
        let found = Ptxas::find(std::env::var_os("XLA_PTXAS").as_deref().map(Path::new));
        found.inspect_err(|error| writeln!(std::io::stderr(), "skipped: {error}").unwrap_or_default()).ok()
    }

    #[test]
    fn versions_are_read() {
        let text = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 12.9, V12.9.86\nBuild cuda_12.9\n";
        assert_eq!(version(text), Some("V12.9.86"));
        assert_eq!(version("bash 5.2"), None);
    }

    #[test]
    fn programs_that_are_no_assembler_are_told() {
        let error = Ptxas::find(Some(Path::new("/nonexistent/ptxas"))).unwrap_err();
        assert!(matches!(error, Error::NotFound(_)));
        assert!(error.message().starts_with("/nonexistent/ptxas cannot be run: No such file"), "{error}");
        let error = Ptxas::find(Some(Path::new("true"))).unwrap_err();
        assert!(
            error.message().starts_with("true does not print a version as ptxas does: install the CUDA toolkit"),
            "{error}"
        );
    }

    #[test]
    fn a_kernel_is_assembled() {
        let Some(ptxas) = ptxas() else { return };
        for target in ["sm_80", "sm_90"] {
            let cubin = ptxas.assemble(PTX, target).unwrap();
            assert!(cubin.bytes.starts_with(b"\x7fELF"));
            let [kernel] = &cubin.report.kernels[..] else { panic!("{:?}", cubin.report) };
            assert_eq!((&*kernel.name, kernel.spill_store_bytes, kernel.shared_bytes), ("scale", 0, 0));
            assert!(kernel.registers > 0);
        }
    }

    #[test]
    fn what_it_refuses_is_told_in_its_words() {
        let Some(ptxas) = ptxas() else { return };
        let error = ptxas.assemble(&PTX.replace("mul.f32", "mulx.f32"), "sm_90").unwrap_err();
        assert!(
            error
                .message()
                .contains("rejected the PTX\nptxas PTX, line 17; error   : Not a name of any known instruction"),
            "{error}"
        );
        let error = ptxas.assemble(PTX, "sm_123").unwrap_err();
        assert!(matches!(error, Error::FailedPrecondition(_)), "{error}");
        assert!(
            error.message().contains("for sm_123: ptxas does not support this GPU; a newer version may"),
            "{error}"
        );
        let error = ptxas.assemble(&PTX.replace(".version 7.8", ".version 99.0"), "sm_90").unwrap_err();
        assert!(matches!(error, Error::FailedPrecondition(_)), "{error}");
    }
}
