//! `cargo xtask zoo`: programs of libraries on JAX, TensorFlow and PyTorch, on XLA:CPU and on ours, compared.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use pico_args::Arguments;

use crate::shell::{program, root, run as run_program};
use crate::{build, finish, packages, python};

pub const HELP: &str = "\
Runs the programs of tests/zoo: models of Keras, Flax, Equinox and Haiku, transformers, samplers, solvers, optimizers and simulations, with
random weights, on XLA:CPU and on ours, and compares outputs and gradients at tolerances derived from double precision. The libraries
are installed into target/zoo/python. A record for each program is in target/zoo/NAME.json, and a run that was interrupted continues
with the programs that have none. Modules, inputs and expected outputs of misses are in target/zoo/kept.

  --suite NAME       `jax` (default); `tensorflow`: tf.function(jit_compile=True) by `xla run`, as text and as bytecode; `torch`: modules
                     of PyTorch by torch_xla on the plugin, against PyTorch's CPU backend. Each has packages of its own (torch: 5 GB)
  --filter TEXT      only programs whose name contains TEXT (may be repeated); MODULE. runs one module of tests/zoo/programs
  --batch N          only programs of batch size N (may be repeated)
  --list             print the names of the programs
  --report           run nothing: print the table of the records
  --again            run programs that have a record, too
  --misses           run programs again whose record is not `agree`
  --timeout N        seconds for a program on our side (default: 120)
  --via NAME         `plugin`: the JAX plugin, or `command`: `xla run` (default: plugin where there is a library); suite jax alone
  --library FILE     the plugin (default: XLARS_LIBRARY, or the one in target/release)
  --command FILE     the command (default: builds it)
  --python FILE      Python with the packages of the suite, tests/zoo/requirements*.txt
  --out DIR          folder of the records (default: target/zoo)
";

/// Options that the scripts take as they are: with a value, and without.
const WITH_VALUE: &[&str] = &["--filter", "--batch", "--timeout"];
const FLAGS: &[&str] = &["--list", "--report", "--again", "--misses"];

/// Libraries whose programs run in one Python.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Suite {
    Jax,
    TensorFlow,
    Torch,
}

