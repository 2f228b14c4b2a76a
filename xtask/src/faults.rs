//! `cargo xtask faults`: the command under faults of memory, threads, disk and signals.

use std::path::PathBuf;

use anyhow::Result;
use pico_args::Arguments;

use crate::shell::{program, root, run as run_program};
use crate::{build, packages};

pub const HELP: &str = "\
Runs the command `xla` under faults: little address space, few threads, limits of file sizes, full disks, few open
files, and SIGTERM, SIGKILL and SIGINT at any time; run, compile, bench and opt, with traces, dumps and cache folders,
on programs of tests/ and on larger generated ones. A run is bad if it ends by another signal, panics, hangs, fails
with no error or several, succeeds without its output, leaves a damaged file or a process, or if the next run with the
cache fails. Prints each bad run with its command line and the command that repeats it, and a table; fails if there is
one. Records, and folders of bad runs, are in target/faults. A campaign that was interrupted continues where it was.
Linux only.

  --runs N         number of runs (default: 200)
  --seed N         the seed, which with the number of a run determines it (default: 0)
  --only N         this run alone, again (may be repeated)
  --kind NAME      only this fault: memory, threads, 'file size', 'full disk', 'full device', 'open files', signal
  --list           run nothing: print the command lines
  --command FILE   the command `xla` (default: builds it)
  --workers N      runs at a time (default: 2)
  --out DIR        folder of records and runs (default: target/faults); other users must be able to enter it
  --again          keep nothing of an earlier run
";

/// Passes all other options to `tests/faults/run.py`; relative paths are relative to the caller's folder.
pub fn run(mut args: Arguments) -> Result<()> {
    let command: Option<PathBuf> = args.opt_value_from_str("--command")?;
    let command = match command {
        Some(command) => command,
        None => {
            packages::ensure()?;
            build::xla()?
        }
    };
    let mut runner = program("python3", &[root().join("tests/faults/run.py")]);
    runner.args(args.finish()).arg("--command").arg(command).current_dir(std::env::current_dir()?);
    run_program(runner)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_runner_passes_its_tests() {
        run_program(program("python3", &["-m", "unittest", "discover", "--quiet", "-s", "tests/faults"])).unwrap();
    }
}
