//! Statistics of a pipeline run: the rewrites of each pass, by rule.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Number of applications of each rule. A pass without rules counts its rewrites under its own name.
pub type RewriteCounts = BTreeMap<&'static str, u64>;

/// Statistics of all passes of a pipeline run, in the order of their first runs.
///
/// `Display` prints a table of the passes that edited the module or counted rewrites, with a line for each rule of a
/// pass that counts its rewrites by rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PipelineStatistics {
    /// Statistics of each pass.
    pub passes: Vec<PassStatistics>,
}

/// Statistics of all runs of one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PassStatistics {
    /// Name of the pass.
    pub pass: &'static str,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs that edited the module.
    pub changes: usize,
    /// Time spent in the pass, without the verifier.
    #[serde(skip)]
    pub time: Duration,
    /// Rewrites by rule. A pass without rules counts under its own name, and some passes count nothing; see
    /// [`Counted`](crate::registry::Counted).
    pub rewrites: RewriteCounts,
}

impl PassStatistics {
    /// Returns the number of rewrites.
    pub fn total(&self) -> u64 {
        self.rewrites.values().sum()
    }
}

impl fmt::Display for PipelineStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_shown = |statistics: &&PassStatistics| statistics.changes > 0 || !statistics.rewrites.is_empty();
        writeln!(f, "{:<32} {:>5} {:>8} {:>9}", "pass", "runs", "changes", "rewrites")?;
        for statistics in self.passes.iter().filter(is_shown) {
            let PassStatistics { pass, runs, changes, rewrites, .. } = statistics;
            let total = if rewrites.is_empty() { "-".to_string() } else { statistics.total().to_string() };
            writeln!(f, "{pass:<32} {runs:>5} {changes:>8} {total:>9}")?;
            for (rule, count) in rewrites.iter().filter(|(rule, _)| *rule != pass) {
                writeln!(f, "  {rule:<45} {count:>9}")?;
            }
        }
        let others = self.passes.len() - self.passes.iter().filter(is_shown).count();
        let total = self.passes.iter().map(PassStatistics::total).sum::<u64>();
        writeln!(f, "rewrites: {total}; passes that changed nothing: {others}")
    }
}
