//! `cargo xtask jax-tests`: JAX's own tests on the plugin, compared with XLA:CPU.

use anyhow::Result;
use pico_args::Arguments;

use crate::shell::{program, root, run as run_program};

pub const HELP: &str = "\
cargo xtask jax-tests FOLDER [FILE...]: runs the tests of a checkout of JAX, at tag jax-v0.10.2 (commit 990e6a0b84), on the PJRT
plugin, one process a file. FILE is a name such as lax or lax_test.py; without one it runs every file but those that need several
devices, several processes, a GPU or PyTorch. Of the tests that XLA:CPU passes (tests/jax/baseline.zip) it prints the share
that the plugin passes, and every miss by cause; the whole list, the records, logs and JUnit files are in target/jax-tests. A run that
was interrupted continues where it was; a test that crashes or hangs costs one test.

  --baseline        run XLA:CPU instead, and store its outcomes in tests/jax/baseline.zip
  --platform NAME   platform of the plugin (default: cpu); another one than cpu is added to XLA:CPU, as xlars_NAME
  --library FILE    the plugin (default: target/release/libpjrt_plugin_xlars.so)
  --python FILE     Python with jax, pytest and what else the tests need (default: python3)
  --workers N       files at a time; they share the processors (default: 2, with --processes 1)
  --timeout N       seconds for a test (default: 120)
  --no-x64          JAX_ENABLE_X64=0
  --processes N     run tests/multiprocess instead, each file in N processes; a test passes if no process fails it
  --devices-per-process N
                    devices of each of these processes (default: 1, as in JAX's CI)
  --collectives T   transport between these processes: tcp or mpi (default: tcp); the baseline has Gloo's
  --mpiexec FILE    mpiexec of --collectives mpi (default: mpiexec)
  --misses          keep what passed, whatever library it was, and run the rest again
  --again           keep nothing of an earlier run
  --report          run nothing: report on what there is
";

/// Hands everything to `tests/jax/run.py`; relative paths are those of the caller.
pub fn run(args: Arguments) -> Result<()> {
    let mut command = program("python3", &[root().join("tests/jax/run.py")]);
    command.args(args.finish()).current_dir(std::env::current_dir()?);
    run_program(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runner_passes_its_tests() {
        run_program(program("python3", &["-m", "unittest", "discover", "--quiet", "-s", "tests/jax"])).unwrap();
    }
}
