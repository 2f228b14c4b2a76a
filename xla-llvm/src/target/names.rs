//! Names of processors and features that LLVM knows. LLVM's libraries do not list them, and terminate the process for
//! some unknown ones. Therefore they are data files, written by `cargo xtask llvm-names`.

use xla_hlo::text::did_you_mean;
use xla_hlo::{Error, Result};

/// Processor families, each with its processors and their features.
const NAMES: &str = include_str!("names.txt");

/// Names of one processor family.
#[derive(Debug, Default)]
pub(super) struct Names {
    cpus: &'static str,
    features: &'static str,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_processors_and_features() {
        let lines: Vec<&str> = NAMES.lines().skip(1).collect();
        assert!(lines.len() > 30 && lines.len().is_multiple_of(3), "{}", lines.len());
        for kind in lines.chunks(3) {
            let names = Names::of(kind[0]);
            assert!(!names.cpus.is_empty() && !names.features.is_empty(), "{}", kind[0]);
        }
        assert!(Names::of("vax").cpus.is_empty());
    }

    #[test]
    fn unknown_names_are_errors_with_the_nearest() {
        let x86 = Names::of("x86");
        x86.check_cpu("x86-64-v3", "x86_64").unwrap();
        x86.check_feature("-avx2", "x86_64").unwrap();
        let said = |result: Result<()>| result.unwrap_err().message().to_string();
        assert_eq!(
            said(x86.check_cpu("haswel", "x86_64")),
            "x86_64 has no processor \"haswel\"; did you mean haswell?"
        );
        assert_eq!(said(x86.check_feature("+avx22", "x86_64")), "x86_64 has no feature \"avx22\"; did you mean avx2?");
        assert!(said(x86.check_feature("avx2", "x86_64")).contains("write +avx2 or -avx2"));
        assert!(said(x86.check_feature("+16bit-mode", "x86_64")).contains("chosen by the triple"));
        assert!(said(Names::of("xtensa").check_cpu("q", "xtensa")).ends_with("there are esp32, esp8266, generic"));
    }
}
