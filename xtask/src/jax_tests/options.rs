//! Options of `cargo xtask jax-tests`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pico_args::Arguments;

use crate::finish;
use crate::shell::root;

/// The platform that has the baseline: XLA:CPU, as jaxlib brings it.
pub const BASELINE: &str = "baseline";

pub struct Options {
    /// Checkout of JAX, or its folder `tests`.
    pub folder: PathBuf,
    /// Names of test files; all if there are none.
    pub files: Vec<String>,
    /// Platform of the plugin; [`BASELINE`] for XLA:CPU.
    pub platform: String,
    pub library: PathBuf,
    pub python: PathBuf,
    pub workers: usize,
    /// Limit of one test.
    pub timeout: Duration,
    /// Whether JAX has 64-bit types.
    pub is_x64: bool,
    pub take_up: TakeUp,
}

/// Choice of the outcomes of an earlier run to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakeUp {
    /// Outcomes of the same library in the same environment.
    SameLibrary,
    /// Passes, whatever the library.
    Passed,
    /// Nothing.
    Nothing,
    /// Everything, and nothing is run.
    All,
}

impl Options {
    pub fn parse(mut args: Arguments) -> Result<Options> {
        let is_baseline = args.contains("--baseline");
        let platform: Option<String> = args.opt_value_from_str("--platform")?;
        if is_baseline && platform.is_some() {
            bail!("--baseline runs XLA:CPU: it takes no --platform");
        }
        let library: Option<PathBuf> = args.opt_value_from_str("--library")?;
        let python: Option<PathBuf> = args.opt_value_from_str("--python")?;
        let workers: usize = args.opt_value_from_str("--workers")?.unwrap_or(2);
        let seconds: u64 = args.opt_value_from_str("--timeout")?.unwrap_or(120);
        if workers == 0 || seconds == 0 {
            bail!("--workers and --timeout are at least 1");
        }
        let is_x64 = !args.contains("--no-x64");
        let chosen = [("--misses", TakeUp::Passed), ("--again", TakeUp::Nothing), ("--report", TakeUp::All)];
        let chosen: Vec<_> = chosen.into_iter().filter(|(flag, _)| args.contains(*flag)).collect();
        let take_up = match chosen[..] {
            [] => TakeUp::SameLibrary,
            [(_, take_up)] => take_up,
            [(one, _), (other, _), ..] => bail!("{one} and {other} exclude each other"),
        };
        let folder = args
            .opt_free_from_str()?
            .context("name the checkout of JAX at tag jax-v0.10.2 whose tests are run: `--help` says more")?;
        let mut files = Vec::new();
        while let Some(file) = args.opt_free_from_str::<String>()? {
            if file.starts_with('-') {
                bail!("unknown argument '{file}'; `--help` lists the options");
            }
            files.push(file);
        }
        finish(args)?;
        Ok(Options {
            folder,
            files,
            platform: if is_baseline { BASELINE.to_owned() } else { platform.unwrap_or_else(|| "cpu".to_owned()) },
            library: library.unwrap_or_else(|| root().join("target/release/libpjrt_plugin_xlars.so")),
            python: python.unwrap_or_else(|| "python3".into()),
            workers,
            timeout: Duration::from_secs(seconds),
            is_x64,
            take_up,
        })
    }

    pub fn is_baseline(&self) -> bool {
        self.platform == BASELINE
    }

    /// Width of JAX's default types; each width has outcomes of its own.
    pub fn width(&self) -> &'static str {
        if self.is_x64 { "x64" } else { "x32" }
    }

    /// Folder of the records and reports of runs of this kind.
    pub fn output(&self) -> PathBuf {
        root().join("target/jax-tests").join(format!("{}-{}", self.platform, self.width()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options> {
        Options::parse(Arguments::from_vec(words.iter().map(Into::into).collect()))
    }

    #[test]
    fn defaults_and_choices() {
        let options = parse(&["jax", "lax", "nn_test.py"]).unwrap();
        assert_eq!((options.folder, options.files), ("jax".into(), vec!["lax".to_owned(), "nn_test.py".to_owned()]));
        assert_eq!((options.platform.as_str(), options.workers, options.take_up), ("cpu", 2, TakeUp::SameLibrary));
        let options = parse(&["jax", "--baseline", "--no-x64", "--misses"]).unwrap();
        assert!(options.is_baseline() && options.output().ends_with("target/jax-tests/baseline-x32"));
        assert_eq!(options.take_up, TakeUp::Passed);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let error = |words: &[&str]| parse(words).err().unwrap().to_string();
        assert!(error(&[]).contains("checkout of JAX"));
        assert!(error(&["jax", "--baseline", "--platform", "cpu"]).contains("takes no --platform"));
        assert!(error(&["jax", "--again", "--report"]).contains("--again and --report exclude each other"));
        assert!(error(&["jax", "--workers", "0"]).contains("at least 1"));
        assert!(error(&["jax", "--fast"]).contains("'--fast'"));
    }
}
