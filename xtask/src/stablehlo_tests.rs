//! `cargo xtask stablehlo-tests`: functions and programs of StableHLO's own tests on the command.

use std::path::PathBuf;

use anyhow::Result;
use pico_args::Arguments;

use crate::shell::{program, root, run as run_program};
use crate::{build, packages, python};

pub const HELP: &str = "\
Counts successes on the tests of a checkout of openxla/stablehlo, CHECKOUT, in two parts. `accepted`: each function of
the .mlir files that jaxlib converts to HLO, alone with its callees as `main`, must be accepted by the reader.
`interpret`: the programs of stablehlo/tests/interpret for one device run on cpu and on the interpreter, with
constants in place and with constants as arguments; the values that they check are results, compared by StableHLO's
rules. Prints every miss with its reason, the programs that are left out, and a table, and fails below the least
share. Records, and programs that miss, are in target/stablehlo-tests. A run that was interrupted continues where it
was; another command starts again.

  --part NAME       only `accepted` or `interpret`
  --filter TEXT     only functions and programs whose name, FILE:PART:FUNCTION, contains TEXT
  --least PERCENT   least share of successes (default: 97 for accepted, 98 for each row of interpret)
  --command FILE    the command `xla` (default: builds it)
  --python FILE     Python with jax 0.10.2 (default: python3, or an environment in target/python)
  --workers N       runs at a time (default: 2)
  --timeout N       seconds for a run (default: 60)
  --again           keep nothing of an earlier run
  --report          run nothing: report on the records
";

/// Package that has jaxlib's MLIR bindings and XLA:CPU, the references.
const JAX: &str = "jax[cpu]==0.10.2";

/// Passes all other options to `tests/stablehlo/run.py`; relative paths are relative to the caller's folder.
pub fn run(mut args: Arguments) -> Result<()> {
    let chosen: Option<PathBuf> = args.opt_value_from_str("--python")?;
    let command: Option<PathBuf> = args.opt_value_from_str("--command")?;
    let rest = args.finish();
    let python = match chosen {
        Some(python) => python,
        None => python::with_module("jaxlib.mlir", &[JAX])?,
    };
    let command = match command {
        Some(command) => Some(command),
        None if rest.iter().any(|word| word == "--report") => None,
        None => {
            packages::ensure()?;
            Some(build::xla()?)
        }
    };
    let mut runner = program(python, &[root().join("tests/stablehlo/run.py")]);
    runner.args(rest).current_dir(std::env::current_dir()?);
    if let Some(command) = command {
        runner.arg("--command").arg(command);
    }
    run_program(runner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runner_passes_its_tests() {
        run_program(program("python3", &["-m", "unittest", "discover", "--quiet", "-s", "tests/stablehlo"])).unwrap();
    }
}
