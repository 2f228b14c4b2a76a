//! Names of processors and features that LLVM knows. LLVM's libraries do not list them, and terminate the process for
//! some unknown ones. Therefore they are data files, written by `cargo xtask llvm-names`.

use xla_hlo::text::did_you_mean;
use xla_hlo::{Error, Result};

/// Processor families, each with its processors and their features.
pub const NAMES: &str = include_str!("names.txt");

/// Names of one processor family.
#[derive(Debug, Default)]
pub struct Names {
    /// Processors, separated by spaces.
    pub cpus: &'static str,
    /// Features, separated by spaces.
    pub features: &'static str,
}

/// Features that select a mode which the triple determines.
const MODES: &[&str] = &["16bit-mode", "32bit-mode", "64bit-mode", "32bit", "64bit", "thumb-mode"];

impl Names {
    /// Returns the names of a processor family as called in `names.txt`; empty for a family without names.
    pub fn of(family: &str) -> Names {
        let mut lines = NAMES.lines().skip_while(|line| *line != family).skip(1);
        let mut list = |title| lines.next().and_then(|line| line.strip_prefix(title)).unwrap_or_default();
        Names { cpus: list("cpus "), features: list("features ") }
    }

    /// Checks that a processor exists.
    pub fn check_cpu(&self, cpu: &str, triple: &str) -> Result<()> {
        known(self.cpus, cpu, &|| format!("{triple} has no processor {cpu:?}"))
    }

    /// Checks that a feature exists and is added (`+avx2`) or removed (`-avx2`).
    pub fn check_feature(&self, feature: &str, triple: &str) -> Result<()> {
        let Some(name) = feature.strip_prefix(['+', '-']) else {
            return Err(Error::invalid_argument(format!(
                "feature {feature:?} is neither added nor removed; write +{feature} or -{feature}"
            )));
        };
        if MODES.contains(&name) {
            return Err(Error::invalid_argument(format!("feature {name:?} is chosen by the triple; leave it out")));
        }
        known(self.features, name, &|| format!("{triple} has no feature {name:?}"))
    }
}

/// Checks that a name is in a list separated by spaces.
fn known(names: &'static str, name: &str, wrong: &dyn Fn() -> String) -> Result<()> {
    let all = || names.split_whitespace();
    if all().any(|known| known == name) {
        return Ok(());
    }
    let others = match did_you_mean(name, all()) {
        nearest if !nearest.is_empty() => nearest,
        _ if names.is_empty() => "; there are none to choose from".to_string(),
        _ => format!("; there are {}", names.replace(' ', ", ")),
    };
    Err(Error::invalid_argument(format!("{}{others}", wrong())))
}
