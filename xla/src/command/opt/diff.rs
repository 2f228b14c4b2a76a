//! Changes by passes, as unified diffs of the module's text.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use similar::TextDiff;
use xla::hlo::text::{PrintOptions, print_module};
use xla::hlo::{Module, Result};
use xla::passes::{PassEvent, PassObserver};

/// Time limit for a minimal diff. A diff that takes longer is approximate.
const PATIENCE: Duration = Duration::from_secs(2);

/// Detail that is printed after a pass.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum Detail {
    /// Changes of the pass, as a unified diff without metadata and large constants
    Diff,
    /// The whole module
    Full,
}

/// Returns the text for diffs, without metadata and large constants, which passes do not change.
pub fn text(module: &Module) -> String {
    print_module(module, &PrintOptions { metadata: false, large_constants: false, ..PrintOptions::default() })
}

/// Returns a unified diff of two named texts; empty if they are equal.
pub fn unified(names: (&str, &str), before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    diff.unified_diff().context_radius(3).header(names.0, names.1).to_string()
}

/// Pass observer that collects the changes of every pass.
pub struct Printer {
    detail: Detail,
    state: Mutex<State>,
}

struct State {
    /// Text of the module after the last pass that changed it.
    before: String,
    out: String,
}

impl Printer {
    /// Creates an observer of passes on this module.
    pub fn new(detail: Detail, module: &Module) -> Printer {
        let before = if detail == Detail::Diff { text(module) } else { String::new() };
        Printer { detail, state: Mutex::new(State { before, out: String::new() }) }
    }

    /// Returns the collected text.
    pub fn into_text(self) -> String {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).out
    }
}

impl PassObserver for Printer {
    fn after(&self, event: &PassEvent<'_>) -> Result<()> {
        let PassEvent { index, path, module, changed, .. } = event;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { before, out } = &mut *state;
        // Writing to a string cannot fail.
        let _ = match (changed, self.detail) {
            (false, _) => writeln!(out, "// {index} {path}: no change"),
            (true, Detail::Full) => writeln!(out, "// {index} {path}:\n{module}"),
            (true, Detail::Diff) => {
                let after = text(module);
                let diff = unified(("before", path), before, &after);
                *before = after;
                match diff.is_empty() {
                    true => writeln!(out, "// {index} {path}: no change in the text"),
                    false => writeln!(out, "// {index} {path}:\n{diff}"),
                }
            }
        };
        Ok(())
    }
}