impl Suite {
    fn parse(name: &str) -> Result<Suite> {
        match name {
            "jax" => Ok(Suite::Jax),
            "tensorflow" => Ok(Suite::TensorFlow),
            "torch" => Ok(Suite::Torch),
            other => bail!("--suite {other}: there are `jax`, `tensorflow` and `torch`"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Suite::Jax => "jax",
            Suite::TensorFlow => "tensorflow",
            Suite::Torch => "torch",
        }
    }

    /// Requirements, and the folder of their environment in `target/zoo`.
    fn packages(self) -> (&'static str, &'static str) {
        match self {
            Suite::Jax => ("tests/zoo/requirements.txt", "python"),
            Suite::TensorFlow => ("tests/zoo/requirements-tensorflow.txt", "python-tensorflow"),
            Suite::Torch => ("tests/zoo/requirements-torch.txt", "python-torch"),
        }
    }

    /// The side that `--via` names; suites with a single side take it by themselves.
    fn via(self, name: Option<String>) -> Result<Option<String>> {
        let only = match self {
            Suite::Jax => return Ok(name),
            Suite::TensorFlow => "command",
            Suite::Torch => "plugin",
        };
        match name {
            Some(other) if other != only => bail!("--suite {} runs by --via {only} alone", self.name()),
            _ => Ok(Some(only.to_owned())),
        }
    }
}

/// Platform that runs the programs next to XLA:CPU.
#[derive(Debug, PartialEq)]
enum Via {
    Plugin(PathBuf),
    /// The `xla` command; `None` builds it.
    Command(Option<PathBuf>),
}

pub fn run(mut args: Arguments) -> Result<()> {
    let mut passed: Vec<OsString> = Vec::new();
    for option in WITH_VALUE {
        for value in args.values_from_str::<_, String>(*option)? {
            passed.extend([(*option).into(), value.into()]);
        }
    }
    let flags = FLAGS.iter().filter(|flag| args.contains(**flag)).collect::<Vec<_>>();
    passed.extend(flags.iter().map(OsString::from));
    let runs_nothing = flags.iter().any(|flag| ["--list", "--report"].contains(flag));
    let suite = args.opt_value_from_fn("--suite", Suite::parse)?.unwrap_or(Suite::Jax);
    let (name, library) = (suite.via(args.opt_value_from_str("--via")?)?, args.opt_value_from_str("--library")?);
    let via = via(name, library, args.opt_value_from_str("--command")?)?;
    let chosen: Option<PathBuf> = args.opt_value_from_str("--python")?;
    let out: Option<PathBuf> = args.opt_value_from_str("--out")?;
    finish(args)?;
    let out = root().join(out.unwrap_or_else(|| "target/zoo".into()));
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let python = match chosen {
        Some(python) => python,
        None => environment(suite)?,
    };
    let mut command = program(&python, &["tests/zoo/run.py"]);
    command.args(["--suite", suite.name(), "--out"]).arg(out).args(passed);
    if !runs_nothing {
        match via {
            Via::Plugin(library) => command.arg("--library").arg(library),
            Via::Command(Some(path)) => command.arg("--command").arg(path),
            Via::Command(None) => {
                packages::ensure()?;
                command.arg("--command").arg(build::xla()?)
            }
        };
    }
    run_program(command)
}

/// Chooses the side from the options; without any, the plugin if there is a library, and the command otherwise.
fn via(name: Option<String>, library: Option<PathBuf>, command: Option<PathBuf>) -> Result<Via> {
    let file = format!("{}pjrt_plugin_xlars{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let built = root().join("target/release").join(file);
    let found = std::env::var_os("XLARS_LIBRARY").map(PathBuf::from).or_else(|| built.exists().then_some(built));
    match (name.as_deref(), library, command) {
        (_, Some(_), Some(_)) => bail!("--library and --command exclude each other"),
        (None | Some("command"), None, Some(path)) => Ok(Via::Command(Some(path))),
        (None | Some("plugin"), Some(library), None) => Ok(Via::Plugin(library)),
        (Some("command"), None, None) => Ok(Via::Command(None)),
        (Some("plugin"), None, None) => found
            .map(Via::Plugin)
            .context("there is no plugin: `cargo build --release -p xla-pjrt-plugin` makes it, or --library names one"),
        (None, None, None) => Ok(found.map_or(Via::Command(None), Via::Plugin)),
        (Some("plugin"), None, Some(_)) => bail!("--via plugin takes --library, not --command"),
        (Some("command"), Some(_), None) => bail!("--via command takes --command, not --library"),
        (Some(other), _, _) => bail!("--via {other}: there are `plugin` and `command`"),
    }
}

/// The Python of an environment with the packages of a suite, installed again when its requirements change.
fn environment(suite: Suite) -> Result<PathBuf> {
    let (file, folder) = suite.packages();
    let folder = root().join("target/zoo").join(folder);
    let requirements = root().join(file);
    let text = fs::read_to_string(&requirements).with_context(|| requirements.display().to_string())?;
    let installed = folder.join("requirements.txt");
    let python = python::interpreter(&folder);
    if fs::read_to_string(&installed).is_ok_and(|old| old == text) && python.exists() {
        return Ok(python);
    }
    let python = python::environment(&folder, &["--clear"])?;
    python::install(&python, &["--requirement", file])?;
    fs::write(&installed, text)?;
    Ok(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_is_chosen_by_the_options() {
        let path = |name: &str| Some(PathBuf::from(name));
        let word = |name: &str| Some(name.to_owned());
        assert_eq!(via(None, path("p.so"), None).unwrap(), Via::Plugin("p.so".into()));
        assert_eq!(via(None, None, path("xla")).unwrap(), Via::Command(path("xla")));
        assert_eq!(via(word("command"), None, None).unwrap(), Via::Command(None));
        for (name, library, command, message) in [
            (None, path("p.so"), path("xla"), "exclude each other"),
            (word("plugin"), None, path("xla"), "takes --library"),
            (word("command"), path("p.so"), None, "takes --command"),
            (word("wheel"), None, None, "there are `plugin` and `command`"),
        ] {
            let error = via(name, library, command).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_suite_has_the_side_that_it_runs_on() {
        let word = |name: &str| Some(name.to_owned());
        assert_eq!(Suite::Jax.via(None).unwrap(), None);
        assert_eq!(Suite::parse("tensorflow").unwrap().via(None).unwrap(), word("command"));
        assert_eq!(Suite::parse("torch").unwrap().via(word("plugin")).unwrap(), word("plugin"));
        let error = Suite::Torch.via(word("command")).unwrap_err().to_string();
        assert!(error.contains("--suite torch runs by --via plugin alone"), "{error}");
        let error = Suite::parse("haskell").unwrap_err().to_string();
        assert!(error.contains("there are `jax`, `tensorflow` and `torch`"), "{error}");
    }

    #[test]
    fn every_requirement_has_a_version() {
        let wanted = [
            (Suite::Jax, "jaxlib==0.10.2"),
            (Suite::TensorFlow, "tensorflow-cpu==2.21.0"),
            (Suite::Torch, "torch_xla==2.9.0"),
        ];
        for (suite, package) in wanted {
            let text = fs::read_to_string(root().join(suite.packages().0)).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            assert!(lines.clone().any(|line| line == package), "{text}");
            lines.for_each(|line| assert!(line.contains("=="), "{line}"));
        }
    }
}
